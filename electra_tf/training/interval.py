# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums of per-step values between two rows of the log."""

import json

import numpy as np
import tensorflow as tf


class Interval(tf.train.experimental.PythonState):
    """Sums over the steps since the last log row; travels in checkpoints.

    Saved with the weights so that a run that is stopped between two rows writes
    the same row after it continues as one that was never stopped.
    """

    def __init__(self) -> None:
        """Starts empty."""
        self.steps = 0
        self.sums: dict[str, float] = {}
        self.last: dict[str, float] = {}

    def add(self, names: list[str], values: np.ndarray) -> None:
        """Adds one step's values (float32 [len(names)])."""
        self.steps += 1
        self.last = dict(zip(names, values.tolist(), strict=True))
        for name, value in self.last.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def take(self) -> "Interval":
        """Returns the interval so far and starts a new one in its place."""
        taken = Interval()
        taken.steps, taken.sums, taken.last = self.steps, self.sums, self.last
        self.__init__()
        return taken

    def mean(self, name: str) -> float:
        """Mean of a value over the steps of the interval."""
        return self.sums[name] / self.steps

    def serialize(self) -> str:
        """JSON text; Python writes floats so that they read back exactly."""
        return json.dumps(
            {"steps": self.steps, "sums": self.sums, "last": self.last}
        )

    def deserialize(self, string_value: str | bytes) -> None:
        """The inverse of `serialize`."""
        state = json.loads(string_value)
        self.steps, self.sums = state["steps"], state["sums"]
        self.last = state["last"]
