# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The files that comma-separated glob patterns match."""

import glob
import os

from configure.errors import UserError
from electra_tf.files import filesystem


def normalize_patterns(patterns: str) -> list[str]:
    """Return comma-separated patterns with resolved, escaped folders.

    Different spellings of one folder become equal. The name of an existing
    folder or file matches itself, even if it contains *, ? or [.
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
    """Return the files with content and the empty files that patterns match.

    Args:
      patterns: glob patterns between commas.
      skip_folders: whether matching folders are left out. By default they are
        refused.
    """
    paths: list[str] = []
    for pattern in normalize_patterns(patterns):
        paths += filesystem.match_pattern(pattern)
    paths = list(dict.fromkeys(paths))  # Two patterns may match one file.
    for path in paths:
        if not filesystem.exists(path):
            raise UserError(f"{path}: broken symbolic link; remove it.")
    if skip_folders:
        paths = [path for path in paths if not filesystem.is_directory(path)]
    for path in paths:
        if os.path.isdir(path):
            raise UserError(
                f"{path}: is a directory; expected files, such as {path}/*"
            )
    filled, empty = [], []
    for path in paths:
        (filled if filesystem.file_size(path) else empty).append(path)
    return filled, empty
