# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Masks and self-attention, against a plain reference in float64."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling import transformer as attention_module
from electra_tf.modeling.seeds import SeedStream, dropout
from electra_tf.modeling.transformer import SelfAttention, attention_bias

MASK = tf.constant([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
NAMES = [f"{part}/{kind}" for part in ("query", "key", "value")
         for kind in ("kernel", "bias")]  # fmt: skip


def test_padding_is_hidden_from_every_query():
    bias = attention_bias(MASK)
    assert bias.shape == [2, 1, 1, 5] and bias.dtype == tf.float32
    np.testing.assert_array_equal(bias[0, 0, 0], [0] * 5)
    np.testing.assert_array_equal(bias[1, 0, 0], [0, 0, 0, -10000, -10000])


@pytest.mark.parametrize("direction", ["ltr", "rtl"])
def test_a_direction_hides_what_lies_ahead(direction):
    bias = attention_bias(MASK, direction)
    assert bias.shape == [2, 1, 5, 5]
    for row, query, key in np.ndindex(2, 5, 5):
        ahead = key > query if direction == "ltr" else key < query
        hidden = ahead or MASK[row, key] == 0
        assert bias[row, 0, query, key] == (-10000 if hidden else 0)


def test_another_direction_is_refused():
    with pytest.raises(ValueError, match="ltr or rtl, not 'both'"):
        attention_bias(MASK, "both")


def weights_of(layer):
    return {
        name: getattr(getattr(layer, name.split("/")[0]), name.split("/")[1])
        for name in NAMES
    }


def plain_attention(hidden, bias, weights, heads):
    """Returns mixed values and probabilities, one operation at a time."""
    batch, length, width = hidden.shape

    def project(part):
        out = tf.einsum("blh,hk->blk", hidden, weights[f"{part}/kernel"])
        out += weights[f"{part}/bias"]
        return tf.reshape(out, [batch, length, heads, width // heads])

    scores = tf.einsum("bqad,bkad->baqk", project("query"), project("key"))
    scores = scores / np.sqrt(width // heads) + bias
    scores = tf.exp(scores - tf.reduce_max(scores, -1, keepdims=True))
    probs = scores / tf.reduce_sum(scores, -1, keepdims=True)
    mixed = tf.einsum("baqk,bkad->bqad", probs, project("value"))
    return tf.reshape(mixed, [batch, length, width]), probs


# Four heads of 4 units scale the query (a power of two), two of 8 the scores.
@pytest.fixture(params=[4, 2], ids=["scaled_query", "scaled_scores"])
def attention(request, small_config, randomize):
    config = small_config(num_attention_heads=request.param)
    return randomize(SelfAttention("s/attention/self", config))


@pytest.fixture
def hidden():
    return np.random.RandomState(5).randn(2, 5, 16).astype(np.float32)


@pytest.mark.parametrize("direction", [None, "ltr", "rtl"])
def test_values_equal_the_plain_reference(attention, hidden, direction):
    bias = attention_bias(MASK, direction)
    mixed, probs = attention(hidden, bias)
    weights = {
        n: tf.cast(w, tf.float64) for n, w in weights_of(attention).items()
    }
    # A row of rtl whose keys are all hidden rounds its scores at 10,000.
    tolerance = 3e-3 if direction == "rtl" else 2e-6
    expected = plain_attention(
        tf.constant(hidden, tf.float64),
        tf.cast(bias, tf.float64),
        weights,
        attention.config.num_attention_heads,
    )
    np.testing.assert_allclose(mixed, expected[0], atol=tolerance)
    np.testing.assert_allclose(probs, expected[1], atol=tolerance)


def test_gradients_equal_autodiff_and_the_key_bias_has_exactly_none(
    attention, hidden
):
    bias = attention_bias(MASK)
    upstream = np.random.RandomState(6).randn(2, 5, 16)
    weights = weights_of(attention)
    inputs = tf.constant(hidden)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        mixed, _ = attention(inputs, bias)
    sources = {"inputs": inputs, **weights}
    actual = tape.gradient(mixed, sources, tf.constant(upstream, tf.float32))

    exact = {
        name: tf.cast(value, tf.float64) for name, value in sources.items()
    }
    with tf.GradientTape() as tape:
        tape.watch(exact)
        mixed, _ = plain_attention(
            exact["inputs"],
            tf.cast(bias, tf.float64),
            exact,
            attention.config.num_attention_heads,
        )
    expected = tape.gradient(mixed, exact, tf.constant(upstream))
    for name in sources:
        np.testing.assert_allclose(
            actual[name], expected[name], rtol=1e-4, atol=1e-5, err_msg=name
        )
    np.testing.assert_array_equal(actual["key/bias"], np.zeros(16))
    assert np.abs(actual["query/bias"]).max() > 1e-3


def test_a_query_without_visible_keys_falls_back_to_the_raw_scores(
    attention, hidden
):
    everything_hidden = attention_bias(tf.zeros([2, 5], tf.int32))
    mixed, probs = attention(hidden, everything_hidden)
    raw = attention(hidden, attention_bias(tf.ones([2, 5], tf.int32)))
    assert np.isfinite(mixed).all()
    # float32 resolves 0.001 at 10,000.
    np.testing.assert_allclose(probs, raw[1], atol=2e-3)
    np.testing.assert_allclose(mixed, raw[0], atol=5e-3)
    np.testing.assert_allclose(
        tf.reduce_sum(probs, -1), np.ones_like(probs[..., 0]), atol=1e-5
    )


def test_dropout_of_probabilities_needs_a_source_and_a_rate(
    small_config, hidden
):
    bias = attention_bias(MASK)
    source = SeedStream(tf.constant([0, 1]))
    layer = SelfAttention("s", small_config(attention_probs_dropout_prob=0.5))
    assert (layer(hidden, bias, source)[1].numpy()[0] == 0).any()
    assert (layer(hidden, bias)[1].numpy()[0] > 0).all()
    still = SelfAttention("s", small_config(attention_probs_dropout_prob=0.0))
    np.testing.assert_array_equal(
        still(hidden, bias, source)[1], still(hidden, bias)[1]
    )


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(tf.float32, 1e-6), (tf.bfloat16, 0.02)]
)
def test_gradients_through_dropout_equal_autodiff_with_the_same_mask(
    dtype, tolerance
):
    random = np.random.RandomState(7)
    scores = tf.constant(random.randn(2, 3, 5, 5) * 2, dtype)
    upstream = tf.constant(random.randn(2, 3, 5, 5), dtype)
    bias, seed = attention_bias(MASK), tf.constant([3, 4])
    with tf.GradientTape() as tape:
        tape.watch(scores)
        dropped = attention_module._attention_probs(scores, bias, 0.4, seed)
    actual = tape.gradient(dropped, scores, upstream)

    # What dropout makes of ones is the mask, rescaled.
    mask = tf.cast(dropout(tf.ones_like(scores), 0.4, seed), tf.float64)
    exact = tf.cast(scores, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(exact)
        probs = tf.nn.softmax(exact + tf.cast(bias, tf.float64))
        expected_dropped = probs * mask
    expected = tape.gradient(
        expected_dropped, exact, tf.cast(upstream, tf.float64)
    )
    assert 0.2 < np.mean(mask == 0) < 0.6
    assert dropped.dtype == actual.dtype == dtype
    for found, wanted in ((dropped, expected_dropped), (actual, expected)):
        np.testing.assert_allclose(
            tf.cast(found, tf.float64), wanted, atol=tolerance
        )
