# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inputs are read one at a time, and answers written as complete files."""

import fcntl
import json
import os
import tracemalloc

import pytest

from configure.errors import UserError
from electra_tf.prediction.reader import Source
from electra_tf.prediction.writer import answer_file, choose_format
from tests.conftest import read_json, refused

PAIR = {"text_a": ["text_a", 0], "text_b": ["text_b", 1]}
ONE = {"text_a": ["text", 0]}
LAST = {"text_a": [-1]}


@pytest.fixture
def read(tmp_path):
    """Return a function that returns good inputs, bad lines and the source."""

    def make(name, text, columns=ONE, **settings):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        source = Source(str(path), columns=columns, **settings)
        rows = list(source)
        good = [(r.line, r.values) for r in rows if r.values is not None]
        bad = [(r.line, r.content) for r in rows if r.values is None]
        return good, bad, source

    return make


def test_texts_are_read_line_by_line(read):
    good, bad, source = read("a.txt", b"\xef\xbb\xbfone\r\n\n \ntwo\tx\n\xff\n")
    assert good == [(1, {"text_a": "one"}), (4, {"text_a": "two\tx"})]
    assert bad == [(5, "b'\\xff'")]
    assert source.blank == 2 and source.lines.done == source.lines.size()


OBJECT = '{"text": "a", "id": 3, "x": null}'


def test_objects_are_read_with_their_ids(read):
    lines = [OBJECT, '"b"', "{broken", "7", '{"other": 1}', ""]
    lines.append('{"text": null}')
    good, bad, source = read("a.jsonl", "\n".join(lines), id_column="id")
    assert good == [(1, {"text_a": "a"})]  # A text alone has no id.
    assert [line for line, _ in bad] == [2, 3, 4, 5, 7]
    assert next(iter(source)).key == 3


@pytest.mark.parametrize("key", ["idd", 0])
def test_an_object_without_the_id_is_bad(read, key):
    good, bad, _ = read("b.jsonl", OBJECT, id_column=key)
    assert (good, bad) == ([], [(1, "the keys text, id, x")])


def test_a_null_value_is_not_replaced_by_another_key(read):
    _, bad, _ = read("b.jsonl", OBJECT, {"text_a": ["x", "text"]})
    assert bad == [(1, "x: null")]


@pytest.mark.parametrize(
    ("line", "good", "bad"),
    [
        ('["a", "b"]', [(1, {"text_a": "a", "text_b": "b"})], []),
        ('["a", "b", "c"]', [], [(1, "3 parts")]),
    ],
)
def test_lists_have_the_columns_in_order(read, line, good, bad):
    assert read("b.jsonl", line, PAIR)[:2] == (good, bad)


SENTENCES = "-DOCSTART- O\n\nEU B\nrejects O\n\n\nthe O\n"


@pytest.mark.parametrize(
    ("text", "options", "good", "bad"),
    [
        (SENTENCES, ["words", 0], [(3, ["EU", "rejects"]), (7, ["the"])], []),
        (SENTENCES, [1], [(3, ["B", "O"]), (7, ["O"])], []),
        ("10\u00a0000\tB\n", [0], [(1, ["10\u00a0000"])], []),
        # A missing word is not replaced by another column.
        ("EU B\nof\nthe O\n\na O\n", [1], [(5, ["O"])], [(2, "of")]),
    ],
)
def test_sentences_are_read_from_conll(read, text, options, good, bad):
    sentences, bad_lines, _ = read("a.conll", text, {"words": options})
    assert [(line, values["words"]) for line, values in sentences] == good
    assert bad_lines == bad


TABLE = "id\ttext_b\ttext_a\n7\tB\tA\n8\tC\n9\t\tD\n"
QUOTED = b'text,n\n"a ""b"",\nc",1\nbad \xff,2\nd,3\n'


@pytest.mark.parametrize(
    ("name", "text", "columns", "settings", "good"),
    [
        ("a.tsv", TABLE, PAIR, {}, [(2, ["A", "B"]), (4, ["D", ""])]),
        ("b.tsv", '"A\tB\n', PAIR, {}, [(1, ['"A', "B"])]),
        ("c.tsv", "x\ty\nA\tB\n", PAIR, {"header": True}, [(2, ["A", "B"])]),
        ("d.tsv", "x\tA\ny\tB\n", LAST, {}, [(1, ["A"]), (2, ["B"])]),
        ("a.csv", QUOTED, ONE, {}, [(2, ['a "b",\nc']), (5, ["d"])]),
    ],
)
def test_tables_are_read_by_name_or_by_number(
    read, name, text, columns, settings, good
):
    rows, _, _ = read(name, text, columns, **settings)
    assert [(line, [*values.values()]) for line, values in rows] == good


