# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""GLUE's scores and averages are those of the benchmark and of the paper."""

import math

import pytest

from electra_tf.finetuning import glue_scores

# The original's README: medians of many fine-tunings of the small model.
SMALL = {"cola": 57.0, "sst": 91.2, "mrpc": 88.0, "sts": 87.5}
SMALL |= {"qqp": 89.0, "mnli": 81.3, "qnli": 88.4, "rte": 66.7}


def trial(task, other_splits=None, **metrics):
    return {
        "results": {task: metrics},
        "details": {},
        "other_splits": other_splits or {},
    }


def test_the_papers_average_is_reproduced():
    scores = {}
    for task, value in SMALL.items():
        metrics = {glue_scores.PAPER_METRICS[task]: value}
        scores[task] = glue_scores.score_task(task, [trial(task, **metrics)])
    average = glue_scores.average_scores(scores)["paper"]
    assert average.missing == []
    assert average.median == pytest.approx(81.1, abs=0.05)


def test_two_metrics_of_a_task_are_averaged_trial_by_trial():
    trials = [
        trial("mrpc", accuracy=80.0, f1=90.0),
        trial("mrpc", accuracy=90.0, f1=82.0),
        trial("mrpc", accuracy=70.0, f1=80.0),
    ]
    score = glue_scores.score_task("mrpc", trials)
    assert score.score.values == (85.0, 86.0, 75.0)
    assert score.score.best == 86.0 and score.score.median == 85.0
    assert score.paper.best == 90.0


def test_the_score_of_mnli_averages_both_dev_sets():
    mismatched = {"mnli/dev_mismatched": {"accuracy": 70.0}}
    score = glue_scores.score_task(
        "mnli", [trial("mnli", mismatched, accuracy=80.0)]
    )
    assert score.score.mean == 75.0 and score.paper.mean == 80.0


def test_a_metric_without_data_is_listed_as_lacking():
    score = glue_scores.score_task("mnli", [trial("mnli", accuracy=80.0)])
    assert score.score.mean == 80.0
    assert score.lacking == ("accuracy, mismatched",)


@pytest.mark.parametrize(
    ("kind", "mean"),
    [("glue", 56.0), ("glue_without_wnli", 60.0), ("paper", 60.0)],
)
def test_wnli_counts_in_the_average_of_glue_alone(kind, mean):
    scores = {}
    for task, names in glue_scores.LEADERBOARD_METRICS.items():
        metrics = dict.fromkeys(names, 60.0)
        scores[task] = glue_scores.score_task(task, [trial(task, **metrics)])
    scores["wnli"] = glue_scores.score_task(
        "wnli", [trial("wnli", accuracy=24.0)]
    )
    assert glue_scores.average_scores(scores)[kind].mean == mean


@pytest.fixture
def undefined_scores():
    metrics = {"pearson": math.nan, "spearman": math.nan}
    return {"sts": glue_scores.score_task("sts", [trial("sts", **metrics)])}


def test_the_average_of_undefined_scores_is_undefined(undefined_scores):
    average = glue_scores.average_scores(undefined_scores)["paper"]
    assert average.mean is None
    assert "cola" in average.missing


def test_the_table_names_undefined_scores_and_missing_tasks(undefined_scores):
    lines = glue_scores.table_lines(undefined_scores)
    assert "undefined" in lines[1]
    assert "of 1 of 9 tasks; missing: cola, sst" in lines[-3]
