# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The GELU's values and gradients; activations by name."""

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.modeling.activations import activation_function, gelu
from tests.modeling.conftest import value_and_gradients


def test_gelu_in_float32_is_as_exact_as_its_rounding():
    inputs = tf.constant(np.linspace(-12, 12, 4001), tf.float32)
    exact = tf.cast(inputs, tf.float64)
    actual = value_and_gradients(gelu, [inputs], tf.ones_like(inputs))
    expected = value_and_gradients(tf.nn.gelu, [exact], tf.ones_like(exact))
    scale = np.maximum(np.abs(inputs), 1.0)
    errors = np.abs(np.stack(actual) - np.stack(expected)) / scale
    assert errors.max() < 3e-7


def test_gelu_of_large_inputs_is_that_of_relu():
    inputs = tf.constant([-1e30, -30.0, 30.0, 1e30])
    value, gradient = value_and_gradients(gelu, [inputs], tf.ones([4]))
    np.testing.assert_array_equal(value, tf.nn.relu(inputs))
    np.testing.assert_array_equal(gradient, [0.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("name", "at_one"), [("gelu", 0.841345), ("RELU", 1), ("tanh", 0.761594)]
)
def test_an_activation_is_found_by_its_name(name, at_one):
    output = activation_function(name)(tf.constant(1.0))
    np.testing.assert_allclose(output, at_one, rtol=1e-6)


@pytest.mark.parametrize("name", ["linear", "", None, "Linear"])
def test_linear_activations_are_none(name):
    assert activation_function(name) is None


def test_an_unknown_activation_is_refused_with_the_choices():
    with pytest.raises(UserError, match="'swish'.*gelu_new, relu, tanh, lin"):
        activation_function("swish")
