# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors that follow bad rows also contain the reasons of these rows."""

import json

import pytest

from configure.errors import UserError
from electra_tf.commands import ensemble
from electra_tf.finetuning import runner
from electra_tf.finetuning.row_report import RowReport, bad_rows_in_errors
from tests.conftest import refused

TEXTS = {"columns": {"text_a": "text", "label": "label"}}
SPANS = {"type": "tagging", "format": "conll"}
SQUAD = {"data": [{"paragraphs": [{"context": "a b", "qas": [{"id": "1"}]}]}]}

# Description, ending of the files, content, what the error must name.
ALL_BAD = {
    "a cell is missing": (TEXTS, "tsv", "text\tlabel\na\n", ":2: found 1 col"),
    "not UTF-8": (
        TEXTS,
        "tsv",
        b"text\tlabel\n\xff\tx\n",
        r":2: found b'\\xff",
    ),
    "not JSON": (TEXTS, "jsonl", '{"text":\n', ":1: found Expecting value"),
    "other keys": (TEXTS, "jsonl", '{"txt": "a"}\n', ":1: found {'txt': 'a'}"),
    "an open quote": (TEXTS, "csv", 'text,label\n"a,x\n', "a row of CSV"),
    "several labels": (
        {**TEXTS, "type": "multilabel"},
        "csv",
        "text,label\na\n",
        ":2: found 1 columns",
    ),
    "numbers": (
        {**TEXTS, "type": "regression"},
        "tsv",
        "text\tlabel\na\n",
        ":2: found 1 columns",
    ),
    "spans": (SPANS, "txt", "a NOUN\n\n", ":1: found tag 'NOUN' of 'a'"),
    "tags of words": (
        {**SPANS, "tags": "words"},
        "txt",
        "lonely\n\n",
        ":1: found lonely; expected at least 2 columns",
    ),
    "JSON lists": (
        {"type": "tagging"},
        "jsonl",
        '{"words": ["a"], "tags": []}\n',
        ":1: found 0 tags for 1 words; expected as many tags",
    ),
    "questions": (
        {"type": "question_answering", "version": "squad2"},
        "json",
        json.dumps(SQUAD),
        ":1: found question '1': question None; expected a text under question",
    ),
    "documents": (
        {**TEXTS, "type": "summarization"},
        "jsonl",
        '{"text": " "}\n',
        "found text ' '; expected a text under text",
    ),
}


@pytest.mark.parametrize("case", ALL_BAD)
def test_files_of_bad_rows_alone_are_refused_with_reasons(
    describe, tmp_path, case
):
    description, ending, content, message = ALL_BAD[case]
    names = [f"{split}.{ending}" for split in ("train", "dev")]
    empty = dict.fromkeys(names, "")
    task = describe(description, empty, max_query_length=16)
    for name in names:
        content = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=rf"(?s)train\.{ending}.*{message}"):
        task.get_examples("train")


def test_a_file_that_exists_is_not_called_absent(describe, tmp_path):
    task = describe(SPANS, {"train.txt": "a NOUN\n\n", "dev.txt": ""})
    with pytest.raises(UserError, match="no usable labels in") as error:
        task.find_labels()
    assert "exist (" not in str(error.value)
    for name in ("train.txt", "dev.txt"):
        (tmp_path / name).unlink()
    refused("none of the data files exist .*train.txt", task.resolve_labels)


def test_rows_of_one_task_are_named_in_the_error_of_another():
    first, second = RowReport(), RowReport()
    first.add("a.tsv", 3, "x", "y")
    second.add("b.tsv", 5, "v", "w")
    with pytest.raises(UserError) as error:
        with bad_rows_in_errors({"one": first, "two": second}):
            with bad_rows_in_errors({"one": first}):
                raise UserError("c.tsv: no such file")
    assert str(error.value).split("\n") == [
        "c.tsv: no such file",
        "one: a.tsv: 1 bad row, 1 skipped, 0 kept",
        "one:   a.tsv:3: found x; expected y (skipped)",
        "two: b.tsv: 1 bad row, 1 skipped, 0 kept",
        "two:   b.tsv:5: found v; expected w (skipped)",
    ]


def test_an_error_of_the_program_gets_the_rows_as_a_note():
    report = RowReport()
    report.add("a.tsv", 3, "x", "y")
    with pytest.raises(RuntimeError, match="^no memory") as error:
        with bad_rows_in_errors({"one": report}):
            raise RuntimeError("no memory")
    assert "a.tsv:3: found x; expected y" in error.value.__notes__[0]


def test_rows_that_were_printed_are_not_added_again():
    report = RowReport()
    report.add("a.tsv", 3, "x", "y")
    report.mark_printed()
    report.add("a.tsv", 4, "v", "w")
    with pytest.raises(UserError) as error:
        with bad_rows_in_errors({"one": report}):
            raise UserError("stopped")
    assert "a.tsv:3" not in str(error.value)
    assert "a.tsv:4: found v; expected w" in str(error.value)


def test_a_run_that_fails_on_one_task_names_the_bad_rows_of_the_other(
    finetuning_config, write_task
):
    good = "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n"
    write_task("rte", "train.tsv", good + "1\tonly\n")
    write_task("rte", "dev.tsv", good)
    write_task("sst", "train.tsv", "sentence\tlabel\n")
    write_task("sst", "dev.tsv", "sentence\tlabel\n")
    config = finetuning_config("rte", "sst")
    refused(
        r"(?s)no usable example in its train.*rte: .*train\.tsv:3: found 2 col",
        runner.run,
        config,
    )


def test_ensemble_names_bad_rows_of_the_split_with_its_own_error(
    describe, tmp_path
):
    rows = "text\tlabel\na\tx\nb\nc\ty\n"
    task = describe(TEXTS, {"train.tsv": rows, "dev.tsv": rows})
    vocab = task.config.vocab_file
    line = {"line": 2, "probabilities": {"x": 0.5, "y": 0.5}}
    paths = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for path in paths:
        path.write_text(json.dumps(line) + "\n")
    argv = ["", "--data_dir", str(tmp_path), "--vocab_file", vocab]
    argv += ["--task_config", str(tmp_path / "task.json"), *map(str, paths)]
    args = ensemble.parse_flags(argv)
    refused(
        r"(?s)no prediction for 1 of 2.*dev\.tsv:3: found", ensemble.main, args
    )
