# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of other programs are read by their meaning, or refused."""

import json
import re

import pytest

from configure.errors import UserError
from electra_tf.commands.input_stream import InputStream
from electra_tf.commands.predict import parse_flags
from electra_tf.data import conll, tables
from electra_tf.finetuning.equal_labels import refuse_equal_labels
from electra_tf.prediction.reader import Source
from tests.conftest import refused

CONLL_U = """\
# newdoc id = d1
# sent_id = d1-1
# text = Sanal parçalarsa bunu yapamazlar.
1\tSanal\tsanal\tADJ\tAdj\t_\t2\tamod\t_\t_
2-3\tparçalarsa\t_\t_\t_\t_\t_\t_\t_\t_
2\tparçalar\tparça\tNOUN\tNoun\t_\t6\tnsubj\t_\t_
3\tsa\ti\tAUX\tZero\t_\t2\tcop\t_\t_
4\tbunu\tbu\tPRON\tDemons\t_\t5\tobj\t_\t_
5\tyapamazlar\tyap\tVERB\tVerb\t_\t0\troot\t_\tSpaceAfter=No
5.1\tyok\tyok\tVERB\tVerb\t_\t_\t_\t_\t_
6\t.\t.\tPUNCT\tPunc\t_\t5\tpunct\t_\t_

"""
GERMEVAL = """\
#\thttp://de.example.org/wiki/X\t[2009-10-17]
1\tAufgrund\tO\tO
2\tNew\tB-LOC\tO
3\tYork\tI-LOC\tO

#\thttp://de.example.org/wiki/Y\t[2010-01-01]
1\tHallo\tO\tO

"""
TAGGING = {"type": "tagging", "format": "conll"}


def tagged(task, split="train"):
    """Return the words and labels of each sentence of a split."""
    sentences = []
    for example in task.get_examples(split):
        names = list(task.label_mapping)
        pairs = zip(example.words, example.labels, strict=True)
        sentences.append([f"{word}/{names[i]}" for word, i in pairs])
    return sentences


def test_conll_u_has_the_words_of_its_numbered_lines(describe):
    columns = {"columns": {"word": 1, "tag": 3}, "tags": "words"}
    texts = {"train.txt": CONLL_U, "dev.txt": CONLL_U}
    task = describe({**TAGGING, **columns}, texts)
    pairs = "Sanal/ADJ parçalar/NOUN sa/AUX bunu/PRON yapamazlar/VERB"
    assert tagged(task) == [[*pairs.split(), "./PUNCT"]]
    assert "yok" not in task.label_mapping and not task.row_report.rows
    counts = {conll.COMMENTS: 3, conll.RANGES: 1, conll.EMPTY_NODES: 1}
    expected = {
        f"{split}: {kind}": count
        for split in ("train", "dev")
        for kind, count in counts.items()
    }
    losses = {name: task.row_report.losses[name] for name in expected}
    assert losses == expected


def test_germeval_has_no_words_of_its_comments(describe):
    columns = {"columns": {"word": 1, "tag": 2}}
    texts = {"train.txt": GERMEVAL, "dev.txt": GERMEVAL}
    task = describe({**TAGGING, **columns}, texts)
    assert tagged(task) == [
        ["Aufgrund/O", "New/B-LOC", "York/E-LOC"],
        ["Hallo/O"],
    ]
    assert task.row_report.losses[f"train: {conll.COMMENTS}"] == 2


def test_files_of_comments_alone_are_refused_with_their_count(describe):
    text = "# a = b\n\n# c = d\n"
    task = describe(TAGGING, {"train.txt": text, "dev.txt": text})
    message = r"no usable sentence .*train: comment lines: 2"
    refused(message, task.get_examples, "train")


def test_predict_counts_lines_without_a_word(tmp_path, capsys):
    path = tmp_path / "a.conllu"
    path.write_text(CONLL_U)
    args = parse_flags(["", "--model=m", "--columns=words=1", str(path)])
    with InputStream(args, {"words": ["words", 0]}) as run:
        (read,) = run.lines()
        run.report_summary("answers")
    sentence = "Sanal parçalar sa bunu yapamazlar .".split()
    assert (read.line, read.values) == (4, {"words": sentence})
    printed = capsys.readouterr().err
    assert "3 comment lines left out; 1 line of ranges (such as 2-3)" in printed


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.tsv"])
def test_a_line_of_other_white_space_is_not_blank(tmp_path, name):
    path = tmp_path / name
    path.write_text("\u3000\n \n\t\n")
    source = Source(str(path), columns={"text": [0]})
    reads = list(source)
    assert [read.line for read in reads] == [1] and source.blank == 2


