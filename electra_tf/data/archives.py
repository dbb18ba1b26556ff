# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading of texts in archives and in large files, in bounded memory.

A malicious file may be a bomb, which unpacks to more data than memory or disk
can hold.
"""

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
# First bytes of zip, gzip, bzip2, xz, 7z, Zstandard, RAR and UTF-16 files. No
# UTF-8 text begins with these bytes.
_NO_TEXT = re.compile(
    rb"PK\x03\x04|\x1f\x8b|BZh\d1AY&SY|\xfd7zXZ\0|7z\xbc\xaf"
    rb"|\x28\xb5\x2f\xfd|Rar!\x1a|\xff\xfe|\xfe\xff"
)
_NO_MEMBERS = (".xz", ".tar", ".gz", ".zip", ".jsonl", ".ndjson")
_BLOCK = 1 << 20  # bytes
# A file that unpacks to at most this size is accepted at any ratio.
_UNPACKED_ANYWAY = 1 << 26  # bytes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits beyond which a file is rejected as a bomb or as binary."""

    # ---- Limits ----
    max_line_mb: Positive = 64  # MiB, maximum size of a line
    # Maximum GiB of text in an archive whose members are shuffled
    # (--draws=stream). Shuffling requires all members in memory.
    max_archive_gb: Positive = 4
    max_ratio: Positive = 200  # maximum ratio of unpacked to packed size


def read_lines(file: IO[bytes], where: str, limits: Limits) -> Iterator[bytes]:
    """Yield the lines of an open file.

    Raises:
      UserError: a line is longer than `max_line_mb`.
    """
    longest = limits.max_line_mb << 20
    while raw := file.readline(longest + 1):
        if len(raw) > longest:
            raise UserError(
                f"{where}: a line is longer than {limits.max_line_mb} MiB;"
                " expected one sentence per line. Split the line, or raise"
                " --max_line_mb."
            )
        yield raw


def check_ratio(unpacked: int, path: str, size: int, limits: Limits) -> None:
    """Raise a UserError if the unpacked size is implausible for a text."""
    if unpacked > max(_UNPACKED_ANYWAY, size * limits.max_ratio):
        raise UserError(
            f"{path}: {size:,} bytes unpack to more than {limits.max_ratio}"
            " times their size; expected 3 to 20 times, as for text. Remove the"
            " file, or raise --max_ratio."
        )


def check_text(file: IO[bytes], path: str) -> None:
    """Raise a UserError if an open file is binary, such as a zip archive."""
    start = file.read(512)
    file.seek(0)
    is_tar = start[257:262] == b"ustar"
    # A damaged archive can lack its header, so the extension is tested, too.
    may_be_tar = path.endswith((".xz", ".bz2")) and b"\0" in start
    if is_tar or may_be_tar or _NO_TEXT.match(start):
        raise UserError(
            f"{path}: found UTF-16 text, or an archive that is corrupt or not"
            " supported; expected UTF-8 text, or a .tar, .tar.gz, .tar.xz or"
            " .tar.bz2 archive. Convert the file (iconv), unpack it, download"
            " it again, or remove it."
        )


class _Metered:
    """A file that limits each read, because a tar header may be huge."""

    def __init__(self, file: IO[bytes]) -> None:
        self.seek, self.tell, self._file = file.seek, file.tell, file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _BLOCK:
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        return self._file.read(size)


@contextlib.contextmanager
def _open(path: str) -> Iterator[tuple[tarfile.TarFile, IO[bytes]]]:
    """Yield an open tar file (packed or not), and the open file on disk."""
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
    """Return whether a file with an archive's extension is a tar file.

    Raises:
      UserError: the file is not a tar file, although its extension is .tar or
        .tgz.
    """
    try:
        with _open(path):
            return True
    except tarfile.ReadError as error:
        if _TAR_NAME.search(path):
            raise damage_error(path, error) from error
        return False  # A file with the extension .xz may be a compressed text.


def read_members(
    path: str, limits: Limits
) -> Iterator[tuple[str, IO[bytes], int]]:
    """Yield the name, the open file and the position of each member.

    The position is the number of bytes read so far from the archive on disk.

    Raises:
      UserError: a member is not a text file, or the archive is a bomb.
    """
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
                    f"{path}: member {member.name!r} is a link, a device, a"
                    " JSON file or an archive, or its path leads outside the"
                    " archive; expected a text file. Nothing was extracted."
                    " Remove the member, or unpack the outer archive."
                )
            total += member.size
            check_ratio(total, path, size, limits)
            yield member.name, archive.extractfile(member), raw.tell()


def damage_error(path: str, error: Exception) -> UserError:
    """Return the error for an archive that cannot be read to its end."""
    return UserError(
        f"{path}: the archive is corrupt or truncated ({error}). Download the"
        " archive again, or remove it."
    )


def load_members(
    members: Iterable[tuple[str, IO[bytes], int]], path: str, limits: Limits
) -> list[tuple[str, bytes]]:
    """Load the names and texts of all members of an archive.

    Raises:
      UserError: the texts are larger than `max_archive_gb`.
    """
    texts = []
    remaining = limits.max_archive_gb << 30
    for name, file, _ in members:
        blocks = []
        for block in iter(functools.partial(file.read, _BLOCK), b""):
            blocks.append(block)
            remaining -= len(block)
            if remaining < 0:
                raise UserError(
                    f"{path}: the archive contains more than"
                    f" {limits.max_archive_gb} GiB of text (--max_archive_gb);"
                    " the whole text must fit into memory. Pass"
                    " --draws=document, or unpack the archive and build from"
                    " the directory."
                )
        texts.append((name, b"".join(blocks)))
    return texts
