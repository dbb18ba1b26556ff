# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lines are read one by one; unreadable lines have a reason."""

import gzip
import io

import pytest

from electra_tf.files.lines import Line, LineReader
from tests.conftest import refused


@pytest.fixture
def lines(tmp_path):
    def read(content, name="a.txt"):
        (tmp_path / name).write_bytes(content)
        reader = LineReader(str(tmp_path / name))
        return list(reader), reader

    return read


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_text_in_utf_16_is_refused_by_name(lines, encoding):
    message = r"a\.txt:1: found UTF-16 text.*expected UTF-8.*iconv"
    refused(message, lines, "a\tx\nb\ty\n".encode(encoding))


def test_only_newlines_end_lines(lines):
    read, reader = lines("\ufeffa\u2028b\r\n\nc".encode())
    assert [line.text for line in read] == ["a\u2028b", "", "c"]
    assert [line.number for line in read] == [1, 2, 3]
    assert reader.done == reader.size() == 12


@pytest.mark.parametrize(
    "content",
    [b"one\rtwo", b"a\tx\r\rb\ty\r", b"\xef\xbb\xbfone\rtwo\r", b"\r\rone"],
)
@pytest.mark.parametrize("name", ["a.txt", "a.gz"])
def test_carriage_returns_alone_do_not_end_lines(lines, content, name):
    if name.endswith(".gz"):
        content = gzip.compress(content)
    refused("1: found carriage returns, but no", lines, content, name)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"one\r", ["one"]),
        (b"\r\n", [""]),
        (b"one\rtwo\n", ["one\rtwo"]),
        (b"one\nt\rwo", ["one", "t\rwo"]),
    ],
)
def test_carriage_returns_within_lines_are_text(lines, content, expected):
    assert [line.text for line in lines(content)[0]] == expected


def test_a_line_that_is_not_utf_8_has_a_reason(lines):
    (_, line), reader = lines(b"a\nb\xff\n")
    assert line == Line(2, None, "b'b\\xff'", line.expected)
    assert line.expected.startswith("text in UTF-8 (convert")
    refused(r"a\.txt:2: found .* expected text in", list, reader.texts())


def test_a_line_that_is_too_long_is_skipped(lines, monkeypatch):
    monkeypatch.setattr("electra_tf.files.lines.MAX_LINE_BYTES", 4)
    read, reader = lines(b"abcdefghij\nabc\nabcd")
    assert [line.text for line in read] == [None, "abc", None]
    assert "more than 4 bytes" in read[0].content
    assert reader.done == 19


def test_compressed_files_are_read(lines):
    compressed = gzip.compress(b"a\nb\n")
    assert [line.text for line in lines(compressed, "a.gz")[0]] == ["a", "b"]
    refused("cannot be decompressed", lines, compressed[:-9], "a.gz")


def test_standard_input_is_read(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x\n")))
    assert list(LineReader("-").texts()) == ["x"]
    assert LineReader("-").size() is None
