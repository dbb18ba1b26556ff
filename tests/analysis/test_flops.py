# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counted operations against those in the graphs and the original's script."""

import pytest
import tensorflow as tf

from configure.pretraining import PretrainingConfig
from electra_tf.analysis.flops import (
    finetuning_step_flops,
    pretraining_step_flops,
)
from electra_tf.analysis.graph_products import graph_products
from electra_tf.analysis.matrix_products import (
    dense_head,
    question_answering_head,
)
from electra_tf.finetuning.heads import (
    QA_HIDDEN_SIZE,
    ClassificationHead,
    QuestionAnsweringHead,
    RegressionHead,
    TaggingHead,
)
from electra_tf.modeling.embeddings import Embeddings
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.encoder_config import EncoderConfig
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


def test_profiler_finds_the_same_products(config):
    profiler = tf.compat.v1.profiler
    graph = pretraining_graph(config())
    options = profiler.ProfileOptionBuilder(
        profiler.ProfileOptionBuilder.float_operation()
    )
    options = options.with_empty_output().build()
    node = profiler.profile(graph, options=options, cmd="op")
    profiled = {}
    while node is not None:  # A list: each op type holds the next.
        profiled[node.name] = node.float_ops
        node = node.children[0] if node.children else None
    found = graph_products(graph)
    assert {name: profiled[name] for name in found} == dict(found)


def answers(**switches):
    """The head for answer spans, and its count."""
    names = {
        "joint_prediction": "joint",
        "answerable_classifier": "answerable",
        "answerable_uses_start_logits": "answerable_uses_start",
    }
    counted = {names[name]: value for name, value in switches.items()}
    return (
        QuestionAnsweringHead(
            "t", 32, max_seq_length=16, beam_size=6, **switches
        ),
        question_answering_head(4, 16, 32, QA_HIDDEN_SIZE, **counted),
    )


HEADS = {
    "classes": (ClassificationHead("t", 32, 5), dense_head(4, 32, 5)),
    "number": (RegressionHead("t", 32), dense_head(4, 32, 1)),
    "tags": (TaggingHead("t", 32, 7), dense_head(4 * 16, 32, 7)),
    "answers": answers(),
    "ends apart": answers(joint_prediction=False),
    "start not used": answers(answerable_uses_start_logits=False),
    "always an answer": answers(answerable_classifier=False),
}


def finetuning_graph(head, training=True):
    sizes = EncoderConfig(**{**OVERRIDES, "vocab_size": 200, "hidden_size": 32})
    encoder = Encoder("electra", sizes, Embeddings("e", sizes, 8))
    tokens, one = tf.TensorSpec([4, 16], tf.int32), tf.TensorSpec([4], tf.int32)
    spec = {
        name: tokens
        for name in ("input_ids", "input_mask", "segment_ids", "t_labels")
    }
    spec |= {"t_labeled_positions": tokens, "t_eid": one, "t_label_ids": one}
    spec |= {"t_start_positions": one, "t_end_positions": one}
    spec |= {"t_is_impossible": one}
    spec |= {
        "t_targets": tf.TensorSpec([4], tf.float32),
        "t_labels_mask": tf.TensorSpec([4, 16], tf.float32),
    }

    @tf.function
    def step(features):
        with tf.GradientTape() as tape:
            encoded = encoder(
                features["input_ids"],
                features["input_mask"],
                features["segment_ids"],
            )
            outputs = head.logits(encoded, features, training)
            losses = head.loss(outputs, features, training)
        if not training:
            return losses, outputs
        return tape.gradient(losses, tape.watched_variables())

    return sizes, step.get_concrete_function(spec).graph


@pytest.mark.parametrize("name", HEADS)
def test_matrix_products_of_finetuning_are_those_in_the_graph(name):
    head, counted_head = HEADS[name]
    sizes, graph = finetuning_graph(head)
    counted = finetuning_step_flops(sizes, 8, [counted_head], 4, 16)
    assert counted.matmul == graph_products(graph, SEGMENTS).total()


def test_evaluation_scores_ends_for_every_start_of_the_beam():
    head = QuestionAnsweringHead("t", 32, max_seq_length=16, beam_size=6)
    sizes, graph = finetuning_graph(head, training=False)
    counted_head = question_answering_head(4, 16, 32, QA_HIDDEN_SIZE, starts=6)
    counted = finetuning_step_flops(
        sizes, 8, [counted_head], 4, 16, training=False
    )
    assert counted.matmul == graph_products(graph, SEGMENTS).total()


def test_shapes_that_are_not_known_are_not_guessed():
    @tf.function
    def product(matrix):
        return tf.matmul(matrix, matrix)

    spec = tf.TensorSpec([None, 3], tf.float32)
    with pytest.raises(ValueError, match="static shapes"):
        graph_products(product.get_concrete_function(spec).graph)


def test_the_optimizer_and_the_rest_stand_apart(config):
    plain = pretraining_step_flops(config())
    updated = pretraining_step_flops(config(), parameters=1000)
    assert updated.matmul == plain.matmul
    assert updated.part("optimizer").total == 17_000
    assert updated.total - plain.total == 17_000
    assert plain.total == plain.matmul + plain.other
    assert plain.tokens == 4 * 16
    assert plain.matmul_per_token == plain.matmul / 64


def test_a_step_of_the_small_model_takes_as_much_as_was_measured_by_hand():
    # 16 x 128: query, key, value, output, two feed-forward layers of 12
    # blocks of 256 and 64, attention, projections and heads.
    rows, blocks = 16 * 128, 12
    discriminator = blocks * (12 * 256**2 + 2 * 128 * 256) + 128 * 256
    generator = blocks * (12 * 64**2 + 2 * 128 * 64) + 128 * 64
    heads = 256**2 + 256
    softmax = 16 * 19 * (64 * 128 + 128 * 30522)
    products = rows * (discriminator + generator + heads) + softmax
    config = PretrainingConfig.create("small", "data", train_batch_size=16)
    assert pretraining_step_flops(config).matmul == 3 * 2 * products
