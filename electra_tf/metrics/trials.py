# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What several trials of one fine-tuning say together."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

# One trial: task -> figure -> value.
TrialResults = Mapping[str, Mapping[str, float]]


@dataclasses.dataclass(frozen=True)
class Statistics:
    """One figure over all trials.

    Undefined values (NaN) stay among `values` but enter nothing else.
    """

    values: tuple[float, ...]  # one a trial, in the order of the trials
    mean: float
    median: float
    std: float  # sample standard deviation (n - 1); 0 for a single value
    best: float  # the highest; for losses and errors the lowest
    best_index: int | None  # its place among `values`, from 0
    undefined: int  # number of undefined values

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values for JSON, undefined ones as None."""
        plain = dataclasses.asdict(self)
        plain["values"] = [finite(value) for value in self.values]
        for name in ("mean", "median", "std", "best"):
            plain[name] = finite(plain[name])
        return plain


def lower_is_better(figure: str) -> bool:
    """Whether a figure is a loss or an error."""
    return "loss" in figure or figure.endswith("mse")


def main_figure(names: Sequence[str]) -> str:
    """How trials are compared: F1 where there is one, else the first."""
    return "f1" if "f1" in names else names[0]


def describe(values: Sequence[float], lower: bool = False) -> Statistics:
    """Statistics of one figure."""
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
    """Task -> figure -> statistics, in the order of the first trial."""
    if not trials:
        return {}
    return {
        task: {
            name: describe(
                [trial[task][name] for trial in trials], lower_is_better(name)
            )
            for name in figures
            if all(name in trial[task] for trial in trials)
        }
        for task, figures in trials[0].items()
    }


def best_trial(trials: Sequence[TrialResults]) -> int | None:
    """The place, from 0, of the trial with the best mean of main figures.

    None where no trial has defined figures.
    """
    if not trials:
        return None
    scores = []
    for trial in trials:
        mains = []
        for figures in trial.values():
            name = main_figure(list(figures))
            sign = -1 if lower_is_better(name) else 1
            mains.append(sign * figures[name])
        scores.append(float(np.mean(mains)) if mains else math.nan)
    return describe(scores).best_index


def table_lines(summary: Mapping[str, Mapping[str, Statistics]]) -> list[str]:
    """The statistics as an aligned table."""
    rows = [["task", "figure", "mean", "median", "std", "best", "values"]]
    for task, figures in summary.items():
        for name, found in figures.items():
            numbers = (found.mean, found.median, found.std, found.best)
            texts = [f"{number:.2f}" for number in numbers]
            values = " ".join(f"{value:.2f}" for value in found.values)
            rows.append([task, name, *texts, values])
    widths = column_widths(row[:-1] for row in rows)
    return [f"{aligned(row[:-1], widths)}  {row[-1]}" for row in rows]


def column_widths(rows: Iterable[Sequence[str]]) -> list[int]:
    """The width of the longest cell of each column."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """A line of a table: two columns to the left, the others to the right."""
    cells = zip(row, widths, strict=True)
    return "  ".join(
        cell.ljust(width) if column < 2 else cell.rjust(width)
        for column, (cell, width) in enumerate(cells)
    )


def finite(value: float) -> float | None:
    """A number for JSON; None where it is undefined."""
    return value if math.isfinite(value) else None
