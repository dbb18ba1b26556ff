# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Raw lines -> stripped lines, grouped into pieces of documents."""

import io
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# Long documents come in pieces, so that memory stays bounded.
_LINES_PER_PIECE = 4096


class Piece(NamedTuple):
    """Some consecutive lines of one document.

    Attributes:
      position: identifies the document within its file: the byte offset of
        its first line, behind member or record where there is one.
      lines: lines without surrounding white space, none empty.
      is_last: whether the document ends here.
    """

    position: str
    lines: list[str]
    is_last: bool


class ReadingReport:
    """What is worth telling about the files read so far.

    Attributes:
      units_read: bytes (TFDS: examples) read of the current source.
      invalid: file name -> [offset of its first undecodable byte, number of
        bytes left out].
    """

    def __init__(self):
        self.units_read = 0
        self.invalid: dict[str, list[int]] = {}

    def decode(self, raw: bytes, name: str, position: int) -> str:
        """Decodes UTF-8, leaving out and counting bytes that are not.

        Source: model/tokenization.py, convert_to_unicode ("ignore").
        Differs: the original's file reader stops at such a byte.
        """
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            text = raw.decode("utf-8", "ignore")
            entry = self.invalid.setdefault(name, [position + error.start, 0])
            entry[1] += len(raw) - len(text.encode())
            return text


def read_pieces(
    raw_lines: Iterable[bytes],
    name: str,
    start: int,
    blanks_separate_docs: bool,
    report: ReadingReport,
    prefix: str = "",
    count_units: bool = True,
) -> Iterator[Piece]:
    r"""Cuts the lines of one text into documents.

    Args:
      raw_lines: lines that end in "\n" (nothing else separates lines).
      name: of the file, for the report.
      start: byte offset of the first line.
      blanks_separate_docs: whether a blank line ends a document; otherwise
        blank lines are left out and the text is one document.
      report: told about undecodable bytes and bytes read.
      prefix: put before the position of each document.
      count_units: whether the bytes are units of the source's size; the
        report is then told of them at the end of each document.

    Yields:
      Pieces in order. Nothing for a text without any line.
    """
    position = start
    document = ""
    lines: list[str] = []
    for raw in raw_lines:
        try:
            line = raw.decode().strip()
        except UnicodeDecodeError:
            line = report.decode(raw, name, position).strip()
        if line:
            if not document:
                document = f"{prefix}{position}"
            lines.append(line)
            if len(lines) >= _LINES_PER_PIECE:
                yield Piece(document, lines, False)
                lines = []
        elif document and blanks_separate_docs:
            if count_units:
                report.units_read = position - start
            yield Piece(document, lines, True)
            document, lines = "", []
        position += len(raw)
    if count_units:
        report.units_read = position - start
    if document:
        yield Piece(document, lines, True)


def lines_of(text: str | bytes) -> Iterable[bytes]:
    """Splits a text in memory into lines as `read_pieces` takes them."""
    if isinstance(text, str):  # JSON may hold lone surrogates.
        text = text.encode("utf-8", "ignore")
    return io.BytesIO(text)
