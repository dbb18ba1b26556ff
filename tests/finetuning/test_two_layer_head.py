# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sentence heads of two layers, and fine-tuning with other optimizers."""

import types

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import erf

from configure.errors import UserError
from electra_tf.finetuning import model as heads
from electra_tf.finetuning.model import ClassificationHead
from electra_tf.modeling.layers import SeedStream
from electra_tf.prediction.loading import load_finetuned

MODEL = "models/tiny/finetuning_models/sst_model"
HIDDEN = "task_specific/sst/hidden/kernel"


@pytest.fixture
def head():
    """A head with weights drawn, and vectors to read."""
    made = ClassificationHead("sst", 8, 3, seed=1, layers=2)
    random = np.random.default_rng(0)
    for variable in made.variables:
        variable.assign(random.normal(size=variable.shape))
    vectors = random.normal(size=[5, 8]).astype(np.float32)
    encoded = types.SimpleNamespace(pooled_output=tf.constant(vectors))
    return made, encoded


def test_two_layers_are_dense_gelu_dense(head):
    """As transformers' ElectraClassificationHead, in float64."""
    made, encoded = head
    names = [variable.name.split(":")[0] for variable in made.variables]
    assert sorted(names) == [
        f"task_specific/sst/{layer}/{part}"
        for layer in ("dense", "hidden")
        for part in ("bias", "kernel")
    ]
    kernels, biases = (
        [
            getattr(layer, n).numpy().astype(float)
            for layer in (made.hidden, made.dense)
        ]
        for n in ("kernel", "bias")
    )
    inner = encoded.pooled_output.numpy().astype(float) @ kernels[0] + biases[0]
    inner *= 0.5 * (1 + erf(inner / np.sqrt(2)))
    expected = inner @ kernels[1] + biases[1]
    found = made.logits(encoded, {})["logits"]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_each_layer_s_input_is_dropped_out_apart(head, monkeypatch):
    made, encoded = head
    seeds = []

    def dropout(vectors, rate, seed):
        seeds.append((vectors.shape[-1], rate, tuple(seed.numpy())))
        return vectors

    monkeypatch.setattr(heads, "dropout", dropout)
    stream = SeedStream(tf.constant([1, 2]))
    made.logits(encoded, {}, stream)
    assert [seed[:2] for seed in seeds] == [(8, 0.1)] * 2
    assert seeds[0] != seeds[1]
    made.logits(encoded, {})
    assert len(seeds) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["adamw", pytest.param("lamb", marks=pytest.mark.heavy)]
)
def test_a_run_trains_them(config_of, run, weights_of, tmp_path, kind):
    """With rates layer by layer, which are the default."""
    hparams = {
        "optimizer": kind,
        "classification_head_layers": 2,
        "init_checkpoint": None,
    }
    result, _ = run(config_of(**hparams))
    expected = weights_of(tmp_path / f"{MODEL}_1")
    assert expected[HIDDEN].any()
    loaded = load_finetuned(str(tmp_path / f"{MODEL}_1"))
    assert loaded.model.heads[0].hidden is not None

    # Evaluated again: the same; with another head: refused.
    again = {**hparams, "do_train": False}
    found, _ = run(config_of(**again))
    assert found["trials"][0]["results"] == result["trials"][0]["results"]
    with pytest.raises(UserError, match="classification_head_layers to 2"):
        given = {"init_checkpoint": str(tmp_path / f"{MODEL}_1")}
        run(config_of(do_train=False, **given))
    with pytest.raises(UserError, match=f"optimizer: '{kind}' -> 'original'"):
        run(config_of(**{**hparams, "optimizer": "original"}))
