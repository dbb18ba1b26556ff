# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tiny pre-trained models of every kind, as their runs leave them."""

import os

import pytest

from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.formats import write_electra_config
from electra_tf.checkpoints.tf2 import variables_by_name, write_native
from electra_tf.checkpoints.weights import ModelWeights
from electra_tf.pretraining.loading import load_pretrained
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.pretraining.runner import export_parts
from electra_tf.training.checkpointing import write_config

# Rows of the position table of the models here: 30 tokens fit.
POSITIONS = 32
KINDS = {
    "electra": {},
    "electric": {"electric_objective": True, "electra_objective": False},
    "two_tower": {"two_tower_generator": True},
    "mlm": {"electra_objective": False},
    "uniform": {"uniform_generator": True},
    "tied": {"untied_generator": False},
}
SENTENCE = "the cat is on the mat, and that was it."


def make_folder(folder, vocab, **hparams):
    """Leaves what a run leaves, with weights large enough to matter."""
    config = PretrainingConfig.create(
        "tiny",
        folder,
        vocab_file=vocab,
        vocab_size=200,
        embedding_size=8,
        max_seq_length=16,
        generator_hidden_size=0.5,
        seed=5,
        model_hparam_overrides={
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "max_position_embeddings": POSITIONS,
            "initializer_range": 0.5,
        },
        **hparams,
    )
    model = PretrainingModel(config)
    weights = ModelWeights(variables_by_name(model.variables), 7, folder)
    write_native(weights, os.path.join(folder, "model.ckpt-7"))
    write_config(folder, config.to_json())
    write_electra_config(folder, config.as_dict())
    export_parts(config, model, 7, folder)
    return folder


@pytest.fixture(scope="session")
def folders(tmp_path_factory, tiny_vocab):
    """A factory: the folder of a kind of model."""
    made = {}

    def make(kind):
        if kind not in made:
            folder = str(tmp_path_factory.mktemp(kind))
            made[kind] = make_folder(folder, tiny_vocab, **KINDS[kind])
        return made[kind]

    return make


@pytest.fixture(scope="session")
def pretrained(folders):
    """A factory: the model of a kind, or a part: "electra/generator"."""
    loaded = {}

    def load(name):
        if name not in loaded:
            kind, _, part = name.partition("/")
            folder = folders(kind)
            if part:
                folder = os.path.join(folder, "export", part)
            loaded[name] = load_pretrained(folder)
        return loaded[name]

    return load


@pytest.fixture(scope="session")
def golden_electric(golden_dir):
    """The original's Electric model."""
    import json

    hparams = json.loads(
        (golden_dir / "forward_v200_electric.json").read_text()
    )["hparams"]
    kept = ("mask_prob", "model_hparam_overrides", "generator_hidden_size")
    return load_pretrained(
        str(golden_dir / "ckpt_v200_electric" / "model.ckpt"),
        str(golden_dir / "vocab_200.txt"),
        {name: hparams[name] for name in kept},
    )
