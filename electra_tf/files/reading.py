# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading of whole files and texts; each error names the file."""

from collections.abc import Iterator

from configure.errors import UserError
from electra_tf.files import filesystem

STDIN = "-"  # path that stands for standard input
# Maximum size of a text. Larger files are not texts, and would fill the memory.
MAX_TEXT_BYTES = 2**30
# Command that converts Latin-1, the most frequent encoding after UTF-8.
ICONV = "iconv -f ISO-8859-1 -t UTF-8"


def check_readable(path: str) -> None:
    """Raise a UserError unless a path is an existing file or "-"."""
    if path == STDIN:
        return
    if not filesystem.exists(path):
        raise UserError(f"{path}: no such file. Correct the path.")
    if filesystem.is_directory(path):
        raise UserError(
            f"{path} is a directory; expected a file. Pass the path of a file."
        )


def read_blocks(path: str, size: int) -> Iterator[bytes]:
    """Yield a file's bytes in blocks of `size` bytes; -1: in a single block."""
    check_readable(path)
    try:
        with filesystem.open_file(path, "rb") as file:
            while block := file.read(size):
                yield block
    except filesystem.io_errors() as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{path}: cannot be read: {reason}") from error


def read_bytes(path: str) -> bytes:
    """Return the content of a file as bytes."""
    return b"".join(read_blocks(path, -1))


def read_text(path: str) -> str:
    """Return the text of a UTF-8 file."""
    check_readable(path)
    size = filesystem.file_size(path)
    if size > MAX_TEXT_BYTES:
        raise UserError(
            f"{path}: the file has {size:,} bytes; expected a text of at most"
            f" {MAX_TEXT_BYTES:,} bytes. Split the file."
        )
    content = read_bytes(path)
    refuse_utf_16(path, content[:1024])
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}:{line}: byte {error.start} is not UTF-8 ({error.reason})."
            f" Convert the file (from Latin-1 with {ICONV})."
        ) from error


def refuse_utf_16(path: str, start: bytes) -> None:
    """Raise a UserError if a text's first bytes are UTF-16.

    Spreadsheet programs write UTF-16. Many zero bytes indicate UTF-16 without a
    byte order mark.
    """
    is_marked = start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if is_marked or (len(start) > 3 and 3 * start.count(0) > len(start)):
        raise UserError(
            f"{path}:1: found UTF-16 text ({start[:8]!r}); expected UTF-8."
            " Convert the file (iconv -f UTF-16 -t UTF-8 FILE)."
        )
