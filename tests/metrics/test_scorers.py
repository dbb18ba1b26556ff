# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A scorer of selected rows equals a scorer of these rows alone."""

import functools

import numpy as np
import pytest

from electra_tf.metrics import classification, tagging

MAPPING = {"B-A": 0, "O": 1}
SPANS = functools.partial(tagging.EntityLevelF1Scorer, MAPPING)


def random_rows(random, count, size):
    return [
        {
            "loss": 0.0,
            "predictions": random.integers(0, 2, size),
            "label_ids": random.integers(0, 2),
            "labels": random.integers(0, 2, 3),
            "labels_mask": np.ones(3),
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (classification.F1Scorer, None),
        (classification.RegressionScorer, None),
        (SPANS, 3),
    ],
)
def test_selected_rows_count_as_often_as_they_are_selected(make, size):
    random = np.random.default_rng(0)
    rows = random_rows(random, 20, size)
    numbers = random.integers(20, size=20).tolist()
    whole, part = make(), make()
    for row in rows:
        whole.update(row)
    for number in numbers:
        part.update(rows[number])
    before = whole.get_results()
    metrics = dict(whole.select_rows(numbers).get_results())
    assert np.isnan(metrics.pop("loss"))
    assert metrics.items() <= dict(part.get_results()).items()
    assert whole.get_results() == before
