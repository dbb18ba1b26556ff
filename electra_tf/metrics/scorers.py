# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Base class of scorers, which compute metrics from predictions.

Source: google-research/electra, finetune/scorer.py.
"""

from __future__ import annotations

import abc
import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

# Names and values of metrics, in the order in which they are printed.
Metrics: TypeAlias = list[tuple[str, float]]
# Outputs of a head for one row of a batch, with labels and `loss`.
Row: TypeAlias = Mapping[str, np.ndarray]
Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | None"

# Name of the metric that counts the documents or questions whose texts were not
# split into words by the official script's rules for English.
ANY_SCRIPT = "any_script"


class Scorer(abc.ABC):
    """Base class of objects that collect predictions and compute metrics.

    Attributes:
      metric_names: names of all metrics, including those of `get_details`;
        empty if the names depend on the predictions.
    """

    metric_names: tuple[str, ...] = ()
    # Names of the attributes that are lists with an entry for each row.
    _row_attributes: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._total_loss = 0.0
        self._updated = False
        self._cached_results: Metrics = []

    @abc.abstractmethod
    def update(self, results: Row) -> None:
        """Add the head's outputs for a row; subclasses extend this method."""
        self._updated = True

    @abc.abstractmethod
    def _get_results(self) -> Metrics:
        """Compute the metrics, which `get_results` caches."""

    def get_results(self) -> Metrics:
        """Return the metrics that the original reports, in the same order."""
        if self._updated:
            self._cached_results = self._get_results()
            self._updated = False
        return list(self._cached_results)

    def get_details(self) -> Metrics:
        """Return the metrics that the original does not report."""
        return []

    def files(self) -> Mapping[str, Json]:
        """Return the contents of the files that an evaluation writes, by kind.

        Most scorers write no files besides the metrics.
        """
        return {}

    def single_prediction(self) -> int | float | str | list[str] | None:
        """Return the only prediction of a model that ignores its input.

        The result is None if predictions differ or all labels are equal.
        """
        return None

    def baselines(self) -> dict[str, dict[str, float]]:
        """Return the metrics of the baselines, which use no model, by kind.

        The kinds are `majority`, the most frequent label for every example, and
        `chance`, labels drawn uniformly. Losses and undefined metrics are left
        out.
        """
        return {}

    def _metrics_of(self, rows: Iterable[Row]) -> dict[str, float]:
        """Return the metrics of `rows` instead of the collected rows.

        Undefined metrics are left out. The rows need no `loss`.
        """
        scorer = copy.copy(self)
        for name in self._row_attributes:
            setattr(scorer, name, [])
        for row in rows:
            scorer.update({"loss": np.asarray(math.nan), **row})
        metrics = dict(scorer.get_results() + scorer.get_details())
        return {n: v for n, v in metrics.items() if math.isfinite(v)}

    def select_rows(self, rows: Sequence[int]) -> Scorer:
        """Return a scorer of the rows with the given indices.

        An index may occur several times.

        The losses of the new scorer are NaN, because losses are collected as
        sums.
        """
        selection = copy.copy(self)
        selection._updated, selection._total_loss = True, math.nan
        for name in self._row_attributes:
            values = getattr(self, name)
            setattr(selection, name, [values[row] for row in rows])
        return selection

    def results_str(self) -> str:
        """Return the metrics in one line, `name: 12.34 - name: 5.60`."""
        return " - ".join(
            f"{name}: {value:.2f}" for name, value in self.get_results()
        )


def compute_accuracy(
    labels: Sequence[object], predictions: Sequence[object]
) -> float:
    """Return the percentage of correct predictions; 0 for empty lists."""
    right = sum(a == b for a, b in zip(labels, predictions, strict=True))
    return 100.0 * right / max(1, len(labels))


def compute_f1(n_correct: int, n_predicted: int, n_gold: int) -> Metrics:
    """Return precision, recall and F1 in percent; 0 if `n_correct` is 0."""
    precision = recall = f1 = 0.0
    if n_correct:
        precision = 100.0 * n_correct / n_predicted
        recall = 100.0 * n_correct / n_gold
        f1 = 2 * precision * recall / (precision + recall)
    return [("precision", precision), ("recall", recall), ("f1", f1)]
