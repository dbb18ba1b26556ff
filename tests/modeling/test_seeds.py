# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where seeds come from, and dropout's distribution."""

import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.layers import SeedStream, dropout

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


def test_neighbours_are_dropped_independently():
    # Two neighbours share one 32-bit draw.
    dropped = dropout(tf.ones([COUNT - 1]), 0.1, SEED).numpy() == 0
    for first, second in (
        (dropped[0::2], dropped[1::2]),
        (dropped[1:-1:2], dropped[2::2]),
    ):
        both = rounded(0.1) ** 2
        error = math.sqrt(both * (1 - both) / first.size)
        assert abs((first & second).mean() - both) < 3 * error


@pytest.mark.parametrize("shape", [[1], [3], [5, 7], [2, 3, 5], [0], [2, 0]])
@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64])
def test_any_number_of_elements_keeps_shape_and_type(shape, dtype):
    out = dropout(tf.ones(shape, dtype), 0.5, SEED)
    assert out.shape == shape and out.dtype == dtype
    assert set(np.unique(out)) <= {0.0, 2.0}


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


def test_without_rate_or_seed_nothing_is_done():
    inputs = tf.ones([4])
    for rate, seed in ((0.0, SEED), (None, SEED), (0.5, None)):
        assert dropout(inputs, rate, seed) is inputs


@pytest.mark.parametrize("rate", [1.0, 1.5, -0.1])
def test_a_rate_out_of_range_is_refused(rate):
    with pytest.raises(ValueError, match="in .0, 1., not"):
        dropout(tf.ones([5]), rate, SEED)


def test_the_gradient_is_the_scaled_mask():
    inputs = tf.constant(np.random.RandomState(0).randn(501), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        out = dropout(inputs, 0.3, SEED)
    scaled_mask = dropout(tf.ones([501]), 0.3, SEED)
    np.testing.assert_array_equal(tape.gradient(out, inputs), scaled_mask)
    np.testing.assert_array_equal(out, inputs * scaled_mask)


def test_sites_have_seeds_of_their_own():
    source = SeedStream(SEED)
    sites = [
        source.seed("a"),
        source.seed("b"),
        source.child("a").seed("a"),
        source.child("a").child("a").seed("a"),
        source.child("b").seed("a"),
        SeedStream(tf.constant([3, 5])).seed("a"),
        SeedStream(tf.constant([4, 4])).seed("a"),
    ]
    seeds = {tuple(site.numpy()) for site in sites}
    assert len(seeds) == len(sites)
    np.testing.assert_array_equal(sites[0], SeedStream(SEED).seed("a"))
    np.testing.assert_array_equal(sites[3], SeedStream(SEED, "a/a/").seed("a"))