TEXT = {"columns": {"text_a": "text", "label": "label"}}
MANY = {**TEXT, "type": "multilabel"}
NUMBERS = {**TEXT, "type": "regression", "range": [1, 5]}


def examples_of(describe, description, ending, text, **hparams):
    """Return a task's training examples as (text, label), and its bad rows."""
    files = {f"{split}.{ending}": text for split in ("train", "dev")}
    task = describe(description, files, **hparams)
    read = [(e.text_a, e.label) for e in task.get_examples("train")]
    rows = [r for r in task.row_report.rows if "train" in r.path]
    return read, [(r.line, r.found, r.expected, r.skipped) for r in rows]


PANDAS_TSV = (
    'text\tlabel\n"He said ""hi"" there"\tpos\n"line one\nline two"\tneg\n'
    "plain\tpos\n"
)


def test_quotes_of_tsv_are_text_and_half_a_row_is_reported(describe):
    read, rows = examples_of(describe, TEXT, "tsv", PANDAS_TSV)
    assert read == [
        ('"He said ""hi"" there"', "pos"),
        ('line two"', "neg"),  # The original reads it so.
        ("plain", "pos"),
    ]
    assert [(line, skipped) for line, _, _, skipped in rows] == [
        (3, True),
        (4, False),
    ]
    assert all("lines 3 to 4 look like a single row" in row[2] for row in rows)
    with pytest.raises(
        UserError, match=r"train\.tsv:3.*look like a single row"
    ):
        examples_of(describe, TEXT, "tsv", PANDAS_TSV, strict_rows=True)


def test_predict_answers_no_half_of_a_quoted_row(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(PANDAS_TSV)
    reads = list(Source(str(path), columns={"text": ["text"]}))
    assert [r.line for r in reads if r.values is None] == [3, 4]
    assert [r.line for r in reads if r.values is not None] == [2, 5]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('a\tb\n"x\n\ny"\tz\nu\tv\n', [2, 3, 4]),
        ('a\tb\nz\t"x\ny"\nu\tv\n', [2, 3]),
        ('a\tb\tc\n"x\ny"\t"u\nv"\tw\n', [2, 3, 4]),
        # Here the quotation marks are text.
        ('a\tb\n"x\tz\ny"\tz\n', []),
        ('a\tb\n"x\nu\tv\ny"\tz\n', []),
        ('a\tb\n"x\nu\tv\n', []),
        ('a\n"x\ny"\n', []),
        ('a\tb\n"x\ny"\tz\tw\n', []),
    ],
)
def test_parts_of_a_quoted_row_are_found_by_quotes_and_cells(
    tmp_path, text, lines
):
    path = tmp_path / "a.tsv"
    path.write_text(text)
    rows = list(tables.read_rows(str(path), "tsv"))
    assert [row.line for row in rows if row.expected] == lines
    cells = [line.split("\t") if line else [] for line in text.splitlines()]
    assert [row.cells for row in rows] == cells


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["\"['x', 'y']\"", "\"['y']\"", "[]"], [("x", "y"), ("y",), ()]),
        (['"[""x"", ""y""]"', "x"], [("x", "y"), ("x",)]),
        (["\"('x', 'y')\"", "\"{'y'}\""], [("x", "y"), ("y",)]),
        (['"[1, 2]"', '"[1.0]"', "2"], [("1", "2"), ("1",), ("2",)]),
        (['"x,y"', '""'], [("x", "y"), ()]),
    ],
)
def test_a_cell_that_holds_a_list_is_its_labels(describe, cells, labels):
    text = "".join(f"a,{cell}\n" for cell in cells)
    read, rows = examples_of(describe, MANY, "csv", f"text,label\n{text}")
    assert [label for _, label in read] == labels
    assert not rows


@pytest.mark.parametrize(
    ("description", "cell", "expected"),
    [
        (MANY, "\"['z' 'y']\"", "labels separated by ',', or a list"),
        (MANY, '"[x, y]"', "labels separated by ',', or a list"),
        (MANY, "\"[['x']]\"", "a text, a number, true or false"),
        (TEXT, "\"['x']\"", "one label instead of a list"),
        (TEXT, '"[""x"", ""y""]"', "one label instead of a list"),
        (NUMBERS, "[3.5]", "a number from 1 to 5"),
        (NUMBERS, "1_0", "a number from 1 to 5"),
        (NUMBERS, '"3,5"', "a number from 1 to 5"),
    ],
)
def test_a_list_elsewhere_is_a_bad_row(describe, description, cell, expected):
    text = f"text,label\na,2\nb,{cell}\nc,3\n"
    read, rows = examples_of(describe, description, "csv", text)
    assert len(read) == 2
    ((line, value, expectation, _),) = rows
    assert (line, value[:6]) == (3, "label ")
    assert expectation.startswith(expected)


