# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Estimates of memory are near recorded peaks; control groups limit memory."""

import os
import sys

import pytest

from configure.pretraining import PretrainingConfig
from electra_tf.plan import machine
from electra_tf.plan.memory import checkpoint_bytes, pretraining_memory
from electra_tf.plan.parameters import pretraining_parameters

BASE = {"preset": "base", "max_seq_length": 128}
LONG = {"train_batch_size": 8, "max_seq_length": 512}
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux's /proc")


def estimated(**hparams):
    return pretraining_memory(PretrainingConfig.create("m", "data", **hparams))


@pytest.fixture
def config(tmp_path):
    return PretrainingConfig.create("model", str(tmp_path))


def test_weights_slots_and_gradients_are_multiples_of_the_parameters(config):
    actual = pretraining_memory(config)
    numbers = pretraining_parameters(config).total
    assert actual.weights == actual.gradients == 4 * numbers
    assert actual.slots == 8 * numbers
    size = checkpoint_bytes(
        numbers, config.max_seq_length, config.shuffle_buffer_size
    )
    assert 12 * numbers < size < 12.1 * numbers


def test_activations_are_those_of_a_micro_batch():
    batch = {"train_batch_size": 64}
    whole, half = estimated(**batch), estimated(train_batch_size=32)
    micro_batches = estimated(**batch, gradient_accumulation_steps=2)
    assert whole.activations == 2 * half.activations
    assert micro_batches.activations == half.activations
    assert micro_batches.gradients == 2 * whole.gradients


def test_checkpointing_and_half_precision_shrink_activations():
    whole = estimated(max_seq_length=512)
    again = estimated(max_seq_length=512, recompute_grad=True)
    half = estimated(max_seq_length=512, mixed_precision="bf16")
    assert again.activations < whole.activations / 2
    assert whole.activations / 2 <= half.activations < whole.activations


# Peaks in MiB of benchmarks/pretraining_step.py at 4a16307, 21 November 2026,
# with 2 cores, TensorFlow 2.20 and batches of full rows.
@pytest.mark.parametrize(
    ("settings", "peak"),
    [
        ({"train_batch_size": 16}, 1997),
        ({"train_batch_size": 32}, 2634),
        ({"train_batch_size": 128}, 6368),
        (LONG, 3367),
        ({**LONG, "recompute_grad": True}, 1925),
        ({**BASE, "train_batch_size": 16, "generator_hidden_size": 0.25}, 4920),
    ],
    ids=str,
)
def test_recorded_peaks_are_within_a_tenth(settings, peak):
    assert 0.9 < peak / (estimated(**settings).total / 2**20) < 1.1


WHOLE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@linux
@pytest.mark.parametrize(
    ("cgroups", "path", "limit", "expected"),
    [
        ("", "none", 1, WHOLE),
        ("0::/\n", "memory.max", "max", WHOLE),
        ("0::/user/job\n", "user/job/memory.max", 1234, 1234),
        ("0::/user/job\n", "user/memory.max", 1234, 1234),
        ("5:memory:/c\n", "memory/c/memory.limit_in_bytes", 1234, 1234),
    ],
)
def test_limits_of_control_groups_bound_the_memory(
    monkeypatch, tmp_path, cgroups, path, limit, expected
):
    others = {"user/other/memory.max": 1, "memory/d/memory.limit_in_bytes": 1}
    for name, value in {**others, path: limit}.items():
        file = tmp_path / "tree" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    (tmp_path / "own").write_text(cgroups)
    monkeypatch.setattr(machine, "_CGROUPS", str(tmp_path / "tree"))
    monkeypatch.setattr(machine, "_OWN_CGROUPS", str(tmp_path / "own"))
    assert machine.machine_memory() == expected