@pytest.mark.parametrize(
    ("name", "text", "columns", "bad"),
    [
        ("a.tsv", TABLE, PAIR, [(3, "2 cells: 8|C")]),
        ("a.csv", QUOTED, ONE, [(4, "b'bad \\xff,2'")]),
        ("b.csv", "text,n\na,1\nb, c,2\nd,3,\n", ONE, [(3, "3 cells: b| c|2")]),
    ],
)
def test_rows_with_more_or_fewer_cells_than_the_header_are_bad(
    read, name, text, columns, bad
):
    assert read(name, text, columns)[1] == bad


HEADED = {"header": True}
BARE = {"header": False}


@pytest.mark.parametrize(
    ("name", "text", "columns", "settings", "good", "bad"),
    [
        ("a.csv", "x\nHello, world\n", ONE, BARE, ["x"], "2 cells: Hello| w"),
        ("a.csv", "x\n\nHello, y\n", ONE, {}, ["x"], "2 cells: Hello| y"),
        ("a.tsv", "x\ty\na\tb\tc\n", ONE, BARE, ["x"], "3 cells: a|b|c"),
        ("b.csv", "t\nHello, world\n", ONE, HEADED, [], "2 cells: Hello| wo"),
        # A column from the end is that of the header or of the first row.
        ("c.tsv", "x\tA\ny\tz\tB\n", LAST, BARE, ["A"], "3 cells: y|z|B"),
        ("c.tsv", "x\tA\nB\n", LAST, BARE, ["A"], "1 cells: B"),
        ("c.csv", "n,t\n1,A\n,\nB\n", LAST, HEADED, ["A"], "1 cells: B"),
        ("c.csv", "n,t\n1,A,\n2\n", LAST, HEADED, ["A"], "1 cells: 2"),
        ("d.csv", "x\nA\n", {"text_a": [-3]}, HEADED, [], "1 cells: A"),
    ],
)
def test_no_text_is_cut_or_taken_from_another_column(
    read, name, text, columns, settings, good, bad
):
    rows, bad_rows, _ = read(name, text, columns, **settings)
    assert [values["text_a"] for _, values in rows] == good
    assert [content[: len(bad)] for _, content in bad_rows] == [bad]


def test_one_column_by_two_numbers_is_refused(read):
    columns = {"text_a": [0], "text_b": [-2]}
    message = "are read from the same column"
    refused(message, read, "a.csv", "x,y\n", columns, header=False)


def test_an_input_with_two_values_of_a_key_is_bad(read):
    text = '{"text": "a", "text": "b"}\n["c"]\n[{"k": 1, "k": 2}]\n'
    good, bad, _ = read("a.jsonl", text)
    assert good == [(2, {"text_a": ["c"]})]
    assert [line for line, _ in bad] == [1, 3]
    assert "more than one value of text: " in bad[0][1]
    assert "more than one value of k: " in bad[1][1]


def test_an_id_column_is_selected_by_number(read):
    _, bad, source = read("e.tsv", "A\tx\ny\n", {"text_a": [0]}, id_column=1)
    assert bad == [(2, "1 cells: y")] and next(iter(source)).key == "x"


@pytest.mark.parametrize(
    ("name", "text", "columns", "remedy"),
    [
        ("a.tsv", "review\tstars\nIt is good .\t5\n", ONE, "text_a=review"),
        ("a.csv", ",phrase\n0,bien sûr que non\n", ONE, "text_a=phrase"),
        ("b.tsv", "#1 String\tq2\nA b c\td\n", PAIR, "#1 String,text_b=q2"),
        ("c.tsv", "Review text\nIt is good .\n", {"text": [0]}, "text=Review"),
    ],
)
def test_a_header_with_different_names_is_refused(
    read, name, text, columns, remedy
):
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


SHARED = PAIR | {"text_b": [0]}
NAMED = {"text_a": ["x"]}
HEADER = {"header": True}


