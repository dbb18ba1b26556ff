# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layer norm, initial kernels, layers in inference and fused by XLA."""

import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling import activations, dropout, layers
from electra_tf.modeling.encoder import TransformerBlock
from electra_tf.modeling.graph_modes import inference
from electra_tf.modeling.layers import Dense, LayerNorm
from tests.modeling.conftest import (
    randomize,
    small_sizes,
    value_and_gradients,
)


def plain_layer_norm(inputs, gamma, beta):
    mean = tf.reduce_mean(inputs, -1, keepdims=True)
    variance = tf.reduce_mean((inputs - mean) ** 2, -1, keepdims=True)
    return (inputs - mean) / tf.sqrt(variance + 1e-12) * gamma + beta


@pytest.mark.parametrize("shape", [[5, 7], [2, 3, 7]])
def test_layer_norm_and_its_gradients_equal_the_plain_formula(shape):
    random = np.random.RandomState(0)
    arguments = [
        tf.constant(random.randn(*shape) * 3 + 1),  # float64
        tf.constant(random.randn(7)),
        tf.constant(random.randn(7)),
    ]
    upstream = tf.constant(random.randn(*shape))
    actual = value_and_gradients(layers._layer_norm, arguments, upstream)
    expected = value_and_gradients(plain_layer_norm, arguments, upstream)
    assert [x.shape for x in actual] == [x.shape for x in expected]
    tf.nest.map_structure(
        lambda *pair: np.testing.assert_allclose(*pair, rtol=1e-10, atol=1e-12),
        actual,
        expected,
    )


def traced_block():
    """Return the types of operations in a block's graph, and its outputs."""
    block = randomize(TransformerBlock("e/encoder/layer_0", small_sizes()))
    hidden = tf.random.stateless_normal([2, 5, 16], [1, 2])
    compute = tf.function(lambda: block(hidden, tf.zeros([2, 1, 1, 5]))[0])
    graph = compute.get_concrete_function().graph
    return {o.type for o in graph.get_operations()}, compute().numpy()


def test_layers_traced_for_inference_have_no_gradients_of_their_own():
    kinds, outputs = traced_block()
    assert "IdentityN" in kinds
    with inference():
        bare_kinds, bare_outputs = traced_block()
    assert "IdentityN" not in bare_kinds
    np.testing.assert_allclose(bare_outputs, outputs, rtol=1e-5, atol=1e-6)
    assert "IdentityN" in traced_block()[0]


def test_gelu_follows_its_product_without_a_reshape_in_inference():
    first, second = Dense("a", 6, 8), Dense("b", 8, 4, input_activation="gelu")
    compute = tf.function(lambda rows: second(first(rows)))
    with inference():
        rows = tf.TensorSpec([None, 6], tf.float32)
        graph = compute.get_concrete_function(rows).graph
    (erf,) = (o for o in graph.get_operations() if o.type == "Erf")
    producers = {tensor.op.type for tensor in erf.inputs[0].op.inputs}
    # TensorFlow's fused kernel takes the biased product itself.
    assert producers == {"BiasAdd", "Const"}


def test_a_kernel_without_deviation_is_glorot_uniform():
    kernel = Dense("scope", 60, 90).kernel.numpy()
    limit = math.sqrt(6 / (60 + 90))
    assert 0.98 * limit < np.abs(kernel).max() <= limit
    np.testing.assert_allclose(kernel.std(), limit / math.sqrt(3), rtol=0.03)


def test_a_kernel_with_deviation_is_normal_and_truncated():
    kernel = Dense("scope", 80, 80, stddev=0.02).kernel.numpy()
    assert 0.038 < np.abs(kernel).max() <= 0.04
    # A normal cut at two deviations keeps 0.8796 of its deviation.
    np.testing.assert_allclose(kernel.std(), 0.02 * 0.8796, rtol=0.03)
    assert abs(kernel.mean()) < 4 * 0.02 / 80


def test_initial_values_depend_on_seed_and_scope_alone():
    first, again, other, elsewhere = (
        Dense(scope, 4, 4, seed=seed).kernel.numpy()
        for scope, seed in (("a", 1), ("a", 1), ("a", 2), ("b", 1))
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any() and (first != elsewhere).any()


@pytest.fixture
def set_fusing(monkeypatch):
    """Return a function that lets layers fuse operations or not."""

    def set_fusing(fuses):
        for module in (layers, activations, dropout):
            monkeypatch.setattr(module, "fuses", lambda *tensors: fuses)

    return set_fusing


@pytest.mark.parametrize(
    ("dtype", "bound"), [("float32", 1e-5), ("bfloat16", 0.1)]
)
def test_fused_operations_compute_what_tensorflow_does(
    set_fusing, dtype, bound
):
    norm, seed = LayerNorm("norm", 5), tf.constant([1, 2])
    tensors = [tf.random.stateless_normal([7, 3, 5], [n, 0]) for n in range(3)]
    tensors = [tf.cast(tensor, dtype) for tensor in tensors]

    def run(fuses):
        set_fusing(fuses)

        @tf.function
        def outputs_and_gradients(inputs, residual, upstream):
            with tf.GradientTape() as tape:
                tape.watch([inputs, residual])
                hidden = activations.gelu(inputs)
                outputs = norm(hidden, residual, rate=0.3, seed=seed)
            sources = [inputs, residual, *norm.trainable_variables]
            return outputs, *tape.gradient(outputs, sources, upstream)

        return [tf.cast(x, tf.float32) for x in outputs_and_gradients(*tensors)]

    tf.nest.map_structure(
        lambda *pair: np.testing.assert_allclose(*pair, atol=bound),
        run(True),
        run(False),
    )


@pytest.mark.parametrize(
    ("dtype", "bound"), [("float32", 1e-6), ("bfloat16", 0.05)]
)
def test_a_layer_that_computes_gelu_again_has_the_same_gradients(
    set_fusing, dtype, bound
):
    layer = Dense("d", 6, 4, stddev=0.3, seed=3, input_activation="gelu")
    inputs = tf.cast(tf.random.stateless_normal([2, 5, 6], [1, 2]), dtype)
    upstream = tf.cast(tf.random.stateless_normal([2, 5, 4], [3, 4]), dtype)

    def run(fuses):
        set_fusing(fuses)

        @tf.function
        def outputs_and_gradients():
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                outputs = layer(inputs)
            sources = [inputs, layer.kernel, layer.bias]
            return outputs, *tape.gradient(outputs, sources, upstream)

        graph = outputs_and_gradients.get_concrete_function().graph
        names = [
            operation.get_attr("f").name
            for operation in graph.get_operations()
            if operation.type == "PartitionedCall"
        ]
        forward = [n for n in names if "gelu_without_gradient" in n]
        values = [tf.cast(x, tf.float32) for x in outputs_and_gradients()]
        return values, len(forward)

    fused, computations = run(True)
    plain, _ = run(False)
    assert computations == 2  # in the forward and in the backward pass
    tf.nest.map_structure(
        lambda *pair: np.testing.assert_allclose(*pair, atol=bound),
        fused,
        plain,
    )


def test_fused_dropout_drops_the_same_elements(set_fusing):
    seed, ones = tf.constant([3, 4]), tf.ones([5, 9])
    set_fusing(True)
    fused = tf.function(dropout.dropout_without_gradient)(ones, 0.4, seed)
    np.testing.assert_array_equal(fused, dropout.dropout(ones, 0.4, seed))
