# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows whose cells, columns or keys are uncertain are bad rows."""

import json

import pytest

from configure.errors import UserError
from electra_tf.finetuning.questions import read_articles
from tests.conftest import refused

BY_NUMBER = {"columns": {"text_a": 0, "label": 1}}
FROM_END = {"columns": {"text_a": 0, "label": -1}}
BY_NAME = {"columns": {"text_a": "text", "label": "label"}}
BARE = {"header": False}


def _read(describe, description, name, text, **hparams):
    """Return training examples as (text, label), and bad rows."""
    ending = name.rpartition(".")[2]
    files = {f"{split}.{ending}": text for split in ("train", "dev")}
    task = describe(description, files, **hparams)
    examples = [(e.text_a, e.label) for e in task.get_examples("train")]
    rows = [row for row in task.row_report.rows if "train" in row.path]
    return examples, [(row.line, row.found, row.expected) for row in rows]


ROWS = [("a", "x"), ("b", "y")]
HEADED = "text,label\na,x\nb,y\n"
PLAIN = "a,x\nb,y\n"
# description, data, line and content of the bad row, requirement
SURPLUS = {
    "columns by number": (
        BY_NUMBER,
        HEADED + "Hello, world,x\n",
        (4, "3 cells: Hello| world|x", "2 cells, as in the header"),
    ),
    "no header": (
        BY_NUMBER | BARE,
        PLAIN + "Hello, x,y\n",
        (3, "3 cells: Hello| x|y", "2 cells, as in line 1"),
    ),
    "the last column": (
        FROM_END,
        HEADED + "Hello, world,x\n",
        (4, "3 cells: Hello| world|x", "2 cells, as in the header"),
    ),
    "the last column of a short row": (
        FROM_END,
        "text,n,label\na,1,x\nb,2,y\nc,x\n",
        (4, "2 columns: ['c', 'x']", "at least 3 columns"),
    ),
    "the last column without a header": (
        FROM_END | BARE,
        "a,1,x\nb,2,y\nc,x\n",
        (3, "2 columns: ['c', 'x']", "at least 3 columns"),
    ),
    "the last column of a split": (
        BY_NUMBER | {"splits": {"train": {"columns": {"label": -1}}}},
        HEADED + "c\n",
        (4, "1 columns: ['c']", "at least 2 columns"),
    ),
}


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("name", SURPLUS)
def test_no_cell_is_cut_or_taken_from_another_column(describe, name, ending):
    description, text, bad = SURPLUS[name]
    if ending == "tsv":
        text = text.replace(",", "\t")
    examples, rows = _read(describe, description, f"x.{ending}", text)
    assert (examples, rows) == (ROWS, [bad])
    line, _, expected = bad
    message = rf"train\.{ending}:{line}: found .*expected {expected}"
    with pytest.raises(UserError, match=message):
        _read(describe, description, f"x.{ending}", text, strict=True)


@pytest.mark.parametrize("description", [BY_NUMBER, FROM_END])
def test_empty_surplus_cells_change_no_row(describe, description):
    text = "text,label\na,x,\nb,y,,\n"
    assert _read(describe, description, "x.csv", text) == (ROWS, [])


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("blank", ["\n", "\n \n\n", ",\n", "\u2028\r\n"])
@pytest.mark.parametrize("description", [BY_NUMBER, FROM_END, BY_NAME])
def test_blank_lines_before_the_header_are_no_header(
    describe, description, blank, ending
):
    text = blank + HEADED
    if ending == "tsv":
        text = text.replace(",", "\t")
    assert _read(describe, description, f"x.{ending}", text) == (ROWS, [])


