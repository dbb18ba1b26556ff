# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Logs of a run: JSON lines, and scalars for TensorBoard."""

import json
import operator
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from configure.formatting import shorten
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_fields import is_integer, is_number
from electra_tf.files.json_files import without_nan
from electra_tf.files.lines import LineReader
from electra_tf.files.reading import read_bytes

EVAL_LOG = "eval_log.jsonl"
TENSORBOARD_DIR = "tensorboard"


class Log:
    """A log of a run: `<name>_log.jsonl`, and scalars for TensorBoard.

    The file contains one JSON object per line, each with its `step`. On
    opening, rows after `resume_step` are removed, because their steps are
    repeated, and a truncated last line is removed. The log of a continued run
    therefore equals that of an uninterrupted run, except for times.
    TensorBoard's event files only grow: a session start makes TensorBoard drop
    a stopped run's scalars after `resume_step`.
    """

    def __init__(
        self,
        directory: str,
        name: str,
        resume_step: int,
        warn: Callable[[str], None] = lambda text: None,
        every: int = 0,
    ) -> None:
        """Open the log of a run that continues from `resume_step`.

        Args:
          directory: folder of the run.
          name: "train" or "eval".
          resume_step: number of completed updates.
          warn: function of a warning about lost or corrupt rows.
          every: number of steps between rows; 0: unknown.
        """
        self._path = os.path.join(directory, f"{name}_log.jsonl")
        rows = read_rows(self._path, warn)
        self.rows = [row for row in rows if row["step"] <= resume_step]
        steps = [0, *(row["step"] for row in self.rows)]
        # An earlier part of the run may have had longer intervals.
        gap = max([every, *map(operator.sub, steps[1:], steps)])
        steps_without_row = resume_step - steps[-1]
        # A step is evaluated after its checkpoint is saved, so a run may have
        # ended after the checkpoint, but before the row of the evaluation.
        if name == "eval":
            steps_without_row -= 1
        # An existing empty file shows that no row was due so far.
        is_new = not self.rows and filesystem.exists(self._path)
        if every and steps_without_row >= gap and not is_new:
            warn(
                f"{self._path}: the last row is that of step {steps[-1]:,}, but"
                f" the run is at step {resume_step:,}. The rows between these"
                " steps are lost"
            )
        write_atomically(self._path, "".join(map(_dump, self.rows)))
        self._writer = tf.summary.create_file_writer(
            os.path.join(directory, TENSORBOARD_DIR, name)
        )
        self._resume_step: int | None = resume_step

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Append a row to the log file and to TensorBoard's event file."""
        row = {"step": step, **values}
        self.rows.append(row)
        try:
            with tf.io.gfile.GFile(self._path, "a") as file:
                file.write(_dump(row))
            self._start_board()
            with self._writer.as_default():
                for name, value in values.items():
                    if isinstance(value, int | float):
                        tf.summary.scalar(name, float(value), step=step)
            self._writer.flush()
        except (OSError, tf.errors.OpError) as error:
            raise UserError(
                f"{self._path} cannot be written: {error}. The checkpoints are"
                " complete. Free some space, and run the same command again."
            ) from error

    def _start_board(self) -> None:
        """Make TensorBoard drop the scalars of steps that are now repeated."""
        if self._resume_step is None:
            return
        start = tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START)
        event = tf.compat.v1.Event(
            wall_time=time.time(), step=self._resume_step + 1, session_log=start
        )
        # tf.summary has no public function for events that are not summaries.
        # At a session start, TensorBoard drops earlier scalars of this step and
        # of later steps.
        tf.raw_ops.ImportEvent(
            writer=self._writer._resource, event=event.SerializeToString()
        )
        self._resume_step = None


def read_rows(
    path: str, warn: Callable[[str], None] = lambda text: None
) -> list[dict[str, float]]:
    """Return the rows of a log; skip corrupt lines with a warning.

    A truncated last line is skipped without a warning.
    """
    if not tf.io.gfile.exists(path):
        return []
    rows, warning = [], ""
    for line in LineReader(path):
        if warning:
            warn(warning)
        warning = ""
        try:
            row = json.loads(line.text or "")
            is_valid = isinstance(row, dict) and _is_row(row)
        except (ValueError, RecursionError):
            is_valid = False
        if is_valid:
            rows.append(row)
        else:
            text = shorten(line.text or line.content)
            warning = (
                f"{path}:{line.number}: skipping a corrupt line: found {text};"
                " expected a row of numbers in JSON"
            )
    # A last line without a line feed is not corrupt: its writing was
    # interrupted.
    if warning and read_bytes(path).endswith(b"\n"):
        warn(warning)
    return rows


def _is_row(values: Mapping[str, Any]) -> bool:
    """Return whether an object has a step and otherwise only numbers."""
    step = values.get("step", -1)
    return (
        is_integer(step) and step >= 0 and all(map(is_number, values.values()))
    )


def _dump(row: dict[str, Any]) -> str:
    return json.dumps(without_nan(row)) + "\n"
