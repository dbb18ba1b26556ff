# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files that match comma-separated glob patterns."""

import glob
import os

from configure.errors import UserError
from electra_tf.files import filesystem


def normalize_patterns(patterns: str) -> list[str]:
    """Split comma-separated patterns, and resolve and escape their folders.

    Different spellings of a folder become equal. An existing folder or file
    whose name contains *, ? or [ still matches itself.
    """
    normalized = []
    for pattern in map(str.strip, patterns.split(",")):
        if pattern and not filesystem.is_remote(pattern):
            folder, name = os.path.split(pattern)
            is_literal = os.path.isdir(folder or ".")
            folder = os.path.realpath(folder)
            if is_literal:
                folder = glob.escape(folder)
            if os.path.isfile(pattern):
                name = glob.escape(name)
            pattern = os.path.join(folder, name)
        normalized.append(pattern)
    return normalized


def find_files(
    patterns: str, skip_folders: bool = False
) -> tuple[list[str], list[str]]:
    """Return the nonempty files and the empty files that match patterns.

    Args:
      patterns: comma-separated glob patterns.
      skip_folders: whether matching folders are skipped. By default, a matching
        folder raises a UserError.
    """
    paths: list[str] = []
    for pattern in normalize_patterns(patterns):
        paths += filesystem.match_pattern(pattern)
    paths = list(dict.fromkeys(paths))  # Two patterns can match the same file.
    for path in paths:
        if not filesystem.exists(path):
            raise UserError(f"{path}: broken symbolic link; remove it.")
    if skip_folders:
        paths = [path for path in paths if not filesystem.is_directory(path)]
    for path in paths:
        if os.path.isdir(path):
            raise UserError(
                f"{path}: the pattern matches a directory; expected files. Use"
                f" a pattern of files, such as {path}/*"
            )
    filled, empty = [], []
    for path in paths:
        (filled if filesystem.file_size(path) else empty).append(path)
    return filled, empty
