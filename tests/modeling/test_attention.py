# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Attention: hidden keys, values and gradients by the plain formula."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling import attention as attention_module
from electra_tf.modeling.attention import SelfAttention, attention_bias
from electra_tf.modeling.dropout import dropout
from tests.modeling.conftest import randomize, small_sizes

MASK = tf.constant([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


@pytest.mark.parametrize(
    ("direction", "ahead"),
    [
        (None, np.zeros([5, 5])),
        ("ltr", np.triu(np.ones([5, 5]), 1)),
        ("rtl", np.tril(np.ones([5, 5]), -1)),
    ],
)
def test_padding_and_tokens_ahead_are_hidden(direction, ahead):
    bias = attention_bias(MASK, direction)
    assert bias.shape == [2, 1, 5 if direction else 1, 5]
    assert bias.dtype == tf.float32
    padding = MASK.numpy()[:, None, None, :] == 0
    expected = np.where(padding | (ahead > 0), -10000, 0)
    np.testing.assert_array_equal(np.broadcast_to(bias, [2, 1, 5, 5]), expected)


def test_an_unknown_direction_is_refused():
    with pytest.raises(
        ValueError, match="direction is 'both'; expected ltr or rtl"
    ):
        attention_bias(MASK, "both")


def in_float64(tensors):
    return tf.nest.map_structure(lambda t: tf.cast(t, tf.float64), tensors)


def plain_attention(hidden, bias, weights, heads):
    """Return mixed values and probabilities, one operation at a time."""
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
def attention(request):
    sizes = small_sizes(num_attention_heads=request.param)
    return randomize(SelfAttention("s/attention/self", sizes))


HIDDEN = np.random.RandomState(5).randn(2, 5, 16).astype(np.float32)


@pytest.fixture
def gradients(attention):
    """Return outputs and gradients: the layer's, and exact ones."""
    bias = attention_bias(MASK, "ltr")
    upstream = np.random.RandomState(6).randn(2, 5, 16)
    inputs = tf.constant(HIDDEN)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        values = attention(inputs, bias)
    sources = {"inputs": inputs}
    for part in ("query", "key", "value"):
        layer = getattr(attention, part)
        sources[f"{part}/kernel"] = layer.kernel
        sources[f"{part}/bias"] = layer.bias
    actual = tape.gradient(
        values[0], sources, tf.constant(upstream, tf.float32)
    )
    exact = in_float64(sources)
    heads = attention.sizes.num_attention_heads
    with tf.GradientTape() as tape:
        tape.watch(exact)
        plain = plain_attention(exact["inputs"], in_float64(bias), exact, heads)
    expected = tape.gradient(plain[0], exact, tf.constant(upstream))
    return values, actual, plain, expected


def test_values_and_gradients_are_those_of_the_plain_formula(gradients):
    (mixed, probs), actual, (plain_mixed, plain_probs), expected = gradients
    np.testing.assert_allclose(mixed, plain_mixed, atol=2e-6)
    np.testing.assert_allclose(probs, plain_probs, atol=2e-6)
    tf.nest.map_structure(
        lambda *pair: np.testing.assert_allclose(*pair, rtol=1e-4, atol=1e-5),
        actual,
        expected,
    )


def test_only_the_key_bias_has_no_gradient(gradients):
    _, actual, _, _ = gradients
    np.testing.assert_array_equal(actual["key/bias"], np.zeros(16))
    assert np.abs(actual["query/bias"]).max() > 1e-3


def test_a_query_without_visible_keys_has_the_raw_scores(attention):
    mixed, probs = attention(HIDDEN, attention_bias(tf.zeros_like(MASK)))
    raw = attention(HIDDEN, attention_bias(tf.ones_like(MASK)))
    # float32 resolves 0.001 at 10,000.
    np.testing.assert_allclose(probs, raw[1], atol=2e-3)
    np.testing.assert_allclose(mixed, raw[0], atol=5e-3)
    np.testing.assert_allclose(tf.reduce_sum(probs, -1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(tf.float32, 1e-6), (tf.bfloat16, 0.02)]
)
def test_gradients_through_dropout_are_those_of_autodiff(dtype, tolerance):
    random = np.random.RandomState(7)
    scores = tf.constant(random.randn(2, 3, 5, 5) * 2, dtype)
    upstream = tf.constant(random.randn(2, 3, 5, 5), dtype)
    bias, seed = attention_bias(MASK), tf.constant([3, 4])
    with tf.GradientTape() as tape:
        tape.watch(scores)
        dropped = attention_module._attention_probs(scores, bias, 0.4, seed)
    actual = tape.gradient(dropped, scores, upstream)
    # Dropout of ones is the rescaled mask.
    mask = in_float64(dropout(tf.ones_like(scores), 0.4, seed))
    exact = in_float64(scores)
    with tf.GradientTape() as tape:
        tape.watch(exact)
        expected_dropped = tf.nn.softmax(exact + in_float64(bias)) * mask
    expected = tape.gradient(expected_dropped, exact, in_float64(upstream))
    assert 0.2 < np.mean(mask == 0) < 0.6
    assert dropped.dtype == actual.dtype == dtype
    np.testing.assert_allclose(
        in_float64([dropped, actual]),
        [expected_dropped, expected],
        atol=tolerance,
    )
