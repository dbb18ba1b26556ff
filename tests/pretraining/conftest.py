# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures for comparing the model with recorded numbers."""

import json
import pathlib

import numpy as np
import pytest

from configure.pretraining import PretrainingConfig
from electra_tf.pretraining.model import PretrainingModel

INPUTS = ("input_ids", "input_mask", "segment_ids")
MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


@pytest.fixture
def recorded_config(tmp_path, tiny_vocab):
    """A factory: recorded hparams to a configuration."""

    def make(hparams, golden_dir=None, **changes):
        vocab = tiny_vocab
        if hparams.get("vocab_file") != "vocab_200.txt":
            vocab = str(golden_dir / "vocab.txt")
        hparams = {**hparams, **changes, "vocab_file": vocab}
        return PretrainingConfig.create("recorded", str(tmp_path), **hparams)

    return make


@pytest.fixture
def recorded_model(recorded_config):
    """A factory: recorded hparams to a model."""

    def make(hparams, golden_dir=None):
        return PretrainingModel(recorded_config(hparams, golden_dir))

    return make


class Recording:
    """One recorded forward pass."""

    def __init__(self, directory: pathlib.Path, name: str) -> None:
        self.directory = directory
        self.info = json.loads((directory / f"{name}.json").read_text())
        self.arrays = dict(np.load(directory / f"{name}.npz"))
        self.checkpoint = str(directory / self.info["ckpt"])

    def compute_arguments(self):
        """The batch and the injected draws."""
        arrays = self.arrays
        return {
            "features": {name: arrays[name] for name in INPUTS},
            "masked_inputs": {
                "input_ids": arrays["masked_input_ids"],
                **{name: arrays[name] for name in MASKED},
            },
            "sampled_token_ids": arrays["sampled_tokids"],
        }


@pytest.fixture
def recording():
    """A factory of recordings by directory and name."""
    return Recording
