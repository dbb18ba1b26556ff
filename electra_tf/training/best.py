# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps the checkpoint of the best evaluation."""

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from electra_tf.training.checkpointing import Checkpoints

DIRECTORY = "best"
STATE_FILE = "best.json"


class BestKeeper:
    """Saves to `<run>/best` whenever a metric is better than before."""

    def __init__(
        self, directory: str, metric: str, checkpoints: Checkpoints
    ) -> None:
        """Reads what an earlier part of the run kept.

        Args:
          directory: the run's.
          metric: of the evaluation; lower is better for losses, else higher.
          checkpoints: writes the files.

        Raises:
          UserError: the file that says what is best cannot be read.
        """
        self._directory = os.path.join(directory, DIRECTORY)
        self._metric = metric
        self._checkpoints = checkpoints
        self._best = self._read()

    def update(self, step: int, result: Mapping[str, float]) -> str | None:
        """Takes an evaluation; saves if it is the best.

        Args:
          step: updates done.
          result: metrics by name.

        Returns:
          What to tell the user, or None.
        """
        value = float(result[self._metric])
        if not math.isfinite(value):
            return None
        if self._best is not None and not self._better(value):
            return None
        prefix = self._checkpoints.save_best(self._directory)
        self._best = {"metric": self._metric, "value": value, "step": step}
        path = os.path.join(self._directory, STATE_FILE)
        with tf.io.gfile.GFile(path + ".tmp", "w") as file:
            file.write(json.dumps(self._best) + "\n")
        tf.io.gfile.rename(path + ".tmp", path, overwrite=True)
        return f"best {self._metric} so far, {value:.4f}: kept as {prefix}"

    def _better(self, value: float) -> bool:
        if "loss" in self._metric:
            return value < self._best["value"]
        return value > self._best["value"]

    def _read(self) -> dict[str, Any] | None:
        path = os.path.join(self._directory, STATE_FILE)
        if not tf.io.gfile.exists(path):
            return None
        try:
            with tf.io.gfile.GFile(path) as file:
                best = json.load(file)
            # Another metric was asked for before: what it chose means nothing.
            return best if best["metric"] == self._metric else None
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path} is damaged ({error!r}); remove it to choose the best"
                " checkpoint anew."
            ) from error
