# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures for comparing the model with recorded numbers."""

import numpy as np
import pytest
import tensorflow as tf

from configure.pretraining import PretrainingConfig
from electra_tf.pretraining.build import build_optimizer, build_train_loop
from electra_tf.pretraining.model import build_model
from tests.conftest import TINY, read_json

SIZES = TINY["model_hparam_overrides"]
# Two stages want networks of one size.
EQUAL = {"num_hidden_layers": 1, "num_attention_heads": 1}
TWO_STAGE = {
    "training_schedule": "two_stage",
    "generator_hidden_size": 1.0,
    "embedding_size": 16,
    "model_hparam_overrides": SIZES | EQUAL | {"intermediate_size": 64},
}
INPUTS = ("input_ids", "input_mask", "segment_ids")
# Recorded forward passes of every kind of model.
FORWARD_PASSES = """
tiny_ckpt v200_disallow_correct v200_electra v200_electric
v200_electric_untied_embeddings v200_gen_layers_half_weights v200_mlm
v200_mlm_disallow v200_relu_head3 v200_temperature_half v200_tied_generator
v200_two_tower_electra v200_uniform_generator v200_untied_generator_embeddings
""".split()
MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


def features_of(ids):
    """Return features of rows [B, L] of one segment, without padding."""
    ids = tf.constant(ids, tf.int32)
    return {
        "input_ids": ids,
        "input_mask": tf.ones_like(ids),
        "segment_ids": tf.zeros_like(ids),
    }


def masked_at(ids, positions, mask_id=103):
    """Return the inputs of rows [B, L] that are masked at positions [B, K]."""
    ids, positions = np.array(ids), np.int32(positions)
    true_ids = np.take_along_axis(ids, positions, 1)
    np.put_along_axis(ids, positions, mask_id, 1)
    return {
        "input_ids": ids,
        "masked_lm_positions": positions,
        "masked_lm_ids": true_ids,
        "masked_lm_weights": np.ones(positions.shape, np.float32),
    }


def batches(count, size=4, shortest=3):
    """Yield batches of length 16 whose rows have different token counts."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        ids = rng.integers(104, 200, [size, 16])
        mask = np.arange(16) < rng.integers(shortest, 17, [size, 1])
        yield {
            "input_ids": tf.constant(ids * mask, tf.int32),
            "input_mask": tf.constant(mask, tf.int32),
            "segment_ids": tf.zeros([size, 16], tf.int32),
        }


def make_loop(config, steps, data=None, strategy=None, **settings):
    """Return a model, its optimizer, and its training loop on `batches`."""
    model = build_model(config)
    optimizer = build_optimizer(config, model)
    loop = build_train_loop(
        config,
        model,
        optimizer,
        data or batches(steps, config.train_batch_size),
        tf.Variable(0, dtype=tf.int64),
        strategy or tf.distribute.OneDeviceStrategy("/cpu:0"),
        **settings,
    )
    return model, optimizer, loop


@pytest.fixture
def recorded_config(tmp_path, tiny_vocab):
    """Return a function from recorded hparams to a configuration."""

    def make(hparams, golden_dir=None, **changes):
        vocab = tiny_vocab
        if hparams.get("vocab_file") != "vocab_200.txt":
            vocab = str(golden_dir / "vocab.txt")
        hparams = {**hparams, **changes, "vocab_file": vocab}
        return PretrainingConfig.create("recorded", str(tmp_path), **hparams)

    return make


class Recording:
    """One recorded forward pass."""

    def __init__(self, directory, name):
        self.info = read_json(directory / f"{name}.json")
        self.arrays = dict(np.load(directory / f"{name}.npz"))
        self.checkpoint = str(directory / self.info["ckpt"])

    def compute_arguments(self):
        """Return the batch and the injected draws."""
        arrays = self.arrays
        return {
            "features": {name: arrays[name] for name in INPUTS},
            "masked_inputs": {
                "input_ids": arrays["masked_input_ids"],
                **{name: arrays[name] for name in MASKED},
            },
            "sampled_token_ids": arrays["sampled_tokids"],
        }
