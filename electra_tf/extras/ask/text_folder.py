# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The files of a folder of texts, and its skipped entries."""

import collections
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from configure.errors import UserError
from configure.formatting import join_names

# The reasons for skipping entries, which follow "Skipped" in reports.
_HIDDEN = "hidden files and folders"
_LINKED = "links within linked folders"
_REPEATED = "repeated files and folders"
_BROKEN = "broken links"
_UNREADABLE = "folders that cannot be read"
_SPECIAL = "pipes, devices and sockets"
_EMPTY = "empty files"


class TextFolder(NamedTuple):
    """The files of a folder, and its skipped entries by reason."""

    paths: dict[str, str]  # name within the folder -> path, sorted
    skipped: dict[str, list[str]]  # reason -> names

    def report(self) -> Iterator[str]:
        """Yield a line for each reason, with names of the skipped entries."""
        for reason, names in self.skipped.items():
            yield f"Skipped {reason}: {len(names):,} ({join_names(names, 3)})"


def find_texts(path: str) -> TextFolder:
    """Return the regular files below a folder; for a file, the file itself.

    Each link to a folder is followed once, and no link within a linked folder
    is followed, so that every walk ends. Pipes and devices are skipped, because
    reading them might never end.

    Raises:
      UserError: the path does not exist, or is neither a folder nor a file.
    """
    path = path.rstrip("/") or "/"
    try:
        status = os.stat(path)
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read: {error.strerror}. Grant read access, or"
            " pass another path."
        ) from None
    if stat.S_ISREG(status.st_mode):
        return TextFolder({os.path.basename(path): path}, {})
    if not stat.S_ISDIR(status.st_mode):
        raise UserError(
            f"{path}: neither a folder nor a regular file. Pass the path of a"
            " folder or of a file."
        )
    walk = _Walk(path)
    walk.add("", is_linked=False)
    # Links are followed after all folders are read, so that an entry of the
    # folder itself keeps its own name even if a link also leads to it.
    while walk.folders or walk.links:
        if walk.folders:
            walk.enter(*walk.folders.pop())
        else:
            walk.add(walk.links.pop(0), is_linked=True)
    return TextFolder(
        dict(sorted(walk.paths.items())),
        {reason: sorted(n) for reason, n in sorted(walk.skipped.items())},
    )


class _Walk:
    """The state of a walk in a folder; names are relative to the folder."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._identities: set[tuple[int, int]] = set()  # device and inode
        self.paths: dict[str, str] = {}
        self.skipped: dict[str, list[str]] = collections.defaultdict(list)
        # Pairs: a folder to read, and whether a link led to the folder.
        self.folders: list[tuple[str, bool]] = []
        self.links: list[str] = []

    def add(self, name: str, is_linked: bool) -> None:
        """Add a file or folder to the walk, or record why it is skipped."""
        path = os.path.join(self._root, name)
        try:
            status = os.stat(path)
        except OSError:
            self.skipped[_BROKEN].append(name)
            return
        if reason := _reason_to_skip(status, self._identities):
            self.skipped[reason].append(name)
        elif stat.S_ISDIR(status.st_mode):
            self.folders.append((name, is_linked))
        else:
            self.paths[name] = path

    def enter(self, folder: str, is_linked: bool) -> None:
        """Add the entries of a folder, except links, which are added later."""
        try:
            names = sorted(os.listdir(os.path.join(self._root, folder)))
        except OSError:
            self.skipped[_UNREADABLE].append(folder)
            return
        for name in names:
            inner = os.path.join(folder, name)
            if name.startswith("."):
                self.skipped[_HIDDEN].append(inner)
            elif not os.path.islink(os.path.join(self._root, inner)):
                self.add(inner, is_linked)
            elif is_linked:
                self.skipped[_LINKED].append(inner)
            else:
                self.links.append(inner)


def _reason_to_skip(
    status: os.stat_result, identities: set[tuple[int, int]]
) -> str | None:
    """Return the reason for skipping an entry; None if the entry is used.

    A used entry is recorded, so that further links to it are skipped.
    """
    is_file = stat.S_ISREG(status.st_mode)
    if not is_file and not stat.S_ISDIR(status.st_mode):
        return _SPECIAL
    if is_file and not status.st_size:
        return _EMPTY
    identity = status.st_dev, status.st_ino
    if identity in identities:
        return _REPEATED
    identities.add(identity)
    return None
