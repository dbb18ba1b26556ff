# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A run's best checkpoint, chosen by a metric of the run's evaluations."""

import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from configure.errors import append_to_errors
from electra_tf.checkpoints import formats, tf1
from electra_tf.checkpoints.hparam_changes import list_changes
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_fields import (
    Fields,
    check_fields,
    is_number,
    is_object,
    is_text,
)
from electra_tf.files.json_files import read_json
from electra_tf.metrics.direction import lower_is_better
from electra_tf.training.checkpointing import (
    Checkpoints,
)

STATE_FILE = "best.json"  # metric, value and step of the best checkpoint
_FIELDS: Fields = {
    "metric": (is_text, "the name of a metric"),
    "value": (
        lambda value: value is not None and is_number(value),
        "a number",
    ),
    "settings": (is_object, "an object of hparams"),
}
_OPTIONAL = ("settings",)  # earlier versions did not write these fields


def find_best_or_latest(path: str) -> str | None:
    """Return a run's best checkpoint, or the latest if no best one exists."""
    return formats.find_best_checkpoint(path) or tf1.find_latest(path)


class BestCheckpoint:
    """The checkpoint in `<run>/best`, whose evaluation is the best so far."""

    def __init__(
        self,
        directory: str,
        metric: str,
        checkpoints: Checkpoints,
        write_settings: Callable[[str], None],
        scored_on: str = "",
        settings: Mapping[str, object] | None = None,
        starts_over: bool = False,
    ) -> None:
        """Read the best metric value that earlier parts of the run recorded.

        Args:
          directory: folder of the run.
          metric: name of the metric in evaluations.
          checkpoints: checkpoints of the run.
          write_settings: function that writes the run's settings to a folder.
          scored_on: fingerprint of the held-out data; metrics on other data are
            not compared.
          settings: hparams that define the metric, by name; metrics of other
            values are not compared.
          starts_over: whether the run starts at step 0, so that a checkpoint in
            the folder belongs to an earlier run.
        """
        self._directory = os.path.join(directory, formats.BEST)
        self._metric = metric
        self._checkpoints = checkpoints
        self._write_settings = write_settings
        self._scored_on = scored_on
        self._settings = dict(settings or {})
        self.chosen_otherwise = False
        self._starts_over = starts_over
        self._best = self._read()

    def update(self, step: int, result: Mapping[str, float]) -> str | None:
        """Save the model if its evaluation is the best so far.

        Returns:
          Line for the console, or None if the model was not saved.
        """
        value = float(result[self._metric])
        if not math.isfinite(value):
            return None
        sign = -1 if lower_is_better(self._metric) else 1
        if self._best and sign * value <= sign * self._best["value"]:
            return None
        self._write_settings(self._directory)
        prefix = self._checkpoints.save_best(self._directory)
        self._best = {"metric": self._metric, "value": value, "step": step}
        if self._scored_on:
            self._best["scored_on"] = self._scored_on
        if self._settings:
            self._best["settings"] = self._settings
        path = os.path.join(self._directory, STATE_FILE)
        write_atomically(path, json.dumps(self._best) + "\n")
        return (
            f"{self._metric} {value:.4f} is the best so far; saved this model"
            f" as {prefix}"
        )

    def _read(self) -> dict[str, Any] | None:
        path = os.path.join(self._directory, STATE_FILE)
        if not tf.io.gfile.exists(path):
            return None
        remedy = (
            f"{STATE_FILE} is corrupt. Remove this file, so that the best"
            " checkpoint is chosen again."
        )
        with append_to_errors(lambda: [remedy]):
            best = read_json(path)
        check_fields(best, _FIELDS, path, remedy, _OPTIONAL)
        scored_on = best.get("scored_on", self._scored_on)
        # Values of different metrics, data or hparams cannot be compared.
        is_comparable = (
            not self._starts_over
            and best["metric"] == self._metric
            and scored_on == self._scored_on
            and not list_changes(
                best.get("settings", {}), self._settings, (*self._settings,)
            )
        )
        self.chosen_otherwise = not is_comparable
        return best if is_comparable else None
