# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokens as rows of a matrix: all in inference, real ones in training."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.batch_tokens import BatchTokens, RealTokens
from electra_tf.modeling.embeddings import Embeddings
from electra_tf.modeling.encoder import ComputePolicy, Encoder
from electra_tf.modeling.graph_modes import inference
from electra_tf.modeling.seeds import SeedStream
from tests.modeling.conftest import (
    randomize,
    small_sizes,
    value_and_gradients,
)

MASK = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [1, 0, 1, 1]], np.int32)
ROWS = np.arange(24, dtype=np.float32).reshape(3, 4, 2) + 1
REAL = ROWS[MASK > 0]


def test_all_tokens_are_packed_and_unpacked():
    tokens = BatchTokens(tf.constant(MASK))
    packed = tokens.pack(tf.constant(ROWS))
    np.testing.assert_array_equal(packed, ROWS.reshape(12, 2))
    np.testing.assert_array_equal(tokens.unpack(packed), ROWS)


def test_pack_returns_the_real_tokens_in_their_order():
    packed, gradient = value_and_gradients(
        RealTokens(tf.constant(MASK)).pack, [tf.constant(ROWS)], 2 * REAL
    )
    np.testing.assert_array_equal(packed, REAL)
    np.testing.assert_array_equal(gradient, 2 * ROWS * MASK[..., None])


def test_unpack_returns_rows_with_zeros_at_padding():
    rows, gradient = value_and_gradients(
        RealTokens(tf.constant(MASK)).unpack, [tf.constant(REAL)], 3 * ROWS
    )
    np.testing.assert_array_equal(rows, ROWS * MASK[..., None])
    np.testing.assert_array_equal(gradient, 3 * REAL)


def test_a_batch_of_padding_has_no_tokens():
    tokens = RealTokens(tf.zeros([2, 3], tf.int32))
    packed = tokens.pack(tf.ones([2, 3, 5]))
    assert packed.shape == [0, 5]
    np.testing.assert_array_equal(tokens.unpack(packed), np.zeros([2, 3, 5]))


def outputs_and_gradients(policy, rate=0.0, is_traced=False, training=True):
    """Return the outputs at real tokens, and the gradients of all weights."""
    rates = {"hidden_dropout_prob": rate, "attention_probs_dropout_prob": rate}
    sizes = small_sizes(**rates)
    table = Embeddings("electra/embeddings", sizes, 8)
    encoder = randomize(Encoder("electra", sizes, table))
    encoder.compute_policy = policy
    rng = np.random.default_rng(0)
    ids = tf.constant(rng.integers(0, 30, MASK.shape), tf.int32)
    mask = tf.constant(MASK)
    weights = tf.constant(rng.normal(size=(3, 4, 16)) * MASK[..., None])
    weights = tf.cast(weights, tf.float32)

    def compute():
        seeds = SeedStream(tf.constant([1, 2])) if training else None
        with tf.GradientTape() as tape:
            output = encoder(ids, mask, tf.zeros_like(ids), seeds)
            loss = tf.reduce_sum(output.sequence_output * weights)
        return output.sequence_output, tape.gradient(loss, encoder.variables)

    outputs, gradients = (tf.function(compute) if is_traced else compute)()
    dense = [tf.convert_to_tensor(gradient) for gradient in gradients]
    return [outputs.numpy()[MASK > 0], *(g.numpy() for g in dense)]


@pytest.mark.slow
@pytest.mark.parametrize("is_traced", [False, True])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_outputs_and_gradients_equal_those_with_padding(
    is_traced, checkpointing
):
    policy = ComputePolicy("float32", checkpointing, skip_padding=True)
    actual = outputs_and_gradients(policy, is_traced=is_traced)
    expected = outputs_and_gradients(ComputePolicy())
    for value, reference in zip(actual, expected, strict=True):
        np.testing.assert_allclose(value, reference, rtol=1e-5, atol=2e-5)


@pytest.mark.slow
def test_half_precision_is_as_close_as_with_padding():
    exact = outputs_and_gradients(ComputePolicy())[0]
    errors = [
        np.abs(outputs_and_gradients(policy)[0] - exact).max()
        for policy in (
            ComputePolicy("bfloat16"),
            ComputePolicy("bfloat16", skip_padding=True),
        )
    ]
    assert errors[1] == pytest.approx(errors[0], rel=0.5)


@pytest.mark.slow
def test_dropout_applies_to_real_tokens():
    policy = ComputePolicy(skip_padding=True)
    dropped = outputs_and_gradients(policy, rate=0.3)[0]
    again = outputs_and_gradients(policy, rate=0.3)[0]
    np.testing.assert_array_equal(dropped, again)
    plain = outputs_and_gradients(policy)[0]
    assert np.abs(dropped - plain).max(-1).min() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("is_traced", [False, True])
def test_inference_has_the_outputs_and_gradients_of_training(is_traced):
    expected = outputs_and_gradients(ComputePolicy(), training=False)
    with inference():
        actual = outputs_and_gradients(
            ComputePolicy(), is_traced=is_traced, training=False
        )
    for value, reference in zip(actual, expected, strict=True):
        np.testing.assert_allclose(value, reference, rtol=1e-5, atol=2e-5)


@pytest.mark.slow
def test_evaluation_computes_padding():
    skipping = outputs_and_gradients(
        ComputePolicy(skip_padding=True), training=False
    )
    for value, reference in zip(
        skipping,
        outputs_and_gradients(ComputePolicy(), training=False),
        strict=True,
    ):
        np.testing.assert_array_equal(value, reference)
