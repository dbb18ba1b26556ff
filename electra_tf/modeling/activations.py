# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Activation functions by name, with GELU in its exact form."""

import functools
import math
from collections.abc import Callable

import tensorflow as tf

from configure.errors import UserError
from electra_tf.modeling.graph_modes import compiled, fuses, is_inference


def activation_function(
    name: str | None,
) -> Callable[[tf.Tensor], tf.Tensor] | None:
    """Return an activation function by name, or None instead of the identity.

    The names of the identity are "linear", "" and None.

    Source: google-research/electra, model/modeling.py, get_activation.
    """
    functions = {
        "gelu": gelu,
        "gelu_new": functools.partial(tf.nn.gelu, approximate=True),
        "relu": tf.nn.relu,
        "tanh": tf.tanh,
        "linear": None,
    }
    key = (name or "linear").lower()
    if key not in functions:
        raise UserError(
            f"hidden_act: unsupported activation {name!r}; expected one of"
            f" {', '.join(functions)}. Change hidden_act in"
            " model_hparam_overrides."
        )
    return functions[key]


def gelu(inputs: tf.Tensor) -> tf.Tensor:
    """Return the Gaussian error linear unit in its exact (erf) form.

    Source: google-research/electra, model/modeling.py, gelu.
    """
    if is_inference():  # TensorFlow and converters recognize this formula.
        return 0.5 * inputs * (1.0 + tf.math.erf(inputs * math.sqrt(0.5)))
    return _fused_gelu(inputs) if fuses(inputs) else _gelu(inputs)


@tf.custom_gradient
def _gelu(inputs: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    """Return GELU; the forward pass also computes the slope for the gradient.

    The backward pass then needs one tensor instead of two (`inputs` and `cdf`).
    Without a gradient, TensorFlow removes the computation of the slope.
    """
    cdf, slope = _cdf_and_slope(inputs)
    return inputs * cdf, lambda upstream: upstream * slope


def _cdf_and_slope(inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    scaled = inputs * math.sqrt(0.5)
    # erfc would need one operation fewer, but TensorFlow's erfc takes three
    # times as long as its erf.
    cdf = 0.5 + 0.5 * tf.math.erf(scaled)
    density = tf.exp(-tf.square(scaled))
    density *= inputs * (1.0 / math.sqrt(2.0 * math.pi))
    return cdf, cdf + density


@tf.custom_gradient
def _fused_gelu(inputs: tf.Tensor) -> tuple[tf.Tensor, Callable]:
    """Return GELU; its gradient is a separate compiled function.

    XLA takes longer for a function that computes both than for two functions.
    """
    return gelu_without_gradient(inputs), lambda upstream: gelu_gradient(
        upstream, inputs
    )


@compiled
def gelu_without_gradient(inputs: tf.Tensor) -> tf.Tensor:
    """Return GELU; the caller must supply the gradient."""
    wide = tf.cast(inputs, tf.float32)
    return tf.cast(wide * _cdf_and_slope(wide)[0], inputs.dtype)


@compiled
def gelu_gradient(upstream: tf.Tensor, inputs: tf.Tensor) -> tf.Tensor:
    """Return the gradient of the inputs of GELU."""
    upstream, wide = (tf.cast(x, tf.float32) for x in (upstream, inputs))
    return tf.cast(upstream * _cdf_and_slope(wide)[1], inputs.dtype)