@pytest.mark.parametrize(
    ("message", "name", "text", "columns", "settings"),
    [
        ("cannot be inferred from the file name", "a.dat", "x", ONE, {}),
        ("Use tsv, csv or jsonl", "a.txt", "x\n", PAIR, {}),
        ("no column 'x' .* contains: a, b", "c.csv", "a,b\n", NAMED, HEADER),
        (
            "no column 'k' for ids",
            "a.csv",
            "text\n1\n",
            ONE,
            {"id_column": "k"},
        ),
        ("several columns 'text'", "b.csv", "text,text\na,b\n", ONE, {}),
        (
            "text_a and text_b are read from the same column",
            "d.csv",
            "a",
            SHARED,
            {},
        ),
    ],
)
def test_files_that_cannot_be_read_are_refused(
    read, message, name, text, columns, settings
):
    refused(message, read, name, text, columns, **settings)


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


def test_answers_in_tsv_have_a_column_for_each_value(tmp_path):
    path = str(tmp_path / "out.tsv")
    with answer_file(path, choose_format(path, None)) as write:
        write(ANSWER)
        write({"line": 4, "label": "z", "tags": ("O",)})
    lines = (tmp_path / "out.tsv").read_text().split("\n")
    assert [line.split("\t") for line in lines] == [
        "line label probabilities.x probabilities.y tags start".split(),
        ["3", "a b c", "0.25", str(1 / 3), '["O", null]', ""],
        ["4", "z", "", "", '["O"]', ""],
        [""],
    ]


def test_lone_surrogates_in_tsv_are_escapes(tmp_path):
    path = tmp_path / "out.tsv"
    with answer_file(str(path), "tsv") as write:
        write({"text": "half \ud83d", "tags": ["\udc00"]})
    assert path.read_text("utf-8") == 'text\ttags\nhalf \\ud83d\t["\\udc00"]\n'


def test_a_new_column_of_a_later_answer_is_refused(tmp_path):
    with answer_file(str(tmp_path / "out.tsv"), "tsv") as write:
        write({"line": 3})
        message = "columns that the first answer does not have: extra"
        refused(message, write, {"line": 5, "extra": 1})


def test_answers_in_json_lines_appear_when_complete(tmp_path):
    path = tmp_path / "out.jsonl"
    with answer_file(str(path), "jsonl") as write:
        write(ANSWER)
        assert not path.exists()
    assert read_json(path) == ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "half \ud83d",
        "\udc00\ud800",
        "a\u2028b\u2029",
        "a\x85b",
        "\U0001f600 \\u2028",
    ],
)
@pytest.mark.parametrize("name", ["out.jsonl", "out.tsv"])
def test_texts_in_json_are_unchanged_and_in_one_line(tmp_path, text, name):
    path = tmp_path / name
    with answer_file(str(path), choose_format(name, None)) as write:
        write({"words": [text]})
    line = path.read_text("utf-8").splitlines()[-1]
    value = json.loads(line)
    assert value == ([text] if name == "out.tsv" else {"words": [text]})


def test_an_existing_file_is_not_replaced(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("{}")
    with pytest.raises(UserError, match="--overwrite"):
        with answer_file(str(path), "jsonl"):
            pass


def test_after_an_error_the_answers_are_in_the_part_file(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("{}")
    with pytest.raises(RuntimeError):
        with answer_file(str(path), "jsonl", overwrite=True) as write:
            write({"line": 4})
            raise RuntimeError
    assert read_json(path) == {}
    (part,) = tmp_path.glob("out.jsonl.*.part")
    assert read_json(part) == {"line": 4}
    with answer_file(str(path), "jsonl", overwrite=True) as write:
        write(ANSWER)
    assert read_json(path) == ANSWER and not part.exists()


def test_an_output_in_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        with answer_file(str(tmp_path / "no" / "out"), "jsonl"):
            pass


def test_a_file_that_another_process_writes_is_refused_by_its_name(tmp_path):
    path, part = tmp_path / "out.jsonl", tmp_path / "out.jsonl.123.part"
    with open(part, "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="process 123 is writing this file"):
            with answer_file(str(path), "jsonl"):
                pass
    with answer_file(str(path), "jsonl") as write:
        write(ANSWER)
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_a_file_of_another_process_is_not_replaced(tmp_path):
    path = tmp_path / "out.jsonl"
    with pytest.raises(UserError, match="--overwrite"):
        with answer_file(str(path), "jsonl") as write:
            write(ANSWER)
            path.write_text("another process's")
    assert path.read_text() == "another process's"
