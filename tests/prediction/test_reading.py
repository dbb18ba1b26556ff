# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of questions, one at a time, and of answers, whole or not there."""

import fcntl
import os
import tracemalloc

import pytest

from configure.errors import UserError
from electra_tf.prediction.reader import Source
from electra_tf.prediction.writer import answer_file, choose_format
from tests.conftest import read_json, refused

PAIR = {"text_a": ["text_a", 0], "text_b": ["text_b", 1]}
ONE = {"text_a": ["text", 0]}


@pytest.fixture
def read(tmp_path):
    def make(name, text, columns=ONE, **settings):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        source = Source(str(path), columns=columns, **settings)
        found = list(source)
        good = [(r.line, r.values) for r in found if r.values is not None]
        bad = [(r.line, r.content) for r in found if r.values is None]
        return good, bad, source

    return make


def test_texts_json_and_conll_are_read_line_by_line(read):
    good, bad, source = read("a.txt", b"\xef\xbb\xbfone\r\n\n \ntwo\tx\n\xff\n")
    assert good == [(1, {"text_a": "one"}), (4, {"text_a": "two\tx"})]
    assert bad == [(5, "b'\\xff'")]
    assert source.blank == 2 and source.lines.done == source.lines.size()
    lines = [
        '{"text": "a", "id": 3, "x": null}',
        '"b"',
        "{broken",
        "7",
        '{"other": 1}',
        "",
        '{"text": null}',
    ]
    good, bad, source = read("a.jsonl", "\n".join(lines), id_column="id")
    assert good == [(1, {"text_a": "a"})]  # A text has no id.
    assert [line for line, _ in bad] == [2, 3, 4, 5, 7]
    for key in ("idd", 0):
        good, bad, _ = read("b.jsonl", lines[0], id_column=key)
        assert (good, bad) == ([], [(1, "the keys text, id, x")])
    # What is null is not answered from another key.
    options = {"text_a": ["x", "text"]}
    assert read("b.jsonl", lines[0], options)[1] == [(1, "x: null")]
    assert next(iter(source)).key == 3
    good, _, _ = read("b.jsonl", '["a", "b"]', PAIR)
    assert good == [(1, {"text_a": "a", "text_b": "b"})]
    text = "-DOCSTART- O\n\nEU B\nrejects O\n\n\nthe O\n"
    good, _, _ = read("a.conll", text, {"words": ["words", 0]})
    assert good == [(3, {"words": ["EU", "rejects"]}), (7, {"words": ["the"]})]
    good, _, _ = read("d.conll", "10\u00a0000\tB\n", {"words": [0]})
    assert good == [(1, {"words": ["10\u00a0000"]})]
    good, _, _ = read("b.conll", text, {"words": [1]})
    assert good[1] == (7, {"words": ["O"]})
    # A word that is not there is not replaced by another.
    good, bad, _ = read("c.conll", "EU B\nof\nthe O\n\na O\n", {"words": [1]})
    assert (good, bad) == ([(5, {"words": ["O"]})], [(2, "of")])
    good, bad, _ = read("c.jsonl", '["a", "b", "c"]', PAIR)
    assert (good, bad) == ([], [(1, "3 parts")])


def test_tables_are_read_by_name_or_by_number(read):
    tsv = "id\ttext_b\ttext_a\n7\tB\tA\n8\tC\n9\t\tD\n"
    good, bad, _ = read("a.tsv", tsv, PAIR)
    first, last = {"text_a": "A", "text_b": "B"}, {"text_a": "D", "text_b": ""}
    assert good == [(2, first), (4, last)]
    assert bad == [(3, "2 cells: 8|C")]
    good, _, _ = read("b.tsv", '"A\tB\n', PAIR)
    assert good == [(1, {"text_a": '"A', "text_b": "B"})]
    good, _, _ = read("c.tsv", "x\ty\nA\tB\n", PAIR, header=True)
    assert good == [(2, {"text_a": "A", "text_b": "B"})]
    good, _, _ = read("d.tsv", "x\tA\ny\tz\tB\n", {"text_a": [-1]})
    assert good == [(1, {"text_a": "A"}), (2, {"text_a": "B"})]
    _, bad, source = read("e.tsv", "A\tx\ny\n", {"text_a": [0]}, id_column=1)
    assert bad == [(2, "1 cells: y")] and next(iter(source)).key == "x"
    good, bad, _ = read("a.csv", b'text,n\n"a ""b"",\nc",1\nbad \xff,2\nd,3\n')
    assert good == [(2, {"text_a": 'a "b",\nc'}), (5, {"text_a": "d"})]
    assert [line for line, _ in bad] == [4]
    # Which of them is the text, where there are more cells than names?
    good, bad, _ = read("b.csv", "text,n\na,1\nb, c,2\nd,3,\n")
    assert [line for line, _ in good] == [2, 4]
    assert bad == [(3, "3 cells: b| c|2")]


