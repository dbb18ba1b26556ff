# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of tables are read, and bad rows are named."""

import pytest

from electra_tf.data import tables
from tests.conftest import refused


@pytest.fixture
def rows(tmp_path):
    def read(content, kind, **options):
        path = tmp_path / f"file.{kind}"
        path.write_bytes(content)
        return list(tables.read_rows(str(path), kind, **options))

    return read


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        # TSV is split only at tabs.
        (b'a\t"b\n\nc d\r\n', "tsv", [(1, ["a", '"b']), (2, []), (3, ["c d"])]),
        # Cells of CSV may be quoted and span lines.
        (b'a,"b, c\nd"\ne\n', "csv", [(1, ["a", "b, c\nd"]), (3, ["e"])]),
        (b"\xef\xbb\xbfa\tb\n", "tsv", [(1, ["a", "b"])]),
        # Only the row with a wrong end is bad.
        (b'"a\nb\xff\nc"x\nd\n', "csv", [(2, []), (4, ["d"])]),
    ],
)
def test_cells_of_lines(rows, content, kind, expected):
    assert [(r.line, r.cells) for r in rows(content, kind)] == expected


def test_a_long_cell_is_one_cell(rows):
    text = "of two thousand pages\n" * 9_000
    read = rows(f'"{text}",1\nnext,0\n'.encode(), "csv")
    assert [row.cells for row in read] == [[text, "1"], ["next", "0"]]


def test_json_lines_are_objects(rows):
    read = rows(b'{"a": 1}\n[2]\n{"a"\n\n', "jsonl")
    assert [r.cells for r in read] == [{"a": 1}, {}, {}, {}]
    assert [bool(r.expected) for r in read] == [False, True, True, False]
    assert "line 1 column" in read[2].content


@pytest.mark.parametrize("line", [b"{}", b" { }\r", b"\t{}"])
@pytest.mark.parametrize("any_json", [True, False])
def test_an_object_without_keys_is_not_a_blank_line(rows, line, any_json):
    content = b'{"a": 1}\n' + line + b"\n\n"
    _, bad, blank = rows(content, "jsonl", any_json=any_json)
    assert bad == (2, {}, "{}", "an object with keys")
    assert blank == (3, {}, "", "")


def test_objects_without_keys_are_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{}\n')
    message = r"a\.jsonl:2: found \{\}; expected an object with keys"
    refused(message, list, tables.read_objects(str(path)))


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b'{"a": 1, "b": 2, "a": 1}', "a"),
        (b'{"x": [{"b": 1, "b": 2}]}', "b"),
        (b'{"a": 1, "\\u0061": 2}', "a"),
    ],
)
@pytest.mark.parametrize("any_json", [True, False])
def test_an_object_with_two_values_of_a_key_is_bad(rows, line, key, any_json):
    content = b'{"a": 1}\n' + line + b'\n{"a": 3}\n'
    first, bad, last = rows(content, "jsonl", any_json=any_json)
    assert [first.cells, bad.cells, last.cells] == [{"a": 1}, {}, {"a": 3}]
    assert bad.content.startswith(f"more than one value of {key}: ")
    assert (bad.line, bad.expected) == (2, "one value of each key")


def test_objects_with_two_values_of_a_key_are_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1}\n{"id": 2, "id": 3}\n')
    message = r"a\.jsonl:2: found more than one value of id.*one value of each"
    refused(message, lambda: list(tables.read_objects(str(path))))


@pytest.mark.parametrize(
    ("content", "has_header", "width", "bad"),
    [
        (b"a,b\nx,y\nx,y,z\nx,y,\n", True, 2, {3: "the header"}),
        (b"x,y\nx,y,z\nx\nx,y,,\n", False, 2, {2: "line 1"}),
        (b"x,y,z\nx,y\n", False, 3, {}),
        (b"\n\xff\nx\nx,y\n", False, 1, {4: "line 3"}),
        (b"\nx\nx,y\n", True, 1, {3: "line 2"}),  # a blank header
        (b"", True, 0, {}),
    ],
)
def test_rows_are_limited_to_the_header_or_the_first_row(
    tmp_path, content, has_header, width, bad
):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    rows = tables.read_rows(str(path), "csv")
    header = next(rows, None) if has_header else None
    found_width, limited = tables.limit_rows(rows, header)
    limited = list(limited)
    assert found_width == width
    assert all(len(row.cells) <= width for row in limited)
    surplus = {r.line: r.expected for r in limited if "as in" in r.expected}
    expected = {n: f"{width} cells, as in {row}" for n, row in bad.items()}
    assert surplus == expected


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl"])
def test_a_line_that_is_not_utf8_is_one_bad_row(rows, kind):
    first, bad, last = rows(b'{"a": 1}\n\xff\n{"a": 1}\n', kind)
    assert bad.line == 2 and "UTF-8 (convert" in bad.expected
    assert not first.expected and not last.expected


@pytest.mark.parametrize(
    ("path", "declared", "expected"),
    [
        ("x.CSV", None, "csv"),
        ("x.txt", None, "conll"),
        ("x.txt", "tsv", "tsv"),
    ],
)
def test_the_format_is_declared_or_that_of_the_extension(
    path, declared, expected
):
    assert tables.resolve_format(path, declared) == expected


@pytest.mark.parametrize(
    ("path", "declared", "message"),
    [("x.dat", None, "Set format"), ("x.tsv", "xml", "one of tsv, csv")],
)
def test_an_unknown_format_is_refused(path, declared, message):
    refused(message, tables.resolve_format, path, declared)
