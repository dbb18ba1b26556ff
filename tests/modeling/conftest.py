# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A tiny encoder's sizes, random weights and gradients."""

import numpy as np
import tensorflow as tf

from electra_tf.modeling.encoder_config import EncoderConfig


def small_sizes(**changes):
    """Return sizes of a tiny encoder: `small_sizes(num_attention_heads=4)`."""
    sizes = {
        "vocab_size": 30,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 12,
    }
    return EncoderConfig(**(sizes | changes))


def randomize(layer):
    """Replace every weight by noise, so that no term is zero or one."""
    random = np.random.RandomState(0)
    for variable in layer.variables:
        noise = random.randn(*variable.shape) * 0.3
        variable.assign(tf.constant(noise, tf.float32) + 0.05)
    return layer


def value_and_gradients(function, arguments, upstream):
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        value = function(*arguments)
    return [value, *tape.gradient(value, arguments, upstream)]
