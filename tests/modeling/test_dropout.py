# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Dropout: shares, independence, gradients; seeds of sites."""

import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.dropout import dropout
from electra_tf.modeling.seeds import SeedStream

SEED = tf.constant([3, 4])
COUNT = 400_001  # odd: the last draw's second half goes unused
RATES = (0.1, 0.25, 0.5, 0.9)


def rounded(rate):
    return round(rate * 65536) / 65536


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_share_dropped_is_the_rate_and_the_mean_is_kept(rate, seed):
    out = dropout(tf.ones([COUNT]), rate, tf.constant([seed, 1])).numpy()
    rate = rounded(rate)
    error = math.sqrt(rate * (1 - rate) / COUNT)
    assert abs((out == 0).mean() - rate) < 3 * error
    assert abs(out.mean(dtype=np.float64) - 1) < 3 * error / (1 - rate)
    np.testing.assert_allclose(out[out != 0], 1 / (1 - rate), rtol=1e-6)


# Two neighbours share one 32-bit draw; the next pair has two draws.
@pytest.mark.parametrize("start", [0, 1], ids=["one_draw", "two_draws"])
def test_neighbours_are_dropped_independently(start):
    dropped = dropout(tf.ones([COUNT - 1]), 0.1, SEED).numpy() == 0
    pairs = dropped[start : COUNT - 1 - start].reshape(-1, 2)
    both = rounded(0.1) ** 2
    error = math.sqrt(both * (1 - both) / len(pairs))
    assert abs(pairs.all(axis=1).mean() - both) < 3 * error


@pytest.mark.parametrize("shape", [[1], [3], [5, 7], [2, 3, 5], [0], [2, 0]])
@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64])
def test_any_number_of_elements_keeps_shape_and_type(shape, dtype):
    out = dropout(tf.ones(shape, dtype), 0.5, SEED)
    assert out.shape == shape and out.dtype == dtype
    assert set(np.unique(out)) <= {0.0, 2.0}


@pytest.mark.parametrize("rate", [1.0, -0.1])
def test_a_rate_outside_its_range_is_refused(rate):
    with pytest.raises(ValueError, match="expected a rate in .0, 1."):
        dropout(tf.ones([3]), rate, SEED)


def test_a_mask_depends_on_the_seed_alone_traced_or_not():
    def mask(x, seed):
        return dropout(x, 0.3, seed)

    signature = [tf.TensorSpec([None, 7]), tf.TensorSpec([2], tf.int32)]
    traced = tf.function(mask, input_signature=signature)
    ones = tf.ones([90, 7])
    first = mask(ones, SEED).numpy()
    np.testing.assert_array_equal(mask(ones, SEED), first)
    np.testing.assert_array_equal(traced(ones, SEED), first)
    assert (mask(ones, tf.constant([3, 5])).numpy() != first).any()


def test_the_gradient_is_the_scaled_mask():
    inputs = tf.constant(np.random.RandomState(0).randn(501), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        out = dropout(inputs, 0.3, SEED)
    scaled_mask = dropout(tf.ones([501]), 0.3, SEED)
    np.testing.assert_array_equal(tape.gradient(out, inputs), scaled_mask)
    np.testing.assert_array_equal(out, inputs * scaled_mask)


def test_every_site_has_a_different_seed():
    source = SeedStream(SEED)
    seeds = [
        source.seed("a"),
        source.seed("b"),
        source.child("a").seed("a"),
        source.child("a").child("a").seed("a"),
        source.child("b").seed("a"),
        SeedStream(tf.constant([3, 5])).seed("a"),
        SeedStream(tf.constant([4, 4])).seed("a"),
    ]
    assert len({tuple(seed.numpy()) for seed in seeds}) == len(seeds)


def test_a_site_has_the_seed_of_its_full_name():
    by_children = SeedStream(SEED).child("a").child("a").seed("a")
    by_scope = SeedStream(SEED, "a/a/").seed("a")
    np.testing.assert_array_equal(by_children, by_scope)
