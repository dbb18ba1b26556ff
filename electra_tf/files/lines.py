# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lines of users' files, read one at a time."""

import sys
from collections.abc import Iterator
from typing import IO, NamedTuple

from configure.errors import UserError
from configure.formatting import shorten
from electra_tf.files import filesystem
from electra_tf.files.reading import (
    ICONV,
    STDIN,
    check_readable,
    refuse_utf_16,
)

# Maximum size of a line. Longer lines are not text, and would fill the memory.
MAX_LINE_BYTES = 2**25
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A line of a text file, or the reason why the line is unreadable."""

    number: int  # 1-based
    text: str | None  # text without line end; None: the line is unreadable
    content: str = ""  # excerpt of an unreadable line, for messages
    expected: str = ""  # requirement that an unreadable line violates


class LineReader:
    r"""Reader of the lines of a file or of standard input ("-").

    Compressed files are decompressed. Only "\n" ends a line; a file with "\r"
    in its place is an error. The reader holds one line at a time in memory. It
    also yields unreadable lines, so that the caller can count and skip them.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.done = 0  # bytes read so far

    def size(self) -> int | None:
        """Return the file's size in bytes, or None if unknown."""
        is_compressed = self.path.endswith(filesystem.COMPRESSED_ENDINGS)
        if self.path == STDIN or is_compressed:
            return None
        return filesystem.file_size(self.path) or None

    def __iter__(self) -> Iterator[Line]:
        """Yield the lines in order, unreadable lines included."""
        check_readable(self.path)
        if self.path == STDIN:
            yield from self._lines(sys.stdin.buffer)
            return
        with filesystem.open_decompressed(self.path) as file:
            try:
                yield from self._lines(file)
            except filesystem.DECOMPRESSION_ERRORS as error:
                raise UserError(
                    f"{self.path}: cannot be decompressed: {error}. Compress"
                    " the file again."
                ) from error

    def texts(self) -> Iterator[str]:
        """Yield each line's text; raise a UserError for an unreadable line."""
        for line in self:
            if line.text is None:
                raise UserError(
                    f"{self.path}:{line.number}: found {shorten(line.content)};"
                    f" expected {line.expected}. Correct the line."
                )
            yield line.text

    def _lines(self, file: IO[bytes]) -> Iterator[Line]:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES):
            number += 1
            self.done += len(raw)
            if len(raw) == MAX_LINE_BYTES and not raw.endswith(b"\n"):
                self._skip_rest(file)
                content = f"a line of more than {MAX_LINE_BYTES:,} bytes"
                yield Line(number, None, content, "a shorter line")
                continue
            if number == 1:
                refuse_utf_16(self.path, raw)
                self._refuse_carriage_returns(raw)
                raw = raw.removeprefix(_BYTE_ORDER_MARK)
            raw = raw.rstrip(b"\r\n")
            try:
                yield Line(number, raw.decode())
            except UnicodeDecodeError:
                expected = f"text in UTF-8 (convert Latin-1 with {ICONV})"
                yield Line(number, None, repr(raw), expected)

    def _refuse_carriage_returns(self, raw: bytes) -> None:
        r"""Raise a UserError if only "\r" ends the lines of a file.

        A file without line feeds would be a single line. A file whose first
        line ends in "\n" may contain "\r" in its texts.
        """
        if not raw.endswith(b"\n") and b"\r" in raw.rstrip(b"\r"):
            raise UserError(
                f"{self.path}:1: found carriage returns, but no line feed;"
                " expected line feeds at the ends of lines. Convert the file"
                r" (tr '\r' '\n' < FILE)."
            )

    def _skip_rest(self, file: IO[bytes]) -> None:
        """Read the rest of a line that is too long."""
        while part := file.readline(MAX_LINE_BYTES):
            self.done += len(part)
            if part.endswith(b"\n"):
                return
