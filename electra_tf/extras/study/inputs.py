# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The files that a study's runs read, and their changes after a run."""

import functools
import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from electra_tf.data.fingerprints import BEGINNING, files_fingerprint
from electra_tf.extras.study.study_file import TASK_FILES, VOCAB_FILE, Run
from electra_tf.files import filesystem
from electra_tf.files.digests import file_sha256
from electra_tf.files.patterns import find_files


def describe_inputs(run: Run) -> dict[str, str]:
    """Return the fingerprints of a run's files, by the names of the files.

    Files that are small enough are read to their ends. Of records and texts,
    only the beginnings are read.
    """
    return {
        name: _fingerprint(name, patterns)
        for name, patterns in run.inputs.items()
        if _exists(name, patterns)
    }


class ChangedInputs:
    """The differences between files on disk and the files that runs read."""

    def __init__(self) -> None:
        """Remember the fingerprints, because runs share files."""
        self._fingerprint = functools.cache(_fingerprint)
        self._data_fingerprint = functools.cache(files_fingerprint)

    def list_changes(self, run: Run, line: Mapping[str, Any]) -> Iterator[str]:
        """Yield a text for each input of a finished run that changed.

        Files that do not exist here are not compared. Lines of earlier versions
        have a fingerprint of names and sizes alone.
        """
        if "inputs" not in line:
            before = line.get("data")
            if before and find_files(run.reads, True)[0]:
                after = self._data_fingerprint(run.reads)
                if before != after:
                    yield _describe_change(run.reads, before, after)
            return
        for name, before in line["inputs"].items():
            patterns = run.inputs.get(name, "")
            if patterns and _exists(name, patterns):
                after = self._fingerprint(name, patterns)
                if before != after:
                    yield _describe_change(patterns, before, after)


def _describe_change(patterns: str, before: str, after: str) -> str:
    return f"the fingerprint of {patterns} was {before} and is {after}"


def _exists(name: str, patterns: str) -> bool:
    """Return whether any nonempty file of an input exists."""
    if name == VOCAB_FILE:
        return filesystem.exists(patterns)
    return bool(find_files(patterns, skip_folders=True)[0])


def _fingerprint(name: str, patterns: str) -> str:
    """Return the fingerprint of an input by its name in a run."""
    if name == VOCAB_FILE:
        return f"sha256 {file_sha256(patterns)}"
    if name != TASK_FILES:
        return files_fingerprint(patterns, BEGINNING)
    paths, _ = find_files(patterns, skip_folders=True)
    digest = hashlib.sha256()
    for path in paths:
        text = f"{os.path.basename(path)} {file_sha256(path)}\n"
        digest.update(text.encode())
    return f"{len(paths)} files, sha256 {digest.hexdigest()}"
