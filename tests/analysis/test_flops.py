# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counted operations against those in the graphs and the original's script."""

import pytest
import tensorflow as tf

from electra_tf.analysis.flops import (
    pretraining_step_flops,
)
from electra_tf.analysis.graph_products import graph_products
from electra_tf.pretraining.model import PretrainingModel

# Segments are looked up by a product, which is not counted; no other size is.
SEGMENTS = 3

OVERRIDES = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 32,
    "type_vocab_size": SEGMENTS,
}

MODELS = {
    "small generator": {},
    "half the layers": {"generator_layers": 0.5},
    "wide generator": {"generator_hidden_size": 0.5},
    "as wide as the tables": {
        "generator_hidden_size": 0.25,
        "model_size": "base",
        "embedding_size": 8,
    },
    "no projection": {"model_size": "base", "embedding_size": None},
    "untied embeddings": {"untied_generator_embeddings": True},
    "tied generator": {"untied_generator": False},
    "masked LM": {"electra_objective": False},
    "uniform": {"uniform_generator": True},
    "two towers": {"two_tower_generator": True},
    "Electric": {"electra_objective": False, "electric_objective": True},
    "more masked": {"mask_prob": 0.4, "max_seq_length": 24},
}


@pytest.fixture
def config(tiny_config):
    def make(**hparams):
        return tiny_config(
            **{"model_hparam_overrides": dict(OVERRIDES), **hparams}
        )

    return make


def pretraining_graph(config, training=True):
    model = PretrainingModel(config)
    shape = [config.train_batch_size, config.max_seq_length]
    spec = {
        name: tf.TensorSpec(shape, tf.int32)
        for name in ("input_ids", "input_mask", "segment_ids")
    }

    @tf.function
    def step(features):
        if not training:
            return model.compute(features)["total_loss"]
        with tf.GradientTape() as tape:
            loss = model.compute(features, training=True)["total_loss"]
        return tape.gradient(loss, model.trainable_variables)

    return step.get_concrete_function(spec).graph


@pytest.mark.parametrize("name", MODELS)
def test_matrix_products_of_a_step_are_those_in_the_graph(config, name):
    settings = config(**MODELS[name])
    counted = pretraining_step_flops(settings)
    found = graph_products(pretraining_graph(settings), SEGMENTS)
    assert counted.matmul == found.total()


@pytest.mark.parametrize("name", ["small generator", "tied generator"])
def test_forward_products_are_those_in_the_graph(config, name):
    settings = config(**MODELS[name])
    counted = pretraining_step_flops(settings, training=False)
    found = graph_products(pretraining_graph(settings, False), SEGMENTS)
    assert counted.matmul == counted.matmul_forward == found.total()
