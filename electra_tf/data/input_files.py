# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files that a pre-training run reads: records, or text."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from configure.errors import UserError
from electra_tf.files.patterns import find_files

if TYPE_CHECKING:
    from configure.pretraining import PretrainingConfig


class RecordFiles(NamedTuple):
    """Record files of a run, sorted by name."""

    paths: list[str]  # paths of the nonempty files
    held_out: bool  # whether `paths` contain only evaluation records
    empty: list[str]  # empty files of training or evaluation records


@dataclasses.dataclass(frozen=True)
class InputFiles:
    """Patterns of a run's data files; evaluations prefer held-out files."""

    pretrain_tfrecords: str
    eval_tfrecords: str | None
    pretrain_text: str
    eval_text: str
    eval_origin: str | None  # origin of eval_tfrecords' value; None: unknown

    @classmethod
    def of(cls, config: PretrainingConfig) -> InputFiles:
        """Return the file patterns that the hparams contain."""
        return cls(
            config.pretrain_tfrecords,
            config.eval_tfrecords,
            config.pretrain_text,
            config.eval_text,
            config.origins.get("eval_tfrecords"),
        )

    def find_records(self, training: bool) -> RecordFiles:
        """Return the record files of a run.

        Evaluations read the held-out records. Without held-out records they
        read the training records.

        Args:
          training: whether the records are for training; False: evaluation.

        Raises:
          UserError: no nonempty file matches.
        """
        held_out, empty = ([], []) if training else self._find_held_out()
        if held_out:
            return RecordFiles(held_out, True, empty)
        pattern = self.pretrain_tfrecords
        paths, more_empty = find_files(pattern)
        if not (paths or more_empty):
            raise UserError(
                f"No record file matches pretrain_tfrecords = {pattern!r}."
                " Build records with build_pretraining_dataset.py, or correct"
                " pretrain_tfrecords."
            )
        if not paths:
            raise UserError(
                f"All {len(more_empty)} files of pretrain_tfrecords ="
                f" {pattern!r} are empty. Build the records again."
            )
        return RecordFiles(paths, False, empty + more_empty)

    def text_hparam(self, training: bool) -> str | None:
        """Return the hparam of the text to read; None: records are read."""
        if not training and self.eval_text:
            return "eval_text"
        if not self.pretrain_text:
            return None
        if not training and self._find_held_out()[0]:
            return None
        return "pretrain_text"

    def _find_held_out(self) -> tuple[list[str], list[str]]:
        """Return the nonempty and the empty files of held-out records."""
        pattern = self.eval_tfrecords
        held_out, empty = find_files(pattern)
        # A derived pattern may match no file, because not all builds hold out
        # records.
        may_be_missing = self.eval_origin in (None, "derived")
        if not held_out and not may_be_missing:
            raise UserError(
                f"No record file matches eval_tfrecords = {pattern!r}. Correct"
                " eval_tfrecords, or leave it out to evaluate on the held-out"
                " records next to pretrain_tfrecords."
            )
        return held_out, empty
