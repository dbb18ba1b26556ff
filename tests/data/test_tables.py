# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of TSV, CSV and JSON lines, bad ones included."""

import pytest

from configure.errors import UserError
from electra_tf.data import tables


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
        # Split at tabs and nothing else.
        (
            b'a\t"b\n\nc d\te\r\n',
            "tsv",
            [(1, ["a", '"b']), (2, []), (3, ["c d", "e"])],
        ),
        # Cells may be quoted and span lines.
        (
            b'a,"b, c\nd"\ne,f\n',
            "csv",
            [(1, ["a", "b, c\nd"]), (3, ["e", "f"])],
        ),
        (b"\xef\xbb\xbfa\tb\n", "tsv", [(1, ["a", "b"])]),
    ],
)
def test_cells_of_lines(rows, content, kind, expected):
    assert [(r.line, r.cells) for r in rows(content, kind)] == expected


def test_json_lines_are_objects(rows):
    found = rows(b'{"a": 1}\n[2]\n{"a"\n\n', "jsonl")
    assert [r.cells for r in found] == [{"a": 1}, {}, {}, {}]
    assert [bool(r.expected) for r in found] == [False, True, True, False]
    assert "line 1 column" in found[2].found


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl"])
def test_a_line_that_is_not_utf8_is_one_bad_row(rows, kind):
    found = rows(b'{"a": 1}\n\xff\n{"a": 1}\n', kind)
    assert len(found) == 3
    assert found[1].line == 2 and found[1].expected.startswith(
        "text in UTF-8 (iconv"
    )
    assert not found[0].expected and not found[2].expected


def test_the_format_is_declared_or_told_by_the_name(tmp_path):
    assert tables.file_format("x.CSV") == "csv"
    assert tables.file_format("x.txt") == "conll"
    assert tables.file_format("x.txt", "tsv") == "tsv"
    with pytest.raises(UserError, match="give format"):
        tables.file_format("x.dat")
    with pytest.raises(UserError, match="tsv, csv"):
        tables.file_format("x.tsv", "xml")
    with pytest.raises(UserError, match="no such file"):
        list(tables.read_rows(str(tmp_path / "x"), "tsv"))
    with pytest.raises(UserError, match="is a directory"):
        list(tables.read_rows(str(tmp_path), "tsv"))
