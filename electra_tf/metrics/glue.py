# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""GLUE as one number: scores per task, and the averages people report."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from configure.text_tables import render_rows
from electra_tf.metrics.statistics import Statistics, describe, finite

TASKS = ("cola", "sst", "mrpc", "sts", "qqp", "mnli", "qnli", "rte", "wnli")
MISMATCHED = "accuracy, mismatched"
# The benchmark's score of a task is the mean of these.
LEADERBOARD_FIGURES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(TASKS, ("accuracy",)),
    **dict.fromkeys(("mrpc", "qqp"), ("accuracy", "f1")),
    "cola": ("mcc",),
    "sts": ("pearson", "spearman"),
    "mnli": ("accuracy", MISMATCHED),
}
# ELECTRA's paper and README report one figure each, and no WNLI.
PAPER_FIGURES: dict[str, str] = {
    task: {"cola": "mcc", "sts": "spearman"}.get(task, "accuracy")
    for task in TASKS
    if task != "wnli"
}
AVERAGES = {
    "glue": "GLUE average",
    "glue_without_wnli": "GLUE without WNLI",
    "paper": "ELECTRA paper's AVG",
}
_STATISTICS = ("mean", "median", "best")


@dataclasses.dataclass(frozen=True)
class TaskScore:
    """What a task's trials say together."""

    figures: Mapping[str, Statistics]  # the figures that the score is made of
    # The benchmark's: the mean of the figures, trial by trial.
    score: Statistics
    # The one figure that the paper reports; None for WNLI.
    paper: Statistics | None
    lacking: tuple[str, ...]  # figures of the score that there is no data for

    def as_dict(self) -> dict[str, Any]:
        return {
            "trials": len(self.score.values),
            "figures": {n: f.as_dict() for n, f in self.metric_names.items()},
            "score": self.score.as_dict(),
            "lacking": list(self.lacking),
        }


def score_task(task: str, trials: Sequence[Mapping[str, Any]]) -> TaskScore:
    """Scores a task from the trials (at least one) of a results file."""
    found = []
    for trial in trials:
        figures = trial["results"][task] | trial["details"].get(task, {})
        if other := trial["other_splits"].get(f"{task}/dev_mismatched"):
            figures[MISMATCHED] = other["accuracy"]
        found.append(figures)
    wanted = LEADERBOARD_FIGURES[task]
    there = [name for name in wanted if all(name in trial for trial in found)]
    figures = {
        name: describe([trial[name] for trial in found]) for name in there
    }
    return TaskScore(
        figures=figures,
        score=describe([_mean([t[n] for n in there]) for t in found]),
        paper=figures.get(PAPER_FIGURES.get(task, "")),
        lacking=tuple(name for name in wanted if name not in there),
    )


def average_scores(
    scores: Mapping[str, TaskScore],
) -> dict[str, dict[str, Any]]:
    """The averages over tasks, of their means, medians and best trials.

    For each of `AVERAGES` also the `tasks` it is over, and those that are
    `missing`: then it cannot be compared with others'.
    """
    kinds = {
        "glue": (TASKS, lambda found: found.score),
        "glue_without_wnli": (tuple(PAPER_FIGURES), lambda found: found.score),
        "paper": (tuple(PAPER_FIGURES), lambda found: found.paper),
    }
    averages = {}
    for kind, (tasks, choose) in kinds.items():
        there = {
            task: choose(scores[task])
            for task in tasks
            if task in scores and choose(scores[task]) is not None
        }
        averages[kind] = {
            **{
                name: finite(_mean([getattr(f, name) for f in there.values()]))
                for name in _STATISTICS
            },
            "tasks": list(there),
            "missing": [task for task in tasks if task not in there],
        }
    return averages


def table_lines(scores: Mapping[str, TaskScore]) -> list[str]:
    """Scores and averages as an aligned table."""
    rows = [["task", "figure", "trials", "mean", "median", "std", "best"]]
    for task, found in scores.items():
        shown = dict(found.figures)
        if len(shown) > 1:
            shown["score"] = found.score
        for name, figure in shown.items():
            numbers = (figure.mean, figure.median, figure.std, figure.best)
            texts = [_text(number) for number in numbers]
            rows.append([task, name, str(len(figure.values)), *texts])
    averages = average_scores(scores)
    for kind, average in averages.items():
        mean, median, best = (_text(average[name]) for name in _STATISTICS)
        rows.append([AVERAGES[kind], "", "", mean, median, "", best])
    lines = render_rows(rows)
    for i, average in enumerate(averages.values(), len(lines) - len(averages)):
        if missing := average["missing"]:
            there = len(average["tasks"])
            lines[i] += f"  of {there} of {there + len(missing)} tasks;"
            lines[i] += f" missing: {', '.join(missing)}"
    return lines


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _text(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "undefined"
    return f"{value:.2f}"
