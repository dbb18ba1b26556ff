# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where the rows of numbers go: JSON lines and TensorBoard."""

import json
import math
import os
import time
from typing import Any

import tensorflow as tf

TRAIN_LOG = "train_log.jsonl"
EVAL_LOG = "eval_log.jsonl"
TENSORBOARD_DIR = "tensorboard"
# Fields that differ between two runs that are otherwise equal.
TIMING_FIELDS = ("seconds", "steps_per_second", "tokens_per_second")


class JsonLines:
    """A file of one JSON object a line, each with its `step`.

    On opening, rows past `resume_step` are removed (they belong to steps that
    will be done again), and so is a last line that was cut off in writing; the
    file of a run that was stopped and continued thus equals the file of one
    that was not, timing aside.
    """

    def __init__(self, path: str, resume_step: int) -> None:
        """Opens `path`, keeping the rows whose step is <= `resume_step`."""
        self._path = path
        self.rows = [
            row for row in read_rows(path) if row["step"] <= resume_step
        ]
        text = "".join(_dump(row) for row in self.rows)
        with tf.io.gfile.GFile(path + ".tmp", "w") as file:
            file.write(text)
        tf.io.gfile.rename(path + ".tmp", path, overwrite=True)

    def write(self, step: int, values: dict[str, Any]) -> None:
        """Appends one row and flushes it."""
        row = {"step": step, **values}
        self.rows.append(row)
        with tf.io.gfile.GFile(self._path, "a") as file:
            file.write(_dump(row))


class TensorBoard:
    """Scalars for TensorBoard, in `tensorboard/<name>` of the run.

    Event files only grow: what a stopped run wrote past `resume_step` stays in
    them, and TensorBoard is told to leave it out.
    """

    def __init__(self, directory: str, name: str, resume_step: int) -> None:
        """Opens a writer; nothing is written before the first row.

        Args:
          directory: the run's.
          name: of what is measured, such as "train".
          resume_step: where the run continues; 0 for a new one.
        """
        self._writer = tf.summary.create_file_writer(
            os.path.join(directory, TENSORBOARD_DIR, name)
        )
        self._resume_step = resume_step
        self._started = False

    def write(self, step: int, values: dict[str, Any]) -> None:
        """Writes the numbers among `values` under their names."""
        if not self._started:
            # Twice: the first start that TensorBoard meets is a run's beginning
            # and drops nothing; runs of earlier versions have none.
            for _ in range(2):
                self._write_start(self._resume_step + 1)
            self._started = True
        with self._writer.as_default():
            for name, value in values.items():
                if isinstance(value, int | float):
                    tf.summary.scalar(name, float(value), step=step)
        self._writer.flush()

    def _write_start(self, step: int) -> None:
        """Makes TensorBoard drop what it has read from `step` on."""
        start = tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START)
        event = tf.compat.v1.Event(
            wall_time=time.time(), step=step, session_log=start
        )
        # tf.summary has no public function for events that are not summaries.
        tf.raw_ops.ImportEvent(
            writer=self._writer._resource, event=event.SerializeToString()
        )


def read_rows(path: str) -> list[dict[str, Any]]:
    """Reads a JSON-lines file up to its first line that is not whole."""
    if not tf.io.gfile.exists(path):
        return []
    rows = []
    with tf.io.gfile.GFile(path) as file:
        for line in file:
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                break
            if not isinstance(row, dict) or "step" not in row:
                break
            rows.append(row)
    return rows


def _dump(row: dict[str, Any]) -> str:
    # JSON has no NaN; a number that is not finite is written as null.
    finite = {
        key: None if isinstance(v, float) and not math.isfinite(v) else v
        for key, v in row.items()
    }
    return json.dumps(finite) + "\n"
