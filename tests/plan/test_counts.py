# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts of parameters and FLOPs equal models, graphs and the original."""

import functools
import itertools
import math

import pytest
import tensorflow as tf

from configure.pretraining import PretrainingConfig
from electra_tf.plan import flops, parameters
from electra_tf.pretraining.model import PretrainingModel
from tests.conftest import marked_heavy

# A product looks up segments, and is not counted. No other size is 3, so the
# size identifies this product.
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
    "adversarial": {"training_schedule": "adversarial"},
    "more masked": {"mask_prob": 0.4, "max_seq_length": 24},
    "unigram": {"generator": "unigram"},
    "ELECTRA 15%": {"objective": "electra_15"},
    "Replace MLM": {"objective": "replace_mlm"},
    "All-Tokens MLM": {"objective": "all_tokens_mlm"},
    "corrected, mixed": {"correction_weight": 1.0, "unigram_steps": 5},
}
TWO_STAGE = {
    "training_schedule": "two_stage",
    "generator_hidden_size": 1.0,
    "embedding_size": 32,
    "model_hparam_overrides": OVERRIDES
    | {"num_attention_heads": 1, "intermediate_size": 128},
    "num_train_steps": 30,
    "two_stage_steps": 10,
}
SHARED = {"embedding_sharing": "token"}
ONE_NETWORK = {"objective": "all_tokens_mlm", "untied_generator": False}
OTHERS = {
    "two stages": TWO_STAGE,
    "Electric, untied": MODELS["Electric"] | MODELS["untied embeddings"],
    "tokens shared": SHARED,
    "tokens shared by towers": MODELS["two towers"] | SHARED,
    "disentangled": {"embedding_sharing": "gradient_disentangled"},
    "debug": {"debug": True},
    "All-Tokens MLM, one network": ONE_NETWORK,
    "Replace MLM, uniform": MODELS["Replace MLM"] | MODELS["uniform"],
}


@pytest.mark.parametrize("name", MODELS | OTHERS)
def test_counted_parameters_are_the_variables_numbers(tiny_config, name):
    config = tiny_config(**(MODELS | OTHERS)[name])
    model = PretrainingModel(config)
    counted = parameters.pretraining_parameters(config)
    sizes = {v.name: v.shape.num_elements() for v in model.trainable_variables}
    assert counted.total == sum(sizes.values())
    heads = ("discriminator_", "token_", "correction_")
    scopes = ("electra/", *(f"{head}predictions/" for head in heads))
    # A delta is added to a table of its size.
    alone = [n for n in sizes if n.startswith(scopes) and "_delta" not in n]
    count = sum(sizes[name] for name in alone) if config.has_two_networks else 0
    assert counted.discriminator_alone == count


def graph_products(graph):
    """Return the FLOPs of a graph's matrix products except lookups."""
    count = 0
    for op in graph.get_operations():
        shapes = [tensor.shape.as_list() for tensor in op.inputs]
        if op.type == "Einsum":  # FLOPs: product of all sizes
            terms = op.get_attr("equation").decode().split("->")[0].split(",")
            letters = zip("".join(terms), itertools.chain(*shapes), strict=True)
            dimensions = list(dict(letters).values())
        elif "MatMul" in op.type:
            flag = "transpose_a" if op.type == "MatMul" else "adj_x"
            inner = shapes[0][-2] if op.get_attr(flag) else shapes[0][-1]
            dimensions = [*op.outputs[0].shape.as_list(), inner]
        else:
            continue
        if SEGMENTS not in dimensions:
            count += 2 * math.prod(dimensions)
    return count


@pytest.fixture
def config(tiny_config):
    return functools.partial(tiny_config, model_hparam_overrides=OVERRIDES)


def pretraining_graph(config, stage=None):
    model = PretrainingModel(config)
    shape = [config.train_batch_size, config.max_seq_length]
    names = ("input_ids", "input_mask", "segment_ids")
    spec = dict.fromkeys(names, tf.TensorSpec(shape, tf.int32))

    @tf.function
    def step(features):
        with tf.GradientTape() as tape:
            outputs = model.compute(features, training=True, stage=stage)
            loss = outputs["total_loss"]
        return tape.gradient(loss, model.trainable_variables)

    return step.get_concrete_function(spec).graph


# One model of each kind of network; the others differ in sizes.
KINDS = ("small generator", "tied generator", "masked LM", "two towers")
KINDS += ("Electric", "adversarial", "All-Tokens MLM", "untied embeddings")
KINDS += ("corrected, mixed",)
SIZES = [name for name in MODELS if name not in KINDS]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*KINDS, *marked_heavy(*SIZES)])
def test_matrix_products_of_a_step_are_those_in_the_graph(config, name):
    settings = config(**MODELS[name])
    counted = flops.pretraining_step_flops(settings)
    assert counted.matmul == graph_products(pretraining_graph(settings))


@pytest.mark.slow
def test_two_stages_are_counted_as_their_graphs(config):
    settings = config(**TWO_STAGE)
    count = functools.partial(flops.pretraining_step_flops, settings, 1)
    stages = [count(stage=1), count(stage=2)]
    graphs = [pretraining_graph(settings, number) for number in (1, 2)]
    assert [s.matmul for s in stages] == [graph_products(g) for g in graphs]
    whole = 10 * stages[0].total + 20 * stages[1].total
    assert 30 * count().total == pytest.approx(whole, rel=1e-6)
    learns, frozen = (s.as_dict()["parts"]["generator"] for s in stages)
    assert learns["matmul"] == 3 * frozen["matmul"]


def test_the_optimizer_is_counted_separately(config):
    plain = flops.pretraining_step_flops(config())
    updated = flops.pretraining_step_flops(config(), parameters=1000)
    assert updated.matmul == plain.matmul
    assert updated.parts[-1].name == "optimizer"
    assert updated.total - plain.total == 17_000 and plain.tokens == 4 * 16
    assert plain.as_dict()["per_token"] == plain.total / 64


RECORDED_NAMES = {
    "BERT-Small (the paper's)": "bert_small",
    "ELECTRA-Large (1.75M)": "electra_1.75M",
}


@pytest.fixture
def recorded(golden_dir):
    """Return the FLOPs that the original's script printed, by name."""
    lines = (golden_dir / "flops.txt").read_text().splitlines()
    return {name: float(count) for name, count in map(str.split, lines)}


def test_published_counts_equal_those_the_original_prints(recorded):
    actual = {
        RECORDED_NAMES.get(name, name.lower().replace("-", "_")): count
        for name, count in flops.PUBLISHED_FLOPS.items()
    }
    assert actual == pytest.approx(recorded, rel=5e-4)


# A backward pass of twice the forward pass makes 1.5 of the paper's count.
# Table lookups, not counted here, leave 0.6 of it for the small model.
@pytest.mark.parametrize(
    ("preset", "key", "ratio"),
    [
        ("small", "electra_small", 0.90),
        ("base", "electra_base", 1.05),
        ("large", "electra_400k", 1.27),
    ],
)
def test_the_computed_flops_are_a_fixed_share_of_the_paper_s(
    recorded, preset, key, ratio
):
    config = PretrainingConfig.create("model", "data", preset=preset)
    paper = flops.paper_train_flops(config)
    assert paper == pytest.approx(recorded[key], rel=0.01)
    step = flops.pretraining_step_flops(config).total
    computed = step * config.num_train_steps
    assert computed / paper == pytest.approx(ratio, abs=0.01)
