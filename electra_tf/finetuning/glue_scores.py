# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores of GLUE: one per task, and the averages that papers report."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from configure.text_tables import render_rows
from electra_tf.finetuning.glue_tasks import GLUE_TASKS
from electra_tf.metrics.scorers import Json
from electra_tf.metrics.trial_statistics import Statistics, describe, finite

MISMATCHED = "accuracy, mismatched"
# The metrics whose mean is the benchmark's score of a task.
LEADERBOARD_METRICS: Mapping[str, tuple[str, ...]] = {
    "cola": ("mcc",),
    "sst": ("accuracy",),
    "mrpc": ("accuracy", "f1"),
    "sts": ("pearson", "spearman"),
    "qqp": ("accuracy", "f1"),
    "mnli": ("accuracy", MISMATCHED),
    "qnli": ("accuracy",),
    "rte": ("accuracy",),
    "wnli": ("accuracy",),
}
# The metric of each task that ELECTRA's paper and README report. The paper and
# the README omit WNLI.
PAPER_METRICS: Mapping[str, str] = {
    "cola": "mcc",
    "sst": "accuracy",
    "mrpc": "accuracy",
    "sts": "spearman",
    "qqp": "accuracy",
    "mnli": "accuracy",
    "qnli": "accuracy",
    "rte": "accuracy",
}
AVERAGES = {
    "glue": "GLUE average",
    "glue_without_wnli": "GLUE without WNLI",
    "paper": "ELECTRA paper's AVG",
}
_HEADINGS = ["task", "figure", "trials", "mean", "median", "std", "best"]


@dataclasses.dataclass(frozen=True)
class TaskScore:
    """The score of a task over its trials."""

    metrics: Mapping[str, Statistics]  # the metrics that the score averages
    # The mean of the metrics in each trial, as in the benchmark.
    score: Statistics
    # The one metric that the paper reports; None for WNLI.
    paper: Statistics | None
    lacking: tuple[str, ...]  # metrics of the score that have no data

    def as_dict(self) -> dict[str, Json]:
        """Return the score as plain values for JSON."""
        return {
            "trials": len(self.score.values),
            "figures": {n: m.as_dict() for n, m in self.metrics.items()},
            "score": self.score.as_dict(),
            "lacking": list(self.lacking),
        }


@dataclasses.dataclass(frozen=True)
class Average:
    """Averages over tasks of the trials' mean, median and best scores.

    Averages with missing tasks cannot be compared with published averages.
    """

    mean: float | None  # None: undefined
    median: float | None
    best: float | None
    tasks: list[str]  # the tasks in the average
    missing: list[str]  # tasks without a score


def score_task(
    task: str, trials: Sequence[Mapping[str, Mapping[str, Mapping]]]
) -> TaskScore:
    """Return the score of a task.

    Args:
      task: one of `GLUE_TASKS`.
      trials: the trials of a results file, at least one.
    """
    metrics_of_trials = []
    for trial in trials:
        metrics = {
            **trial["results"][task],
            **trial["details"].get(task, {}),
        }
        if mismatched := trial["other_splits"].get(f"{task}/dev_mismatched"):
            metrics[MISMATCHED] = mismatched["accuracy"]
        metrics_of_trials.append(metrics)
    names: list[str] = []
    lacking: list[str] = []
    for name in LEADERBOARD_METRICS[task]:
        has_data = all(name in metrics for metrics in metrics_of_trials)
        (names if has_data else lacking).append(name)
    statistics = {
        name: describe([metrics[name] for metrics in metrics_of_trials])
        for name in names
    }
    scores = [
        _mean([metrics[name] for name in names])
        for metrics in metrics_of_trials
    ]
    return TaskScore(
        metrics=statistics,
        score=describe(scores),
        paper=statistics.get(PAPER_METRICS.get(task, "")),
        lacking=tuple(lacking),
    )


def average_scores(scores: Mapping[str, TaskScore]) -> dict[str, Average]:
    """Return the averages that `AVERAGES` lists, by key."""
    benchmark = {task: score.score for task, score in scores.items()}
    paper = {
        task: score.paper
        for task, score in scores.items()
        if score.paper is not None
    }
    return {
        "glue": _average(benchmark, tuple(GLUE_TASKS)),
        "glue_without_wnli": _average(benchmark, tuple(PAPER_METRICS)),
        "paper": _average(paper, tuple(PAPER_METRICS)),
    }


def _average(scores: Mapping[str, Statistics], tasks: Sequence[str]) -> Average:
    scored = [task for task in tasks if task in scores]
    return Average(
        mean=finite(_mean([scores[task].mean for task in scored])),
        median=finite(_mean([scores[task].median for task in scored])),
        best=finite(_mean([scores[task].best for task in scored])),
        tasks=scored,
        missing=[task for task in tasks if task not in scores],
    )


def table_lines(scores: Mapping[str, TaskScore]) -> list[str]:
    """Return the lines of a table of scores and averages."""
    rows = [_HEADINGS]
    for task, score in scores.items():
        rows_of_task = dict(score.metrics)
        if len(rows_of_task) > 1:
            rows_of_task["score"] = score.score
        for name, metric in rows_of_task.items():
            numbers = (metric.mean, metric.median, metric.std, metric.best)
            texts = [_format(number) for number in numbers]
            rows.append([task, name, str(len(metric.values)), *texts])
    averages = average_scores(scores)
    for kind, average in averages.items():
        mean, median = _format(average.mean), _format(average.median)
        best = _format(average.best)
        rows.append([AVERAGES[kind], "", "", mean, median, "", best])
    lines = render_rows(rows)
    for i, average in enumerate(averages.values(), len(lines) - len(averages)):
        if average.missing:
            count = len(average.tasks)
            total = count + len(average.missing)
            lines[i] += f"  of {count} of {total} tasks;"
            lines[i] += f" missing: {', '.join(average.missing)}"
    return lines


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _format(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "undefined"
    return f"{value:.2f}"
