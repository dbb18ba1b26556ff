# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text out of files that may be made to fill memory: in bounded memory."""

import bz2
import contextlib
import dataclasses
import functools
import gzip
import lzma
import re
import tarfile
from collections.abc import Iterable, Iterator
from typing import IO

from configure.bounds import Positive
from configure.errors import UserError
from electra_tf.files import filesystem

_PACKERS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_TAR_NAME = re.compile(r"\.tar(\.\w+)?$|\.tgz$")
# Zip, gzip, bzip2, xz, 7z, Zstandard, RAR; UTF-16, which UTF-8 never is.
_NO_TEXT = re.compile(
    rb"PK\x03\x04|\x1f\x8b|BZh\d1AY&SY|\xfd7zXZ\0|7z\xbc\xaf"
    rb"|\x28\xb5\x2f\xfd|Rar!\x1a|\xff\xfe|\xfe\xff"
)
_NO_MEMBERS = (".xz", ".tar", ".gz", ".zip", ".jsonl", ".ndjson")
_BLOCK = 1 << 20
# Less than this is no bomb, however small its file.
_UNPACKED_ANYWAY = 1 << 26


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """What is read at most; beyond it a file is no text, or a bomb."""

    # ---- Limits ----
    max_line_mb: Positive = 64  # of a line
    # Text of an archive whose members are shuffled (--draws=stream), which is
    # held in memory.
    max_archive_gb: Positive = 4
    max_ratio: Positive = 200  # text by the size of its packed file


def lines(file: IO[bytes], where: str, limits: Limits) -> Iterator[bytes]:
    """The lines of an open file; one that is too long is an error."""
    longest = limits.max_line_mb << 20
    while raw := file.readline(longest + 1):
        if len(raw) > longest:
            raise UserError(
                f"{where}: a line of more than {limits.max_line_mb} MiB"
                " (--max_line_mb). Expected text, one sentence a line."
            )
        yield raw


def check_ratio(unpacked: int, path: str, size: int, limits: Limits) -> None:
    """Stops at a file that unpacks to far more than text does."""
    if unpacked > max(_UNPACKED_ANYWAY, size * limits.max_ratio):
        raise UserError(
            f"{path}: its {size:,} bytes unpack to more than"
            f" {limits.max_ratio} times as much (--max_ratio); text takes 3 to"
            " 20 times. Remove the file, or raise the limit if it is meant."
        )


def check_text(file: IO[bytes], path: str) -> None:
    """Refuses an open file that begins as no text does, such as a zip."""
    start = file.read(512)
    file.seek(0)
    is_tar = start[257:262] == b"ustar"
    # What may be an archive by its name, and is none, is perhaps a damaged one.
    may_be_tar = path.endswith((".xz", ".bz2")) and b"\0" in start
    if is_tar or may_be_tar or _NO_TEXT.match(start):
        raise UserError(
            f"{path}: no UTF-8 text, but UTF-16, or an archive of another kind,"
            " or a damaged one. Convert it (iconv), unpack it, fetch it again"
            " or remove it (.tar, .tar.gz, .tar.xz and .tar.bz2 are read by"
            " their names)."
        )


class _Metered:
    """A file that gives a block at most: a header of gigabytes is refused."""

    def __init__(self, file: IO[bytes]) -> None:
        self.seek, self.tell, self._file = file.seek, file.tell, file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _BLOCK:
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        return self._file.read(size)


@contextlib.contextmanager
def _open(path: str) -> Iterator[tuple[tarfile.TarFile, IO[bytes]]]:
    """Opens a tar file, packed or not: it, and the file as it is."""
    with contextlib.ExitStack() as stack:
        raw = stack.enter_context(filesystem.open_file(path, "rb"))
        start = raw.read(8)
        raw.seek(0)
        file = raw
        for magic, packer in _PACKERS.items():
            if start.startswith(magic):
                file = stack.enter_context(packer(raw))
        yield tarfile.open(fileobj=_Metered(file), mode="r:"), raw


def is_tar(path: str) -> bool:
    """Whether an archive by its name is one; an error where it is damaged."""
    try:
        with _open(path):
            return True
    except tarfile.ReadError as error:
        if _TAR_NAME.search(path):
            raise damaged(path, error) from error
        return False  # The name may end in .xz alone.


def members(path: str, limits: Limits) -> Iterator[tuple[str, IO[bytes], int]]:
    """Name and open file of each text, and how far the archive is read."""
    size, total = filesystem.file_size(path), 0
    with _open(path) as (archive, raw):
        for member in archive:
            if member.isdir():
                continue
            parts = member.name.replace("\\", "/").split("/")
            if (
                not member.isfile()
                or ".." in parts
                or not parts[0]
                or parts[0][1:] == ":"
                or member.name.lower().endswith(_NO_MEMBERS)
            ):
                raise UserError(
                    f"{path}: member {member.name!r} is no text file inside"
                    " the archive: a link, a device, a path that leaves it,"
                    " JSON, or an archive itself (unpack the outer one first)."
                    " Nothing was extracted."
                )
            total += member.size
            check_ratio(total, path, size, limits)
            yield member.name, archive.extractfile(member), raw.tell()


def damaged(path: str, error: Exception) -> UserError:
    """Words for an archive that cannot be read to its end."""
    return UserError(
        f"{path}: the archive is damaged or cut short ({error}); fetch it again"
        " or remove it."
    )


def in_memory(
    texts: Iterable[tuple[str, IO[bytes], int]], path: str, limits: Limits
) -> list[tuple[str, bytes]]:
    """All texts of an archive, up to the limit."""
    found, left = [], limits.max_archive_gb << 30
    for name, text, _ in texts:
        blocks = []
        for block in iter(functools.partial(text.read, _BLOCK), b""):
            blocks.append(block)
            left -= len(block)
            if left < 0:
                raise UserError(
                    f"{path}: more than {limits.max_archive_gb} GiB of text in"
                    " one archive (--max_archive_gb), which has to be held in"
                    " memory; take --draws=document, or unpack it and build"
                    " from the directory."
                )
        found.append((name, b"".join(blocks)))
    return found
