# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The files that a pre-training run reads: records, or text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from configure.errors import UserError
from electra_tf.files.patterns import find_files

if TYPE_CHECKING:
    from configure.pretraining import PretrainingConfig


class RecordFiles(NamedTuple):
    """Record files, sorted by name."""

    paths: list[str]  # the files that are not empty
    held_out: bool  # whether they hold evaluation records only
    empty: list[str]  # empty files, of training or of evaluation records


def find_record_files(config: PretrainingConfig, training: bool) -> RecordFiles:
    """Return the record files of a run.

    Evaluations read the held-out records, or without them the training records.

    Args:
      config: names the files in `pretrain_tfrecords` and `eval_tfrecords`.
      training: whether the records are for training.

    Raises:
      UserError: no file with a record matches.
    """
    held_out, empty = ([], []) if training else _find_held_out(config)
    if held_out:
        return RecordFiles(held_out, True, empty)
    pattern = config.pretrain_tfrecords
    paths, more_empty = find_files(pattern)
    if not (paths or more_empty):
        raise UserError(
            f"No record file matches pretrain_tfrecords = {pattern!r}. Build "
            "them with build_pretraining_dataset.py, or correct the hparam."
        )
    if not paths:
        raise UserError(
            f"All {len(more_empty)} files of pretrain_tfrecords = {pattern!r} "
            "are empty. Build them again."
        )
    return RecordFiles(paths, False, empty + more_empty)


def _find_held_out(config: PretrainingConfig) -> tuple[list[str], list[str]]:
    """Return held-out record files that are filled, and the empty ones."""
    pattern = config.eval_tfrecords
    held_out, empty = find_files(pattern)
    # A derived name may match nothing, because not all builds hold records
    # out.
    is_derived = config.origins.get("eval_tfrecords", "derived") == "derived"
    if not held_out and not is_derived:
        raise UserError(
            f"No record file matches eval_tfrecords = {pattern!r}. Correct "
            "it, or leave it out to evaluate on the held-out records "
            "next to pretrain_tfrecords."
        )
    return held_out, empty


def text_hparam(config: PretrainingConfig, training: bool) -> str | None:
    """Return the hparam that names the text to read; None for records."""
    if not training and config.eval_text:
        return "eval_text"
    if not config.pretrain_text:
        return None
    if not training and _find_held_out(config)[0]:
        return None
    return "pretrain_text"
