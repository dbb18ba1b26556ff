# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How often each token occurs in training records: `token_counts.json`.

Counted are the wordpieces of the training examples as often as they stand in
the records, without [CLS], [SEP] and padding; held-out examples are not. The
builder writes the file beside its records. It holds the counts by token id,
their SHA-256, and that of the vocabulary.
"""

import hashlib
import json
import os
from collections.abc import Collection, Iterable

from configure.errors import UserError
from electra_tf import files
from electra_tf.text.tokenization import vocab_hash

TOKEN_COUNTS = "token_counts.json"
_FORMAT = 1


def write_token_counts(
    path: str, counts: Iterable[int], vocab_file: str
) -> None:
    """Writes counts by token id."""
    listed = [int(count) for count in counts]
    content = {
        "format": _FORMAT,
        "vocabulary": vocab_hash(vocab_file),
        "sha256": _digest(listed),
        "counts": listed,
    }
    files.write_atomically(path, json.dumps(content) + "\n")


def read_token_counts(path: str, vocab_file: str) -> list[int]:
    """Reads counts by token id; refuses damage and other vocabularies."""
    remedy = "remove the file, and the records are counted anew"
    found = files.read_json(path)
    counts = found.get("counts")
    if found.get("format") != _FORMAT or not isinstance(counts, list):
        raise UserError(
            f"{path}: holds no token counts of format {_FORMAT}; {remedy}."
        )
    if found.get("sha256") != _digest(counts):
        raise UserError(
            f"{path}: is damaged, sha256 is not that of counts; {remedy}."
        )
    if found.get("vocabulary") != vocab_hash(vocab_file):
        raise UserError(
            f"{path}: counts tokens of another vocabulary than vocab_file"
            f" {vocab_file}; give that one, or {remedy}."
        )
    return counts


def _digest(counts: list[int]) -> str:
    return hashlib.sha256(json.dumps(counts).encode()).hexdigest()


def add_up_jobs(
    directory: str, paths: Collection[str], vocab_file: str
) -> None:
    """Writes the counts of a build from those of its jobs.

    Jobs of an earlier version left none; then neither does the build.
    """
    target = os.path.join(directory, TOKEN_COUNTS)
    if files.exists(target) or not all(map(files.exists, paths)):
        return
    jobs = (read_token_counts(path, vocab_file) for path in paths)
    write_token_counts(target, map(sum, zip(*jobs, strict=True)), vocab_file)
