# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows computed in groups of similar length come out as without groups."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from configure.errors import UserError
from electra_tf.export.saved_model import make_task_module
from electra_tf.export.signatures import Inputs
from electra_tf.export.text_heads import compute_by_length
from electra_tf.prediction.loading import load_finetuned


class Counted:
    """Stands for a model, and keeps the shapes it was asked with."""

    def __init__(self):
        self.shapes = []

    def __call__(self, inputs):
        def keep(ids):
            self.shapes.append(ids.shape)
            return ids

        ids = tf.numpy_function(keep, [inputs.input_ids], tf.int32)
        ids = tf.cast(ids, tf.float32)
        places = tf.range(1.0, tf.cast(tf.shape(ids)[1], tf.float32) + 1.0)
        total = tf.reduce_sum(ids * places, 1)
        return tf.stack([total, tf.reduce_sum(ids, 1)], 1)


def inputs_of(lengths, width):
    mask = np.arange(width) < np.array(lengths, int).reshape(-1, 1)
    mask = mask.astype(np.int32)
    ids = np.random.default_rng(0).integers(1, 99, mask.shape) * mask
    return Inputs(ids.astype(np.int32), mask, np.zeros_like(mask))


@given(
    lengths=st.lists(st.integers(0, 9), max_size=20),
    rows_at_once=st.integers(1, 7),
)
def test_rows_come_back_in_their_order_from_groups_no_wider_than_needed(
    lengths, rows_at_once
):
    model = Counted()
    inputs = inputs_of(lengths, 12)
    found = compute_by_length(
        model, Inputs(*map(tf.constant, inputs)), 2, rows_at_once
    )
    ids = inputs.input_ids.astype(np.float32)
    wanted = np.stack([ids @ np.arange(1.0, 13.0), ids.sum(1)], 1)
    np.testing.assert_array_equal(found, wanted)
    ordered = sorted(lengths, reverse=True)
    heads = ordered[::rows_at_once] or [0]
    assert [shape[1] for shape in model.shapes] == [max(n, 1) for n in heads]
    assert sum(shape[0] for shape in model.shapes) == len(lengths)
    assert all(shape[0] <= rows_at_once for shape in model.shapes)


@pytest.mark.parametrize("name", ["reviews", "pairs", "grade", "topics"])
def test_serve_text_answers_alike_with_groups(name, finetuned_folder):
    loaded = load_finetuned(finetuned_folder(name))
    words = [b"the", b"of", b"and", b"to", b"ing"]
    texts = [b" ".join((words * 9)[: 7 * i % 40]) for i in range(11)]
    inputs = {"text": tf.constant(texts)}
    if name == "pairs":
        inputs["text_pair"] = tf.constant(texts[::-1])
    plain, grouped = (
        make_task_module(loaded, rows_at_once=rows) for rows in (0, 4)
    )
    assert grouped.config()["rows_at_once"] == 4
    wanted = plain.signatures()["serve_text"](**inputs)
    found = grouped.signatures()["serve_text"](**inputs)
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        if value.dtype.is_floating:
            np.testing.assert_allclose(found[key], value, atol=1e-5)
        else:
            np.testing.assert_array_equal(found[key], value)
    empty = {key: value[:0] for key, value in inputs.items()}
    for value in grouped.signatures()["serve_text"](**empty).values():
        assert value.shape[0] == 0


def test_heads_that_do_not_answer_once_per_text_refuse_groups(
    finetuned_folder,
):
    loaded = load_finetuned(finetuned_folder("names"))
    with pytest.raises(UserError, match="--rows_at_once"):
        make_task_module(loaded, rows_at_once=8)