@pytest.mark.parametrize(
    ("description", "text", "label"),
    [
        (BY_NUMBER, "c,x\n" + PLAIN, "x"),
        (FROM_END, "c, y\n" + PLAIN, "y"),
        (BY_NUMBER | {"labels": ["y", "x"]}, "\nc,x\n" + PLAIN, "x"),
        (
            BY_NUMBER | {"type": "multilabel", "label_separator": "+"},
            "c,y+x\n" + PLAIN,
            "y+x",
        ),
        (BY_NUMBER | {"type": "regression"}, "c,1.5\na,1\nb,2\n", "1.5"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_label_in_the_header_is_reported(
    describe, description, text, label, ending
):
    if ending == "tsv":
        text = text.replace(",", "\t")
    examples, rows = _read(describe, description, f"x.{ending}", text)
    assert [text for text, _ in examples] == ["a", "b"]
    ((line, content, expected),) = rows
    assert line == 1 + text.startswith("\n")
    assert content == f"label {label!r} in the header"
    assert "set header to false" in expected


@pytest.mark.parametrize(
    ("description", "header"),
    [
        (BY_NUMBER, "text,label"),
        (BY_NUMBER, "0,1"),
        (FROM_END, "0,1"),
        (BY_NUMBER | {"type": "regression"}, "text,stars"),
        ({"columns": {"text_a": 0, "label": "1"}}, "text,1"),
    ],
)
def test_names_in_the_header_are_no_labels(describe, description, header):
    text = f"{header}\na,1\nb,0\n"
    examples, rows = _read(describe, description, "x.csv", text)
    assert [text for text, _ in examples] == ["a", "b"]
    assert rows == []


def test_the_original_tasks_ignore_surplus_cells(make_task, write_task):
    write_task("sst", "train.tsv", "sentence\tlabel\na\t0\tmore\nb\t1\n")
    task = make_task("sst")
    examples = [(e.text_a, e.label) for e in task.get_examples("train")]
    assert examples == [("a", "0"), ("b", "1")] and not task.row_report.rows


def test_a_conll_line_without_its_tag_is_a_bad_row(describe):
    text = "EU NNP B-NP B-ORG\n\nPeter NNP B-NP\n\nBlackburn NNP I-NP B-PER\n\n"
    files = {"train.txt": text, "dev.txt": text}
    task = describe({"type": "tagging"}, files)
    sentences = [example.words for example in task.get_examples("train")]
    assert sentences == [["EU"], ["Blackburn"]]
    assert task.label_mapping == {"S-ORG": 0, "S-PER": 1}
    task = describe({"type": "tagging"}, files, strict=True)
    message = r"train\.txt:3: found 3 columns; expected 4, as in line 1"
    refused(message, task.get_examples, "train")


def test_json_rows_with_two_values_of_a_key_are_bad(describe):
    rows = [{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    text += '{"text": "c", "label": "x", "label": "y"}\n'
    named = {"columns": {"text_a": "text", "label": "label"}}
    examples, ((line, content, expected),) = _read(
        describe, named, "x.jsonl", text
    )
    assert examples == ROWS
    assert (line, expected) == (3, "one value of each key")
    assert content.startswith("more than one value of label: {")
    message = r"train\.jsonl:3: found more than one value of label"
    with pytest.raises(UserError, match=message):
        _read(describe, named, "x.jsonl", text, strict=True)


def test_mrqa_lines_with_two_values_of_a_key_are_bad(describe):
    answers = [{"text": "a", "char_spans": [[0, 0]]}]
    qa = {"qid": "1", "question": "q", "detected_answers": answers}
    text = json.dumps({"context": "a b", "qas": [qa]})
    twice = text.replace('"qid": "1"', '"qid": "2", "qid": "3"')
    content = f"{text}\n{twice}\n"
    task = describe(
        {"type": "question_answering", "version": "mrqa"},
        {"train.jsonl": content, "dev.jsonl": content},
        max_query_length=8,
    )
    assert len(task.get_examples("train")) == 1
    (row,) = task.row_report.rows
    assert row.line == 2 and row.found.startswith("more than one value of qid")


QA = '{"id": "7",\n "question": "q",\n "answers": []}'
SQUAD = '{"data": [{"paragraphs": [\n{"context": "a b", "qas": [%s]}]}]}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            SQUAD % QA.replace('"q"', '"p",\n "question": "q"'),
            r"a\.json:2: more than one value of question in the object \{'id'",
        ),
        (
            (SQUAD % QA).replace('"a b"', '"a", "context": "a b"'),
            r"a\.json: more than one value of context in the object",
        ),
        (
            (SQUAD % QA).replace('{"data"', '{"data": [], "data"'),
            r"a\.json: more than one value of data in the object",
        ),
    ],
)
def test_squad_files_with_two_values_of_a_key_are_refused(
    tmp_path, text, message
):
    path = tmp_path / "a.json"
    path.write_text(text)
    refused(f"{message}.*expected one value of each", read_articles, str(path))
