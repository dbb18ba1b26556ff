# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Estimated memory against what processes held, and the machine's."""

import os
import sys

import pytest

from configure.pretraining import PretrainingConfig
from electra_tf.plan import memory
from electra_tf.plan.counts import pretraining_parameters
from electra_tf.plan.memory import checkpoint_bytes, pretraining_memory
from electra_tf.plan.memory_curve import measured_peak

FACTOR = 1.5  # What the estimate promises.
DEBUG = {"debug": True, "vocab_size": 500}
BASE = {"preset": "base", "max_seq_length": 128}
LONG = {"train_batch_size": 8, "max_seq_length": 512}
linux = pytest.mark.skipif(
    sys.platform != "linux", reason="/proc and cgroups are Linux's"
)


def estimated(directory, **hparams):
    config = PretrainingConfig.create("model", directory, **hparams)
    return pretraining_memory(config)


@linux
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(DEBUG, marks=pytest.mark.slow),
        *(
            pytest.param(settings, marks=pytest.mark.heavy)
            for settings in (
                {"train_batch_size": 16},
                {"train_batch_size": 4, "max_seq_length": 512},
                {**BASE, "train_batch_size": 4},
                {**BASE, "train_batch_size": 16},
            )
        ),
    ],
    ids=str,
)
def test_peaks_are_within_the_factor(tmp_path, settings):
    config = PretrainingConfig.create("model", str(tmp_path), **settings)
    ratio = measured_peak(config) / pretraining_memory(config).total
    assert 1 / FACTOR < ratio < FACTOR


def test_weights_slots_and_gradients_are_what_the_parameters_take(tmp_path):
    config = PretrainingConfig.create("model", str(tmp_path))
    found = pretraining_memory(config)
    numbers = pretraining_parameters(config).total
    assert found.weights == found.gradients == 4 * numbers
    assert found.slots == 8 * numbers
    assert 12 * numbers < checkpoint_bytes(config) < 12.1 * numbers


def test_activations_grow_with_the_batch_and_shrink_with_what_saves_memory():
    whole = estimated("data", train_batch_size=64)
    half = estimated("data", train_batch_size=32)
    parts = estimated(
        "data", train_batch_size=64, gradient_accumulation_steps=2
    )
    assert whole.activations == 2 * half.activations
    assert parts.activations == half.activations
    assert parts.gradients == 2 * whole.gradients
    whole = estimated("data", max_seq_length=512)
    again = estimated("data", max_seq_length=512, recompute_grad=True)
    half = estimated("data", max_seq_length=512, mixed_precision="bf16")
    assert again.activations < whole.activations / 2
    assert whole.activations / 2 <= half.activations < whole.activations


# Peaks of 21 November 2026, MiB: 2 cores, TensorFlow 2.20, a batch of full rows
# (benchmarks/pretraining_step.py).
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
    ratio = peak / (estimated("data", **settings).total / 2**20)
    assert 0.9 < ratio < 1.1


@pytest.fixture
def cgroups(monkeypatch, tmp_path):
    """Makes up the system's tree of groups and where the process is in it."""

    def write(own, **limits):
        (tmp_path / "own").write_text(own)
        for path, limit in limits.items():
            file = tmp_path / "tree" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{limit}\n")
        monkeypatch.setattr(memory, "_CGROUPS", str(tmp_path / "tree"))
        monkeypatch.setattr(memory, "_OWN_CGROUPS", str(tmp_path / "own"))

    return write


@linux
def test_without_a_limit_it_is_the_whole_machine(cgroups):
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for own, limits in (
        ("", {}),
        ("0::/\n", {"memory.max": "max"}),
        ("0::/job\n", {"job/memory.max": 1 << 62}),
    ):
        cgroups(own, **limits)
        assert memory.machine_memory() == whole


@linux
@pytest.mark.parametrize(
    ("own", "path"),
    [
        ("0::/\n", "memory.max"),
        ("0::/user/job\n", "user/job/memory.max"),
        ("0::/user/job\n", "user/memory.max"),
        ("4:cpu:/\n5:memory:/c\n", "memory/c/memory.limit_in_bytes"),
        ("4:cpu:/\n5:memory:/c\n", "memory/memory.limit_in_bytes"),
    ],
)
def test_a_limit_of_a_group_or_one_above_counts(cgroups, own, path):
    others = {"user/other/memory.max": 1, "memory/d/memory.limit_in_bytes": 1}
    cgroups(own, **others, **{path: 12345678})
    assert memory.machine_memory() == 12345678
