# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Statistics of metrics over several trials."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from configure.text_tables import render_rows
from electra_tf.metrics.direction import lower_is_better
from electra_tf.metrics.scorers import Json

# Metrics of one trial: task -> metric -> value.
TrialResults: TypeAlias = Mapping[str, Mapping[str, float]]


@dataclasses.dataclass(frozen=True)
class Statistics:
    """Statistics of a metric over all trials; undefined values are ignored."""

    values: tuple[float, ...]  # value of each trial, in order; may be NaN
    mean: float
    median: float
    std: float  # sample standard deviation (n - 1); 0 for fewer than 2 values
    best: float  # highest value; for losses and errors the lowest
    best_index: int | None  # index of the best value in `values`
    undefined: int  # number of undefined values

    def as_dict(self) -> dict[str, Json]:
        """Return the fields as JSON values, with None for undefined numbers."""
        plain = dataclasses.asdict(self)
        plain["values"] = [finite(value) for value in self.values]
        for name in ("mean", "median", "std", "best"):
            plain[name] = finite(plain[name])
        return plain


def main_metric(names: Sequence[str], preferred: str | None = None) -> str:
    """Return the metric by which trials are compared.

    The first choice is the preferred metric, the second is F1, and the last is
    the first of the names.
    """
    if preferred is not None and preferred in names:
        return preferred
    return "f1" if "f1" in names else names[0]


def describe(values: Sequence[float], lower: bool = False) -> Statistics:
    """Return the statistics of a metric.

    Args:
      values: value of each trial.
      lower: whether lower values are better.
    """
    defined = [v for v in values if math.isfinite(v)]
    best, best_index = math.nan, None
    if defined:
        best = min(defined) if lower else max(defined)
        best_index = list(values).index(best)
    return Statistics(
        values=tuple(float(v) for v in values),
        mean=float(np.mean(defined)) if defined else math.nan,
        median=float(np.median(defined)) if defined else math.nan,
        std=float(np.std(defined, ddof=1)) if len(defined) > 1 else 0.0,
        best=float(best),
        best_index=best_index,
        undefined=len(values) - len(defined),
    )


def summarize(
    trials: Sequence[TrialResults],
) -> dict[str, dict[str, Statistics]]:
    """Return statistics by task and metric, in the order of the first trial.

    Metrics that are missing from some trials are left out.
    """
    if not trials:
        return {}
    summary: dict[str, dict[str, Statistics]] = {}
    for task, metrics in trials[0].items():
        summary[task] = {}
        for name in metrics:
            if all(name in trial[task] for trial in trials):
                values = [trial[task][name] for trial in trials]
                summary[task][name] = describe(values, lower_is_better(name))
    return summary


def best_trial(
    trials: Sequence[TrialResults], preferred: Mapping[str, str | None]
) -> int | None:
    """Return the index of the trial whose main metrics have the best mean.

    The result is None if all means are undefined.

    Args:
      trials: metrics of each trial.
      preferred: task -> metric that the task's description names.
    """
    scores = []
    for trial in trials:
        values = []
        for task, metrics in trial.items():
            name = main_metric(list(metrics), preferred.get(task))
            sign = -1 if lower_is_better(name) else 1
            values.append(sign * metrics[name])
        scores.append(float(np.mean(values)) if values else math.nan)
    return describe(scores).best_index


def table_lines(summary: Mapping[str, Mapping[str, Statistics]]) -> list[str]:
    """Return the statistics as an aligned table."""
    rows = [["task", "figure", "mean", "median", "std", "best", "values"]]
    for task, metrics in summary.items():
        for name, metric in metrics.items():
            numbers = (metric.mean, metric.median, metric.std, metric.best)
            texts = [f"{number:.2f}" for number in numbers]
            values = " ".join(f"{value:.2f}" for value in metric.values)
            rows.append([task, name, *texts, values])
    lines = render_rows([row[:-1] for row in rows])
    return [f"{line}  {row[-1]}" for line, row in zip(lines, rows, strict=True)]


def finite(value: float) -> float | None:
    """Return a number, or None for a number that JSON cannot represent."""
    return value if math.isfinite(value) else None


def from_json(values: Iterable[float | None]) -> list[float]:
    """Return numbers from JSON, with NaN for None, which `finite` writes."""
    return [math.nan if value is None else value for value in values]
