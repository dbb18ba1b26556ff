# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Statistics over trials."""

import json
import math

import pytest

from electra_tf.metrics import scorers as trials

RESULTS = [
    {"cola": {"mcc": 10.0, "loss": 0.5}, "sst": {"accuracy": 90.0}},
    {"cola": {"mcc": 20.0, "loss": 0.7}, "sst": {"accuracy": 92.0}},
    {"cola": {"mcc": 60.0, "loss": 0.4}, "sst": {"accuracy": 91.0}},
]


def test_mean_median_spread_and_best_of_each_figure():
    mcc = trials.summarize(RESULTS)["cola"]["mcc"]
    assert (mcc.mean, mcc.median, mcc.best, mcc.best_index) == (30, 20, 60, 2)
    assert mcc.std == pytest.approx(math.sqrt(700))
    assert mcc.values == (10.0, 20.0, 60.0)


def test_the_best_loss_is_the_lowest_and_main_figures_choose_the_trial():
    assert trials.summarize(RESULTS)["cola"]["loss"].best == 0.4
    assert trials.best_trial(RESULTS) == 2
    assert trials.main_figure(["precision", "recall", "f1", "loss"]) == "f1"
    assert trials.main_figure(["mcc", "loss"]) == "mcc"


def test_undefined_values_are_counted_and_left_out():
    found = trials.describe([math.nan, 1.0, 3.0])
    assert (found.mean, found.undefined, found.best_index) == (2.0, 1, 2)
    assert json.dumps(found.as_dict(), allow_nan=False)
    assert trials.describe([5.0]).std == 0.0
    nothing = trials.describe([math.nan])
    assert nothing.best_index is None and math.isnan(nothing.mean)


def test_the_table_names_every_figure_and_value():
    lines = trials.table_lines(trials.summarize(RESULTS))
    assert lines[0].split()[:4] == ["task", "figure", "mean", "median"]
    assert lines[1].split() == (
        "cola mcc 30.00 20.00 26.46 60.00 10.00 20.00 60.00".split()
    )
