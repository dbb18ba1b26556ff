# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of the input of a run, by which two runs are compared."""

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from electra_tf.files import filesystem
from electra_tf.files.patterns import find_files, normalize_patterns

# Hparams that contain the paths of training or evaluation data.
DATA = ("pretrain_tfrecords", "eval_tfrecords", "pretrain_text", "eval_text")
# Hparams that contain the paths of training data.
DATA_PATHS = ("pretrain_tfrecords", "pretrain_text")
# Hparams that must not change if a run continues from the data position in a
# checkpoint.
DATA_HPARAMS = (
    *DATA_PATHS,
    "deterministic_input",
    "max_seq_length",
    "seed",
    "shuffle_buffer_size",
    "train_batch_size",
)
BEGINNING = 1 << 16  # bytes


def data_fingerprint(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hparams that determine the examples and their order."""
    fingerprint = {
        name: hparams[name] for name in DATA_HPARAMS if name in hparams
    }
    if hparams.get("pretrain_text"):
        # With raw text, records are not read.
        fingerprint.pop("pretrain_tfrecords", None)
    for name in DATA_PATHS:
        if name in fingerprint:
            patterns = normalize_patterns(fingerprint[name])
            fingerprint[name] = ",".join(patterns)
    return fingerprint


def input_fingerprints(
    patterns: Mapping[str, str | None],
    vocab_file: str,
    init_checkpoint: str | None,
) -> dict[str, str]:
    """Return fingerprints of the names, sizes and first bytes of files.

    Args:
      patterns: patterns of data files, by name.
      vocab_file: path of the vocabulary.
      init_checkpoint: path of the initial checkpoint.

    Returns:
      Fingerprints by the names of patterns, "vocab_file" and "init_checkpoint".
    """
    checkpoint_files = None
    if init_checkpoint:
        checkpoint_files = f"{init_checkpoint}*,{init_checkpoint}/*"
    all_patterns = {
        **patterns,
        "vocab_file": vocab_file,
        "init_checkpoint": checkpoint_files,
    }
    return {
        name: files_fingerprint(pattern, BEGINNING)
        for name, pattern in all_patterns.items()
    }


def files_fingerprint(
    files_or_patterns: list[str] | str | None, beginning: int = 0
) -> str:
    """Return a digest of file names, sizes and first bytes.

    Args:
      files_or_patterns: paths, or comma-separated glob patterns.
      beginning: number of first bytes to read; 0: only names and sizes.
    """
    paths = files_or_patterns
    if not isinstance(paths, list):
        paths, _ = find_files(paths or "", skip_folders=True)
    digest, total = hashlib.sha256(), 0
    for path in paths:
        size = filesystem.file_size(path)
        total += size
        digest.update(f"{os.path.basename(path)} {size}\n".encode())
        if beginning:
            with filesystem.open_file(path, "rb") as file:
                digest.update(file.read(beginning))
    what = "names, sizes and beginnings" if beginning else "names and sizes"
    return (
        f"{len(paths)} files, {total:,} bytes, sha256 of {what}"
        f" {digest.hexdigest()[:12]}"
    )
