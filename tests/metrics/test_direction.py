# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The direction of a metric follows from its own name."""

import pytest

from electra_tf.metrics.direction import lower_is_better


@pytest.mark.parametrize(
    ("metric", "is_lower"),
    [
        ("loss", True),
        ("sts_mse", True),
        ("f1_job_loss", False),  # the F1 of a label
        ("gloss_accuracy", False),  # the accuracy of a task
        ("accuracy", False),
    ],
)
def test_names_of_labels_and_tasks_make_no_loss(metric, is_lower):
    assert lower_is_better(metric) == is_lower
