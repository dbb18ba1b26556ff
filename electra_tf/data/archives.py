# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""OpenWebText archives, read member by member without touching the disk."""

import random
import tarfile
from collections.abc import Iterator

from configure.errors import UserError
from electra_tf.data import storage
from electra_tf.data.text_reading import (
    Piece,
    ReadingReport,
    lines_of,
    read_pieces,
)

# Shuffling members needs them all in memory; an archive of OpenWebText holds
# a few megabytes.
_LARGEST_SHUFFLED = 4 << 30


def is_archive(path: str) -> bool:
    """Whether the file opens as a tar archive of any compression."""
    with storage.open_file(path, "rb") as file:
        return tarfile.is_tarfile(file)


def read_members(
    name: str,
    path: str,
    blanks_separate_docs: bool,
    report: ReadingReport,
    shuffle: random.Random | None = None,
) -> Iterator[Piece]:
    """Reads the text files of an archive.

    Args:
      name: of the archive, for the report.
      path: where it is.
      blanks_separate_docs: see `corpora`.
      report: told about undecodable bytes and progress.
      shuffle: if given, members come in an order drawn from it.

    Yields:
      Pieces of documents.

    Raises:
      UserError: for a damaged archive, and for members that a safe one would
        not have: links, devices, absolute paths or paths with "..".

    Source: build_openwebtext_pretraining_dataset.py, write_examples.
    Differs: nothing is extracted; members are sorted by name before they are
      shuffled, where the original takes the order of the file system.
    """
    try:
        with (
            storage.open_file(path, "rb") as file,
            tarfile.open(fileobj=file, mode="r:*") as archive,
        ):
            limit = _LARGEST_SHUFFLED if shuffle is not None else None
            members = _texts(archive, path, file, report, limit)
            if shuffle is not None:
                held = sorted(members, key=lambda member: member[0])
                shuffle.shuffle(held)
                members = iter(held)
            for member, text in members:
                yield from read_pieces(
                    lines_of(text),
                    f"{name}!{member}",
                    0,
                    blanks_separate_docs,
                    report,
                    prefix=f"{member}:",
                    count_units=False,
                )
    except PermissionError:
        raise
    except (tarfile.TarError, OSError) as error:
        raise UserError(
            f"{path}: the archive is damaged or cut short ({error}); fetch "
            "it again or remove it."
        ) from error


def _texts(
    archive: tarfile.TarFile,
    path: str,
    file,
    report: ReadingReport,
    limit: int | None,
) -> Iterator[tuple[str, bytes]]:
    before = report.units_read
    total = 0
    for member in archive:
        if member.isdir():
            continue
        _check_member(member, path)
        total += member.size
        if limit is not None and total > limit:
            raise UserError(
                f"{path}: more than {limit >> 30} GiB of text in one archive; "
                "take --draws=document, or unpack it and build from the "
                "directory."
            )
        content = archive.extractfile(member).read()
        report.units_read = before + file.tell()
        yield member.name, content
    report.units_read = before + storage.file_size(path)


def _check_member(member: tarfile.TarInfo, path: str) -> None:
    parts = member.name.replace("\\", "/").split("/")
    if not member.isfile():
        problem = "is a link or a device, not a text file"
    elif member.name.startswith(("/", "\\")) or parts[0][1:] == ":":
        problem = "has an absolute path"
    elif ".." in parts:
        problem = "has a path that leaves the archive"
    elif member.name.endswith((".xz", ".tar", ".gz", ".zip")):
        problem = "is itself an archive; unpack the outer one first"
    else:
        return
    raise UserError(
        f"{path}: member {member.name!r} {problem}. Nothing was extracted."
    )
