# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predictions on test sets: what is written, and in which units."""

import io
import pathlib
import pickle
import types

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.finetuning import trial
from electra_tf.finetuning.trial import write_test_outputs
from electra_tf.metrics.question_answering import SpanScorer
from electra_tf.training.summaries import Console


class Task:
    """A task with a test set and a set that is not there."""

    name = "mine"

    def __init__(self, scorer=None):
        self._scorer = scorer

    def get_test_splits(self):
        return ["test", "diagnostic"]

    def has_split(self, split):
        return split == "test"

    def get_scorer(self, split):
        return self._scorer


def _write(config, rows, task):
    """Writes fixed outputs; returns what was written."""
    stream = io.StringIO()
    evaluator = types.SimpleNamespace(
        predict=lambda task, split, take: [take(row) for row in rows]
    )
    paths = write_test_outputs(config, evaluator, task, 3, Console(stream))
    (path,) = map(pathlib.Path, paths)
    assert path.name == "mine_test_3_predictions.pkl"
    assert "there is no diagnostic split" in stream.getvalue()
    return path.read_bytes()


def test_rows_have_what_the_original_wrote_in_the_order_of_ids(
    finetuning_config,
):
    def written(name, *rows):
        task = Task()
        task.unscale = lambda value: 5 * value
        return pickle.loads(_write(finetuning_config(name), rows, task))

    rows = [{"eid": i, "logits": np.array([i, 1.0])} for i in (4, 0, 2)]
    found = written("cola", *rows)
    assert list(found) == [0, 2, 4]
    np.testing.assert_array_equal(found[2], [2.0, 1.0])
    # Numbers are as they were trained on, not in the task's own range.
    row = {"eid": 0, "predictions": np.float32(0.5), "targets": 0.0}
    assert written("sts", row) == {0: 0.5}
    # Words have a label each.
    row = {
        "eid": 0,
        "logits": np.zeros([4, 3]),
        "predictions": np.array([2, 1, 0, 0]),
        "labels_mask": np.array([1.0, 1.0, 0.0, 0.0]),
    }
    np.testing.assert_array_equal(written("chunk", row)[0], [2, 1])


def _span_scorer(config, *answers):
    example = types.SimpleNamespace(key="q", answers=answers, doc_tokens=[])
    return SpanScorer(config, "mine", "squad2", [example], lambda _: [])


@pytest.mark.parametrize(
    ("single", "words"),
    [
        ("", "every prediction is that there is no answer"),
        ("Paris", "every prediction is 'Paris'"),
        (1, "every prediction is 1"),
        (None, None),
    ],
)
def test_a_collapse_is_told_in_words(single, words):
    scorer = types.SimpleNamespace(single_prediction=lambda: single)
    assert trial._collapse(Task(), scorer) == words


def test_padding_rows_are_left_out_and_tasks_told_apart():
    def compute(features, seed, training):
        return {
            "total_loss": tf.reduce_sum(features["x"]),
            "task_id": features["task_id"],
            "a": {"double": features["x"] * 2},
            "b": {"half": features["x"] / 2},
        }

    loop = trial.PredictLoop(
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
