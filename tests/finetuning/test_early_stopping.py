# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patience ends after so many evaluations without a better figure."""

import pytest

from electra_tf.finetuning.trial import Patience


def _rows(values, name="accuracy"):
    return [
        {"step": step, name: value, "other": 0.0}
        for step, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("values", "over"),
    [
        ([1.0, 2.0, 3.0], False),
        ([3.0, 2.0, 1.0], True),
        ([3.0, 2.0], False),
        ([3.0, 3.0, 3.0], True),  # As good is not better.
        ([], False),
    ],
)
def test_two_evaluations_without_a_better_score(values, over):
    assert Patience(2).is_over(_rows(values)) == over


def test_lower_losses_are_better():
    rows = _rows([3.0, 2.0, 1.0], "loss")
    assert not Patience(2, "loss").is_over(rows)
    assert Patience(2, "loss").is_over(_rows([1.0, 2.0, 3.0], "loss"))


def test_no_patience_means_no_end():
    assert not Patience(0).is_over(_rows([3.0, 2.0, 1.0]))


def test_f1_is_watched_where_there_is_one():
    rows = [{"step": 1, "precision": 1.0, "recall": 1.0, "f1": 1.0}]
    assert Patience(1).figure(rows) == "f1"
    assert Patience(1).figure([{"step": 1, "mcc": 1.0, "loss": 0}]) == "mcc"
