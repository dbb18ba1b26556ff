# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.encoder_config import EncoderConfig


@pytest.fixture
def small_config():
    """A factory of tiny encoder sizes: `small_config(hidden_size=24)`."""

    def make(**changes):
        sizes = {
            "vocab_size": 30,
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 24,
            "max_position_embeddings": 12,
        }
        return EncoderConfig(**{**sizes, **changes})

    return make


@pytest.fixture
def randomize():
    """Replaces every weight by noise, so that no term is zero or one."""

    def fill(layer, seed=0, scale=0.3):
        random = np.random.RandomState(seed)
        for variable in layer.variables:
            noise = random.randn(*variable.shape) * scale
            variable.assign(tf.constant(noise, tf.float32) + 0.05)
        return layer

    return fill
