# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""BERT's checkpoints under ELECTRA's names."""

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.checkpoints import tf1
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.weights import select_part

H = 64


def bert_shapes():
    """Names of google-research/bert, a tiny model."""
    shapes = {
        "bert/embeddings/word_embeddings": [200, H],
        "bert/embeddings/token_type_embeddings": [2, H],
        "bert/embeddings/position_embeddings": [32, H],
        "bert/pooler/dense/kernel": [H, H],
        "bert/pooler/dense/bias": [H],
        "cls/predictions/transform/dense/kernel": [H, H],
        "cls/predictions/transform/dense/bias": [H],
        "cls/predictions/output_bias": [200],
        "cls/seq_relationship/output_weights": [2, H],
        "cls/seq_relationship/output_bias": [2],
    }
    norms = ["bert/embeddings", "cls/predictions/transform"]
    for layer in range(2):
        block = f"bert/encoder/layer_{layer}"
        norms += [f"{block}/attention/output", f"{block}/output"]
        dense = {
            **{
                f"attention/self/{n}": (H, H) for n in ("query", "key", "value")
            },
            "attention/output/dense": (H, H),
            "intermediate/dense": (H, 4 * H),
            "output/dense": (4 * H, H),
        }
        for name, (rows, columns) in dense.items():
            shapes[f"{block}/{name}/kernel"] = [rows, columns]
            shapes[f"{block}/{name}/bias"] = [columns]
    for scope in norms:
        shapes |= {f"{scope}/LayerNorm/{n}": [H] for n in ("beta", "gamma")}
    return shapes


@pytest.fixture
def prefix(tmp_path, random_weights):
    path = str(tmp_path / "bert_model.ckpt")
    tf1.write_tf1(random_weights(bert_shapes()), path)
    return path


def test_it_is_recognized_and_makes_a_masked_lm(prefix, tiny_config):
    from electra_tf.pretraining.model import PretrainingModel

    weights = open_weights(prefix)
    assert weights.kind == "bert"
    hparams = weights.contents.hparams()
    assert hparams["electra_objective"] is False
    hparams.setdefault("max_seq_length", 16)
    model = PretrainingModel(tiny_config(**hparams))
    built = {v.name.split(":")[0]: tuple(v.shape) for v in model.variables}
    assert weights.shapes == built


def test_values_slots_and_step_come_along(prefix, random_weights):
    source, weights = random_weights(bert_shapes()), tf1.open_bert(prefix)
    for new, old in (
        (
            "electra/encoder/layer_1/attention/self/query/kernel",
            "bert/encoder/layer_1/attention/self/query/kernel",
        ),
        (
            "generator_predictions/dense/kernel/adam_m",
            "cls/predictions/transform/dense/kernel/adam_m",
        ),
        (
            "generator_predictions/LayerNorm/gamma",
            "cls/predictions/transform/LayerNorm/gamma",
        ),
        ("generator_predictions/output_bias", "cls/predictions/output_bias"),
    ):
        np.testing.assert_array_equal(weights.read(new), source.read(old))
    assert weights.global_step == 1234
    assert len(weights.slots) == 2 * len(weights.shapes)


def test_pooler_and_next_sentence_head_are_reported(prefix):
    dropped = tf1.open_bert(prefix).dropped
    assert len(dropped) == 3 * 4
    assert "pooler" in dropped["bert/pooler/dense/kernel"]
    assert "next-sentence" in dropped["cls/seq_relationship/output_bias"]


def test_names_are_one_to_one_and_unknown_ones_stay(tmp_path, random_weights):
    path = str(tmp_path / "other.ckpt")
    shapes = {**bert_shapes(), "loss_scale": []}
    tf1.write_tf1(random_weights(shapes), path)
    names = tf1.open_bert(path).shapes
    assert len(names) == len(shapes) - 4
    assert "loss_scale" in names


def test_sizes_are_read_from_bert_config_json(prefix, tmp_path):
    (tmp_path / "bert_config.json").write_text(
        '{"hidden_size": 64, "num_attention_heads": 8, "vocab_size": 200}'
    )
    hparams = open_weights(prefix).hparams
    assert hparams["embedding_size"] == 64
    assert hparams["model_hparam_overrides"]["num_attention_heads"] == 8


def test_its_encoder_can_start_a_discriminator(prefix):
    weights = open_weights(prefix)
    with pytest.raises(UserError, match="masked LM.*--part=encoder"):
        select_part(weights, "discriminator")
    part = select_part(weights, "encoder")
    assert all(name.startswith("electra/") for name in part.shapes)


def test_electra_is_not_bert(tmp_path, random_weights):
    path = str(tmp_path / "x")
    tf1.write_tf1(random_weights({"electra/embeddings/x": [1]}), path)
    with pytest.raises(UserError, match="not a BERT checkpoint"):
        tf1.open_bert(path)
