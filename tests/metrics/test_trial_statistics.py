# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Statistics over trials are exact, also with undefined values."""

import json
import math

import pytest

from electra_tf.metrics import trial_statistics

TRIALS = [
    {"cola": {"mcc": 10.0, "loss": 0.5}, "sst": {"accuracy": 90.0}},
    {"cola": {"mcc": 20.0, "loss": 0.7}, "sst": {"accuracy": 92.0}},
    {"cola": {"mcc": 60.0, "loss": 0.4}, "sst": {"accuracy": 91.0}},
]


def test_a_metric_of_three_trials_is_summarized():
    mcc = trial_statistics.summarize(TRIALS)["cola"]["mcc"]
    assert (mcc.mean, mcc.median, mcc.best, mcc.best_index) == (30, 20, 60, 2)
    assert mcc.std == pytest.approx(math.sqrt(700))
    assert mcc.values == (10.0, 20.0, 60.0)


def test_the_lowest_loss_is_best():
    assert trial_statistics.summarize(TRIALS)["cola"]["loss"].best == 0.4


def test_the_best_trial_has_the_best_mean_over_tasks():
    assert trial_statistics.best_trial(TRIALS, {}) == 2


@pytest.mark.parametrize(("metric", "index"), [(None, 0), ("mse", 1)])
def test_the_metric_of_the_task_determines_the_best_trial(metric, index):
    trials = [
        {"t": {"pearson": 9.0, "mse": 2.0}},
        {"t": {"pearson": 8.0, "mse": 1.0}},
    ]
    assert trial_statistics.best_trial(trials, {"t": metric}) == index


@pytest.mark.parametrize(
    ("names", "main"),
    [
        (["precision", "recall", "f1", "loss"], "f1"),
        (["mcc", "loss"], "mcc"),
    ],
)
def test_the_main_metric_is_f1_or_the_first(names, main):
    assert trial_statistics.main_metric(names) == main


def test_undefined_values_are_counted_and_left_out():
    metric = trial_statistics.describe([math.nan, 1.0, 3.0])
    assert (metric.mean, metric.undefined, metric.best_index) == (2.0, 1, 2)
    assert json.dumps(metric.as_dict(), allow_nan=False)


def test_a_single_value_has_no_deviation():
    assert trial_statistics.describe([5.0]).std == 0.0


def test_undefined_values_alone_have_no_mean_and_no_best():
    metric = trial_statistics.describe([math.nan])
    assert metric.best_index is None
    assert math.isnan(metric.mean)