@pytest.mark.parametrize(
    ("description", "first_cell", "labels"),
    [
        (MANY, "\"[x],['y']\"", [("[x]", "['y']"), ("['y']",)]),
        (TEXT, "[x]", ["[x]", "['y']"]),
    ],
    ids=["multilabel", "classification"],
)
def test_brackets_of_described_labels_are_no_lists(
    describe, description, first_cell, labels
):
    described = {**description, "labels": ["[x]", "['y']"]}
    text = f"text,label\na,{first_cell}\nb,['y']\n"
    read, rows = examples_of(describe, described, "csv", text)
    assert [label for _, label in read] == labels
    assert not rows


def _json_rows(*rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def test_numbers_are_texts_and_labels_by_their_value(describe):
    rows = [
        {"text": 2012, "label": 1},
        {"text": "a", "label": 1.0},
        {"text": "b", "label": "1"},
        {"text": "c", "label": 0.5},
        {"text": 10**30, "label": True},
        {"text": "d", "label": "true"},
    ]
    read, bad = examples_of(describe, TEXT, "jsonl", _json_rows(*rows))
    labels = ["1", "1", "1", "0.5", "true", "true"]
    assert [label for _, label in read] == labels and not bad
    assert [read[0][0], read[4][0]] == ["2012", f"{10**30}"]


def test_numbers_as_labels_match_the_notation_of_the_description(describe):
    described = {**TEXT, "labels": ["1.0", "2.0"]}
    text = _json_rows(*({"text": "a", "label": n} for n in (1.0, 2.0, 1)))
    read, bad = examples_of(describe, described, "jsonl", text)
    assert [label for _, label in read] == ["1.0", "2.0"]
    assert bad[0][1:3] == ("label 1", "one of: 1.0, 2.0")


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [
        ("1", "1.0", "in the notation of numbers"),
        ("-2.00", "-2", "in the notation of numbers"),
        ("True", "true", "in upper and lower case"),
        ("a", "a\xa0", "in white space"),
        ("1", "+1", "in the notation of numbers"),
        ("-0", "0", "in the notation of numbers"),
        ("+0", "-0.0", "in the notation of numbers"),
        ("01", "+01.0", "in the notation of numbers"),
        ("1.5", "+1.5", "in the notation of numbers"),
        (" 1", "+1", "in the notation of numbers"),
        ("caf\xe9", "cafe\u0301", "in the Unicode form"),
        ("\u1112\u1161\u11ab", "\ud55c", "in the Unicode form"),
        ("pos", "pos\u200b", "in invisible characters"),
        ("pos", "p\u2060o\xads", "in invisible characters"),
        ("x\u200ey", "x\u200dy", "in invisible characters"),
        ("1", "\ufeff1.0", "in the notation of numbers"),
        ("e\u200b\u0301", "\xe9", "in the Unicode form"),
    ],
)
def test_labels_of_equal_meaning_are_refused(describe, first, second, how):
    text = f"text,label\na,{first}\nb,{second}\n"
    refused(f"differ only {how}", examples_of, describe, TEXT, "csv", text)


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        (["caf\xe9", "cafe\u0301"], r"'cafe\u0301' and 'caf\xe9'"),
        (["pos", "pos\u200b"], r"'pos' and 'pos\u200b'"),
        (["\u4f60", "\u4f60 "], "'\u4f60' and '\u4f60 '"),
    ],
)
def test_labels_that_look_equal_are_shown_by_their_characters(labels, texts):
    message = re.escape(f"its labels {texts} differ only in")
    refused(message, refuse_equal_labels, "mine", sorted(labels))


@pytest.mark.parametrize(
    ("first", "second"), [("L\xe9", "Le\u0301"), ("L", "L\xad"), ("1", "1.0")]
)
def test_types_of_spans_of_equal_meaning_are_refused(describe, first, second):
    spec = {"type": "tagging", "format": "conll"}
    text = f"a B-{first}\nb B-{second}\n\n"
    refused("differ only in", examples_of, describe, spec, "txt", text)


def test_classes_of_words_of_equal_meaning_are_refused(describe):
    spec = {"type": "tagging", "tags": "words"}
    text = _json_rows({"words": ["a", "b"], "tags": [1, "1.0"]})
    message = "'1' and '1.0' differ only in the notation"
    refused(message, examples_of, describe, spec, "jsonl", text)


