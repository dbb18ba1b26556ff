# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers and dropout: values, gradients, initial values, names, seeds."""

import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling import layers
from electra_tf.modeling.encoder import TransformerBlock
from electra_tf.modeling.layers import Dense, SeedStream, dropout, gelu
from tests.modeling.conftest import randomize, small_config


def plain_layer_norm(inputs, gamma, beta):
    mean = tf.reduce_mean(inputs, -1, keepdims=True)
    variance = tf.reduce_mean((inputs - mean) ** 2, -1, keepdims=True)
    return (inputs - mean) / tf.sqrt(variance + 1e-12) * gamma + beta


def value_and_gradients(function, arguments, upstream):
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        value = function(*arguments)
    return [value, *tape.gradient(value, arguments, upstream)]


@pytest.mark.parametrize("shape", [[5, 7], [2, 3, 7]])
def test_layer_norm_and_its_gradients_equal_the_plain_formula(shape):
    random = np.random.RandomState(0)
    arguments = [
        tf.constant(random.randn(*shape) * 3 + 1),  # float64
        tf.constant(random.randn(7)),
        tf.constant(random.randn(7)),
    ]
    upstream = tf.constant(random.randn(*shape))
    ours = value_and_gradients(layers._layer_norm, arguments, upstream)
    plain = value_and_gradients(plain_layer_norm, arguments, upstream)
    for actual, expected in zip(ours, plain, strict=True):
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


def test_gelu_in_float32_is_as_exact_as_its_rounding():
    inputs = tf.constant(np.linspace(-12, 12, 4001), tf.float32)
    exact = tf.cast(inputs, tf.float64)
    actual = value_and_gradients(gelu, [inputs], tf.ones_like(inputs))
    expected = value_and_gradients(tf.nn.gelu, [exact], tf.ones_like(exact))
    scale = np.maximum(np.abs(inputs), 1.0)
    for found, wanted in zip(actual, expected, strict=True):
        assert np.max(np.abs(found.numpy() - wanted) / scale) < 3e-7
    large = tf.constant([-1e30, -30.0, 30.0, 1e30])
    value, gradient = value_and_gradients(gelu, [large], tf.ones([4]))
    np.testing.assert_array_equal(value, tf.nn.relu(large))
    np.testing.assert_array_equal(gradient, [0.0, 0.0, 1.0, 1.0])


def traced_block():
    """The operations of a block's graph, and its outputs."""
    block = randomize(TransformerBlock("e/encoder/layer_0", small_config()))
    hidden = tf.random.stateless_normal([2, 5, 16], [1, 2])
    compute = tf.function(lambda: block(hidden, tf.zeros([2, 1, 1, 5]))[0])
    graph = compute.get_concrete_function().graph
    return {o.type for o in graph.get_operations()}, compute().numpy()


def test_inference_layers_bring_no_gradients():
    kinds, outputs = traced_block()
    assert "IdentityN" in kinds
    with layers.inference():
        bare_kinds, bare_outputs = traced_block()
    assert "IdentityN" not in bare_kinds
    np.testing.assert_allclose(bare_outputs, outputs, rtol=1e-5, atol=1e-6)
    assert "IdentityN" in traced_block()[0]


def test_initial_kernels_are_glorot_uniform_or_a_cut_normal():
    kernel = Dense("scope", 60, 90).kernel.numpy()
    limit = math.sqrt(6 / (60 + 90))
    assert 0.98 * limit < np.abs(kernel).max() <= limit
    np.testing.assert_allclose(kernel.std(), limit / math.sqrt(3), rtol=0.03)
    kernel = Dense("scope", 80, 80, stddev=0.02).kernel.numpy()
    assert 0.038 < np.abs(kernel).max() <= 0.04
    # A normal cut at two deviations keeps 0.8796 of its deviation.
    np.testing.assert_allclose(kernel.std(), 0.02 * 0.8796, rtol=0.03)
    assert abs(kernel.mean()) < 4 * 0.02 / 80
    # They depend on seed and scope only.
    first, again, other, elsewhere = (
        Dense(scope, 4, 4, seed=seed).kernel.numpy()
        for scope, seed in (("a", 1), ("a", 1), ("a", 2), ("b", 1))
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any() and (first != elsewhere).any()


def test_activations_are_found_by_name():
    for name, at_one in {"gelu": 0.841345, "RELU": 1, "tanh": 0.761594}.items():
        found = layers.activation_function(name)(tf.constant(1.0))
        np.testing.assert_allclose(found, at_one, rtol=1e-6)
    for linear in ("linear", "", None, "Linear"):
        assert layers.activation_function(linear) is None
    with pytest.raises(ValueError, match="'swish'.*gelu, relu, tanh, linear"):
        layers.activation_function("swish")


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
    pairs = (dropped[0::2], dropped[1::2]), (dropped[1:-1:2], dropped[2::2])
    for first, second in pairs:
        both = rounded(0.1) ** 2
        error = math.sqrt(both * (1 - both) / first.size)
        assert abs((first & second).mean() - both) < 3 * error


@pytest.mark.parametrize("shape", [[1], [3], [5, 7], [2, 3, 5], [0], [2, 0]])
@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64])
def test_any_number_of_elements_keeps_shape_and_type(shape, dtype):
    out = dropout(tf.ones(shape, dtype), 0.5, SEED)
    assert out.shape == shape and out.dtype == dtype
    assert set(np.unique(out)) <= {0.0, 2.0}
    for rate in (1.0, -0.1):
        with pytest.raises(ValueError, match="in .0, 1., not"):
            dropout(out, rate, SEED)


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
    assert len({tuple(site.numpy()) for site in sites}) == len(sites)
    np.testing.assert_array_equal(sites[0], SeedStream(SEED).seed("a"))
    np.testing.assert_array_equal(sites[3], SeedStream(SEED, "a/a/").seed("a"))


@pytest.mark.parametrize(
    ("dtype", "bound"), [("float32", 1e-5), ("bfloat16", 0.1)]
)
def test_what_xla_fuses_is_what_tensorflow_computes(monkeypatch, dtype, bound):
    norm, seed = layers.LayerNorm("norm", 5), tf.constant([1, 2])
    tensors = [tf.random.stateless_normal([7, 3, 5], [n, 0]) for n in range(3)]
    tensors = [tf.cast(tensor, dtype) for tensor in tensors]

    def run(fuses):
        monkeypatch.setattr(layers, "_fuses", lambda *tensors: fuses)

        @tf.function
        def outputs_and_gradients(inputs, residual, upstream):
            with tf.GradientTape() as tape:
                tape.watch([inputs, residual])
                outputs = norm(gelu(inputs), residual, rate=0.3, seed=seed)
            sources = [inputs, residual, *norm.trainable_variables]
            return outputs, *tape.gradient(outputs, sources, upstream)

        return outputs_and_gradients(*tensors)

    for fused, plain in zip(run(True), run(False), strict=True):
        fused, plain = (tf.cast(x, tf.float32) for x in (fused, plain))
        np.testing.assert_allclose(fused, plain, atol=bound)
    monkeypatch.setattr(layers, "_fuses", lambda *tensors: True)
    fused = tf.function(layers.dropout_alone)(tf.ones([5, 9]), 0.4, SEED)
    np.testing.assert_array_equal(fused, dropout(tf.ones([5, 9]), 0.4, SEED))
