# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Dropout with 16 random bits per element."""

import tensorflow as tf

from electra_tf.modeling.graph_modes import compiled, fuses


def dropout(
    inputs: tf.Tensor,
    rate: float,
    seed: tf.Tensor | None,
    in_xla: bool = False,
) -> tf.Tensor:
    """Zero elements with probability `rate`, and rescale the other elements.

    Source: google-research/electra, model/modeling.py, dropout.

    Differs: each element uses 16 random bits, half as many as a uniform
    float32, so that the rate is rounded to a multiple of 1 / 65536 (0.1 becomes
    0.100006). The rescaling uses the rounded rate, so that the mean stays
    exact. In half precision the rate is the nearest rate with an exact
    rescaling factor: 0.0986 for 0.1 in bfloat16.

    Args:
      inputs: float or half precision, any shape.
      rate: probability, at least 0 and below 1.
      seed: int32 [2]; None: no dropout, as in evaluation.
      in_xla: whether XLA compiles the caller, which does not change values.
    """
    if seed is None or not rate:
        return inputs
    threshold = round(rate * 65536)
    if not 0 <= threshold < 65536:
        raise ValueError(
            f"The dropout rate is {rate}; expected a rate in [0, 1). Change the"
            " rate."
        )
    if inputs.dtype.size < 4:
        scale = inputs.dtype.as_numpy_dtype(65536.0 / (65536 - threshold))
        threshold = 65536 - round(65536 / float(scale))
    # The mask waits for the inputs. Otherwise all masks of a step would be
    # drawn at the step's start, and read from memory when they are used.
    with tf.control_dependencies([inputs]):
        seed = tf.identity(seed)
    # XLA treats a shape that is read at run time as dynamic, and then
    # passes the sizes of all axes along with the tensor.
    if inputs.shape.is_fully_defined():
        shape, size = inputs.shape, inputs.shape.num_elements()
    else:
        shape = tf.shape(inputs)
        size = tf.reduce_prod(shape)
    bits = tf.random.stateless_uniform(
        [(size + 1) // 2], seed, None, None, tf.uint32, alg="philox"
    )
    if in_xla:  # XLA's bitcast would take four times as long.
        low = tf.bitwise.bitwise_and(bits, 0xFFFF)
        high = tf.bitwise.right_shift(bits, 16)
        bits = tf.cast(tf.stack([low, high], -1), tf.int32)
    else:
        bits = tf.bitcast(bits, tf.uint16)
    bits = tf.reshape(tf.reshape(bits, [-1])[:size], shape)
    keep = tf.cast(bits >= threshold, inputs.dtype)
    scaled_keep = keep * tf.cast(65536.0 / (65536 - threshold), inputs.dtype)
    if not inputs.shape.is_fully_defined():
        scaled_keep = tf.ensure_shape(scaled_keep, inputs.shape)
    return inputs * scaled_keep


def dropout_without_gradient(
    inputs: tf.Tensor, rate: float, seed: tf.Tensor
) -> tf.Tensor:
    """Return the output of `dropout`; the caller must supply the gradient."""
    if fuses(inputs):
        return _compiled_dropout(inputs, rate, seed, in_xla=True)
    return dropout(inputs, rate, seed)


_compiled_dropout = compiled(dropout)
