# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows reach whoever asked, padding does not."""

import numpy as np
import tensorflow as tf

from electra_tf.finetuning.scoring import PredictLoop


def test_padding_rows_are_left_out_and_tasks_told_apart():
    def compute(features, seed, training):
        return {
            "total_loss": tf.reduce_sum(features["x"]),
            "task_id": features["task_id"],
            "a": {"double": features["x"] * 2},
            "b": {"half": features["x"] / 2},
        }

    loop = PredictLoop(
        task_names=("a", "b"),
        batch_size=2,
        compute=compute,
        seed=0,
        strategy=tf.distribute.get_strategy(),
    )
    rows = {
        "x": np.array([1, 2, 3, 4, 0, 0], np.float32),
        "task_id": np.array([0, 1, 0, 0, 2, 2], np.int32),
    }
    taken = []
    for _ in range(2):  # Twice: one graph serves all data sets.
        loop.predict(
            tf.data.Dataset.from_tensor_slices(rows).batch(2),
            lambda task, row: taken.append((task, row)),
        )
    expected = [
        ("a", {"double": 2.0}),
        ("b", {"half": 1.0}),
        ("a", {"double": 6.0}),
        ("a", {"double": 8.0}),
    ]
    assert taken == expected * 2
