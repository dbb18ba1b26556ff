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
