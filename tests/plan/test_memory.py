# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Estimated memory against what processes were seen to hold."""

import json
import subprocess
import sys

import pytest

from configure.pretraining import PretrainingConfig
from electra_tf.plan.memory import checkpoint_bytes, pretraining_memory
from electra_tf.plan.parameters import pretraining_parameters

FACTOR = 1.5  # What the estimate promises.

MEASURE = """
import json, sys
from configure.pretraining import PretrainingConfig
from electra_tf.commands.plan import measure_steps
hparams = json.loads(sys.argv[1])
config = PretrainingConfig.create("model", sys.argv[2], **hparams)
found = measure_steps(config, config.train_batch_size, 1, False)
print(found["peak_memory_bytes"])
"""


def measured_peak(directory, **hparams):
    command = [sys.executable, "-c", MEASURE, json.dumps(hparams), directory]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])


def estimated(directory, **hparams):
    config = PretrainingConfig.create("model", directory, **hparams)
    return pretraining_memory(config)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_tiny_models_peak_is_the_programs(tmp_path):
    settings = {"debug": True, "vocab_size": 500}
    peak = measured_peak(str(tmp_path), **settings)
    ratio = peak / estimated(str(tmp_path), **settings).total
    assert 1 / FACTOR < ratio < FACTOR


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize(
    "settings",
    [
        {"train_batch_size": 16},
        {"train_batch_size": 4, "max_seq_length": 512},
        {"preset": "base", "train_batch_size": 4, "max_seq_length": 128},
        {"preset": "base", "train_batch_size": 16, "max_seq_length": 128},
    ],
    ids=str,
)
def test_peaks_of_real_sizes_are_within_the_factor(tmp_path, settings):
    peak = measured_peak(str(tmp_path), **settings)
    ratio = peak / estimated(str(tmp_path), **settings).total
    assert 1 / FACTOR < ratio < FACTOR


def test_weights_slots_and_gradients_are_what_the_parameters_take(tmp_path):
    config = PretrainingConfig.create("model", str(tmp_path))
    memory = pretraining_memory(config)
    numbers = pretraining_parameters(config).total
    assert memory.weights == memory.gradients == 4 * numbers
    assert memory.slots == 8 * numbers
    assert 12 * numbers < checkpoint_bytes(config) < 12.1 * numbers


def test_activations_grow_with_the_batch_and_shrink_with_its_parts():
    whole = estimated("data", train_batch_size=64)
    half = estimated("data", train_batch_size=32)
    parts = estimated(
        "data", train_batch_size=64, gradient_accumulation_steps=2
    )
    assert whole.activations == 2 * half.activations
    assert parts.activations == half.activations
    assert parts.gradients == 2 * whole.gradients


def test_recomputed_blocks_and_half_precision_keep_less():
    whole = estimated("data", max_seq_length=512)
    again = estimated("data", max_seq_length=512, recompute_grad=True)
    half = estimated("data", max_seq_length=512, mixed_precision="bf16")
    assert again.activations < whole.activations / 2
    assert whole.activations / 2 < half.activations < whole.activations


# Peaks of 21 November 2026, MiB: 2 cores, TensorFlow 2.20, a batch of full rows
# (benchmarks/pretraining_step.py).
@pytest.mark.parametrize(
    ("settings", "peak"),
    [
        ({"train_batch_size": 16}, 1997),
        ({"train_batch_size": 32}, 2634),
        ({"train_batch_size": 128}, 6368),
        ({"train_batch_size": 8, "max_seq_length": 512}, 3367),
        (
            {
                "train_batch_size": 8,
                "max_seq_length": 512,
                "recompute_grad": True,
            },
            1925,
        ),
        ({"preset": "base", "train_batch_size": 16}, 4920),
    ],
    ids=str,
)
def test_recorded_peaks_are_within_a_tenth(settings, peak):
    if settings.get("preset"):
        settings = {**settings, "max_seq_length": 128}
        settings["generator_hidden_size"] = 0.25
    ratio = peak / (estimated("data", **settings).total / 2**20)
    assert 0.9 < ratio < 1.1