# "01" and "1.10" may be codes and versions.
@pytest.mark.parametrize(
    "labels", ["01", "-1", "1.5", "1.50", "001.0", "A1", "+", "\u0661", "\xb9"]
)
def test_labels_of_different_meanings_are_classes(describe, labels):
    text = f"text,label\na,1\nb,{labels}\n"
    read, _ = examples_of(describe, TEXT, "csv", text)
    assert [label for _, label in read] == ["1", labels]


@pytest.mark.parametrize(
    ("row", "named_value", "expected"),
    [
        ({"text": 4.5}, "text is the number 4.5", "a text"),
        ({"text": None}, "text is null", "a text"),
        ({"text": True}, "text is true", "a text"),
        ({"text": ["a"]}, "text is a list ['a']", "a text"),
        ({"text": {"a": 1}}, "text is an object {'a': 1}", "a text"),
        ({"label": None}, "label is null", "one of"),
        ({"label": ["x"]}, "label is a list ['x']", "a text, a number"),
        ({"label": float("nan")}, "label nan", "a text, a num"),
        ({"label": 7}, "label 7", "one of: x, y"),
    ],
)
def test_a_value_of_another_type_is_named_with_its_type(
    describe, row, named_value, expected
):
    good = [{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]
    described = {**TEXT, "labels": ["x", "y"]}
    text = _json_rows(*good, {**good[0], **row})
    _, ((line, *seen, _),) = examples_of(describe, described, "jsonl", text)
    assert line == 3 and seen[0] == named_value
    if row != {"label": None}:
        assert seen[1].startswith(expected)


@pytest.mark.parametrize(
    ("row", "named_value"),
    [
        ({"words": "a b"}, "words is the text 'a b'"),
        ({"words": "['a', 'b']"}, "words is the text \"['a', 'b']\""),
        ({"words": ["a", 4.5]}, "the number 4.5 in words"),
        ({"words": None}, "words is null"),
        ({"words": []}, "no word under words"),
        ({"tags": ["x"]}, "1 tags for 2 words"),
        ({"tags": ["x", None]}, "null in tags"),
    ],
)
def test_bad_lists_of_words_are_named_with_their_type(
    describe, row, named_value
):
    good = {"words": ["a", 2012], "tags": [0, "x"]}
    text = _json_rows(good, {**good, **row})
    files = {"train.jsonl": text, "dev.jsonl": text}
    task = describe({"type": "tagging", "tags": "words"}, files)
    assert tagged(task) == [["a/0", "2012/x"]]
    assert (task.row_report.rows[0].line, task.row_report.rows[0].found) == (
        2,
        named_value,
    )


def test_the_row_numbers_of_pandas_are_no_texts(describe):
    text = ",text,label\n0,a,x\n1,b,y\n"
    read, _ = examples_of(describe, TEXT, "csv", text)
    assert read == [("a", "x"), ("b", "y")]
    by_number = {"columns": {"text_a": 0, "label": 2}}
    message = r"train\.csv:1: column 0, selected for text_a, has no name"
    refused(message, examples_of, describe, by_number, "csv", text)


ARRAY = '[{"text": "a", "label": "x"},\n{"text": "b", "label": "y"}]\n'


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        (ARRAY, [1, 2]),
        (f"\n{ARRAY}", [2, 3]),
        (ARRAY.replace("\n", ""), [1]),
        ('[\n{"text": "a", "label": "x"}\n]\n', [1, 2, 3]),
    ],
)
def test_a_json_array_is_named_with_a_remedy(tmp_path, text, bad):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    rows = list(tables.read_rows(str(path), "jsonl"))
    assert [row.line for row in rows if row.expected] == bad
    first = rows[bad[0] - 1]
    assert first.content.startswith("a JSON array: [")
    assert "jq -c '.[]' FILE converts an array" in first.expected
    reads = list(Source(str(path), columns={"text": ["text"]}))
    assert [r.line for r in reads if r.values is None] == bad


FAILING = {
    "lists": (
        TEXT,
        "csv",
        "text,label\na,\"['x']\"\n",
        "one label instead of a list",
    ),
    "no cells": (
        TEXT,
        "csv",
        'text,label\na,""\n',
        "found label ''; expected a",
    ),
    "JSON lists": (TEXT, "jsonl", '{"text":"a","label":[1]}\n', "a list .1.;"),
    "texts": (
        {**TEXT, "type": "regression"},
        "csv",
        "text,label\na,high\n",
        "found label 'high'; expected a number",
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_bad_labels_alone_are_named_with_the_error(describe, name):
    description, ending, text, message = FAILING[name]
    refused(
        rf"(?s)distinct .*train\.{ending}:[12]: .*{message}",
        examples_of,
        describe,
        description,
        ending,
        text,
    )
