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
    embeddings = {"word": 200, "token_type": 2, "position": 32}
    shapes = {
        f"bert/embeddings/{name}_embeddings": [rows, H]
        for name, rows in embeddings.items()
    }
    shapes |= {
        "cls/predictions/output_bias": [200],
        "cls/seq_relationship/output_weights": [2, H],
        "cls/seq_relationship/output_bias": [2],
    }
    dense = {"bert/pooler": (H, H), "cls/predictions/transform": (H, H)}
    norms = ["bert/embeddings", "cls/predictions/transform"]
    for layer in range(2):
        block = f"bert/encoder/layer_{layer}"
        norms += [f"{block}/attention/output", f"{block}/output"]
        for name in ("query", "key", "value"):
            shapes[f"{block}/attention/self/{name}/kernel"] = [H, H]
            shapes[f"{block}/attention/self/{name}/bias"] = [H]
        dense[f"{block}/attention/output"] = (H, H)
        dense[f"{block}/intermediate"] = (H, 4 * H)
        dense[f"{block}/output"] = (4 * H, H)
    for scope, (rows, columns) in dense.items():
        shapes[f"{scope}/dense/kernel"] = [rows, columns]
        shapes[f"{scope}/dense/bias"] = [columns]
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


def test_values_slots_and_step_come_along_and_the_rest_is_told(
    tmp_path, random_weights
):
    path, shapes = str(tmp_path / "other.ckpt"), bert_shapes()
    source = random_weights({**shapes, "loss_scale": []})
    tf1.write_tf1(source, path)
    weights = tf1.open_tf1(path)
    query = "encoder/layer_1/attention/self/query/kernel"
    for new, old in {
        f"electra/{query}": f"bert/{query}",
        "generator_predictions/dense/kernel/adam_m": (
            "cls/predictions/transform/dense/kernel/adam_m"
        ),
        "generator_predictions/LayerNorm/gamma": (
            "cls/predictions/transform/LayerNorm/gamma"
        ),
        "generator_predictions/output_bias": "cls/predictions/output_bias",
        "loss_scale": "loss_scale",
    }.items():
        np.testing.assert_array_equal(weights.read(new), source.read(old))
    assert weights.global_step == 1234
    assert len(weights.slots) == 2 * len(weights.shapes)
    assert len(weights.shapes) == len(shapes) + 1 - 4
    assert len(weights.dropped) == 3 * 4
    assert "pooler" in weights.dropped["bert/pooler/dense/kernel"]
    told = weights.dropped["cls/seq_relationship/output_bias"]
    assert "next-sentence" in told


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
