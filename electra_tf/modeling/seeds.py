# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stateless draws: each is a function of the run's seed, step and site."""

import zlib

import tensorflow as tf


class SeedStream:
    """Hands out one independent seed per named site.

    The graph holds no generator state, so a restored run draws what the
    uninterrupted one would have drawn.

    Args:
      seed: int32 [2]; by convention the run's seed and the step.
    """

    def __init__(self, seed: tf.Tensor, scope: str = "") -> None:
        self._seed = seed
        self._scope = scope

    def child(self, scope: str) -> "SeedStream":
        """The same stream for a sub-scope of sites."""
        return SeedStream(self._seed, f"{self._scope}{scope}/")

    def seed(self, site: str) -> tf.Tensor:
        """The int32 [2] seed of a site, for tf.random.stateless_* functions."""
        key = zlib.crc32((self._scope + site).encode()) & 0x7FFFFFFF
        return tf.random.experimental.stateless_fold_in(self._seed, key)


def initializer_seed(seed: int, variable_name: str) -> int:
    """Returns the seed of one variable's initial value.

    It depends on the name only, so adding a layer elsewhere does not change
    a variable's start.
    """
    return zlib.crc32(f"{seed}:{variable_name}".encode()) & 0x7FFFFFFF


def dropout(
    inputs: tf.Tensor, rate: float, seed: tf.Tensor | None
) -> tf.Tensor:
    """Zeroes elements with probability `rate` and rescales the others.

    Without a seed (int32 [2]) nothing is dropped, as in evaluation.

    Source: google-research/electra, model/modeling.py, dropout.

    Differs: each element takes 16 random bits, half of what a float32 uniform
    takes, so the rate is rounded to a multiple of 1 / 65536 (0.1 becomes
    0.100006); the rescaling uses the rounded rate, the mean stays exact. In
    half precision the rate is the nearest one that the dtype can rescale by
    exactly: 0.0986 for 0.1 in bfloat16.
    """
    if seed is None or not rate:
        return inputs
    threshold = round(rate * 65536)
    if not 0 <= threshold < 65536:
        raise ValueError(f"The dropout rate must be in [0, 1), not {rate}.")
    if inputs.dtype.size < 4:
        scale = inputs.dtype.as_numpy_dtype(65536.0 / (65536 - threshold))
        threshold = 65536 - round(65536 / float(scale))
    # Not before the inputs: all masks of a step would be drawn at its start
    # and fetched from memory again when they are used.
    with tf.control_dependencies([inputs]):
        seed = tf.identity(seed)
    shape = tf.shape(inputs)
    size = tf.reduce_prod(shape)
    bits = tf.random.stateless_uniform(
        [(size + 1) // 2], seed, None, None, tf.uint32, alg="philox"
    )
    bits = tf.reshape(tf.bitcast(bits, tf.uint16), [-1])[:size]
    keep = tf.cast(tf.reshape(bits, shape) >= threshold, inputs.dtype)
    scaled_keep = keep * tf.cast(65536.0 / (65536 - threshold), inputs.dtype)
    return inputs * tf.ensure_shape(scaled_keep, inputs.shape)