@pytest.mark.parametrize(
    ("name", "text", "columns", "remedy"),
    [
        ("a.tsv", "review\tstars\nIt is good .\t5\n", ONE, "text_a=review"),
        ("a.csv", ",phrase\n0,bien sûr que non\n", ONE, "text_a=phrase"),
        ("b.tsv", "#1 String\tq2\nA b c\td\n", PAIR, "#1 String,text_b=q2"),
        ("c.tsv", "Review text\nIt is good .\n", {"text": [0]}, "text=Review"),
    ],
)
def test_a_header_of_other_names_is_no_data(read, name, text, columns, remedy):
    refused(rf"{name}:1: found .*{remedy}", read, name, text, columns)
    good, _, _ = read(name, text, columns, header=False)
    assert [line for line, _ in good] == [1, 2]
    good, _, _ = read(name, text, columns, header=True)
    assert [line for line, _ in good] == [2]


@pytest.mark.parametrize(
    "text", ["Great!\nIt is good .\n", "good\nbad\n", "good\n", "7\nIt is .\n"]
)
def test_rows_that_do_not_look_like_a_header_are_data(read, text):
    good, _, _ = read("a.tsv", text)
    assert [line for line, _ in good] == [*range(1, text.count("\n") + 1)]


def test_what_cannot_be_read_is_refused(read):
    refused("cannot be inferred from its name", read, "a.dat", "x")
    with pytest.raises(UserError, match="no column 'title' .* names: a, b"):
        read("c.csv", "a,b\n1,2\n", {"text_a": ["title"]}, header=True)
    refused("use tsv, csv or jsonl", read, "a.txt", "x\n", PAIR)
    refused(
        "no column 'key' for ids", read, "a.csv", "text\n1\n", id_column="key"
    )
    refused("several columns 'text'", read, "b.csv", "text,text\na,b\n")
    one = {**PAIR, "text_b": [0]}
    refused("text_a and text_b have the same column", read, "d.csv", "a", one)


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"x, y"\n' * 30_000)
    source = Source(str(path), columns=ONE, header=False)
    tracemalloc.start()
    assert sum(1 for _ in source) == 30_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300_000


ANSWER = {
    "line": 3,
    "label": "a\tb\u2028c",
    "probabilities": {"x": 0.25, "y": 1 / 3},
    "tags": ["O", None],
    "start": None,
}


def test_answers_are_whole_files_of_lines_or_columns(tmp_path):
    path = tmp_path / "out.tsv"
    with answer_file(str(path), choose_format(str(path), None)) as write:
        write(ANSWER)
        write({"line": 4, "label": "z", "tags": ("O",)})
        refused(
            "no columns extra, a later one has", write, {"line": 5, "extra": 1}
        )
    assert [line.split("\t") for line in path.read_text().split("\n")] == [
        "line label probabilities.x probabilities.y tags start".split(),
        ["3", "a b c", "0.25", str(1 / 3), '["O", null]', ""],
        ["4", "z", "", "", '["O"]', ""],
        [""],
    ]
    path = tmp_path / "out.jsonl"
    with answer_file(str(path), "jsonl") as write:
        write(ANSWER)
        assert not path.exists()
    assert read_json(path) == ANSWER
    with pytest.raises(UserError, match="--overwrite"):
        with answer_file(str(path), "jsonl"):
            pass
    with pytest.raises(RuntimeError):
        with answer_file(str(path), "jsonl", overwrite=True) as write:
            write({"line": 4})
            raise RuntimeError
    assert read_json(path) == ANSWER
    (part,) = tmp_path.glob("out.jsonl.*.part")
    assert read_json(part) == {"line": 4}
    with answer_file(str(path), "jsonl", overwrite=True) as write:
        write(ANSWER)
    assert not part.exists()
    with pytest.raises(UserError, match="no such folder"):
        with answer_file(str(tmp_path / "no" / "out"), "jsonl"):
            pass


def test_a_file_that_another_process_writes_is_refused_by_its_name(tmp_path):
    path, part = tmp_path / "out.jsonl", tmp_path / "out.jsonl.123.part"
    with open(part, "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="process 123 is writing it"):
            with answer_file(str(path), "jsonl"):
                pass
    with answer_file(str(path), "jsonl") as write:
        write(ANSWER)
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_a_file_that_appeared_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "out.jsonl"
    with pytest.raises(UserError, match="--overwrite"):
        with answer_file(str(path), "jsonl") as write:
            write(ANSWER)
            path.write_text("another process's")
    assert path.read_text() == "another process's"
