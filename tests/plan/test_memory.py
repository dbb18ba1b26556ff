# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Estimated memory against what processes held; `plan --memory_curve`."""

import itertools
import os
import sys

import pytest

from configure.pretraining import PretrainingConfig
from electra_tf.extras import memory_curve
from electra_tf.plan import machine
from electra_tf.plan.memory import checkpoint_bytes, pretraining_memory
from electra_tf.plan.parameters import pretraining_parameters
from tests.conftest import marked_heavy, read_json, refused

FACTOR = 1.5  # What the estimate promises.
DEBUG = {"debug": True, "vocab_size": 500}
BASE = {"preset": "base", "max_seq_length": 128}
LONG = {"train_batch_size": 8, "max_seq_length": 512}
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux's /proc")


def estimated(**hparams):
    return pretraining_memory(PretrainingConfig.create("m", "data", **hparams))


@pytest.fixture
def config(tmp_path):
    return PretrainingConfig.create("model", str(tmp_path))


@linux
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(DEBUG, marks=pytest.mark.slow),
        *marked_heavy(
            {"train_batch_size": 16},
            {"train_batch_size": 4, "max_seq_length": 512},
            {**BASE, "train_batch_size": 16},
        ),
    ],
    ids=str,
)
def test_peaks_are_within_the_factor(tmp_path, settings):
    config = PretrainingConfig.create("model", str(tmp_path), **settings)
    peak = memory_curve.measured_peak(config)
    assert 1 / FACTOR < peak / pretraining_memory(config).total < FACTOR


def test_weights_slots_and_gradients_are_what_the_parameters_take(config):
    found = pretraining_memory(config)
    numbers = pretraining_parameters(config).total
    assert found.weights == found.gradients == 4 * numbers
    assert found.slots == 8 * numbers
    assert 12 * numbers < checkpoint_bytes(config) < 12.1 * numbers


def test_activations_grow_with_the_batch_and_shrink_with_what_saves_memory():
    batch = {"train_batch_size": 64}
    whole, half = estimated(**batch), estimated(train_batch_size=32)
    parts = estimated(**batch, gradient_accumulation_steps=2)
    assert whole.activations == 2 * half.activations
    assert parts.activations == half.activations
    assert parts.gradients == 2 * whole.gradients
    whole = estimated(max_seq_length=512)
    again = estimated(max_seq_length=512, recompute_grad=True)
    half = estimated(max_seq_length=512, mixed_precision="bf16")
    assert again.activations < whole.activations / 2
    assert whole.activations / 2 <= half.activations < whole.activations


# Peaks of 21 November 2026, MiB: 2 cores, TensorFlow 2.20, a batch of full rows
# (benchmarks/pretraining_step.py of 4a16307).
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
    ("own", "path", "limit", "found"),
    [
        ("", "none", 1, WHOLE),
        ("0::/\n", "memory.max", "max", WHOLE),
        ("0::/user/job\n", "user/job/memory.max", 1234, 1234),
        ("0::/user/job\n", "user/memory.max", 1234, 1234),
        ("5:memory:/c\n", "memory/c/memory.limit_in_bytes", 1234, 1234),
    ],
)
def test_limits_of_groups_count(monkeypatch, tmp_path, own, path, limit, found):
    others = {"user/other/memory.max": 1, "memory/d/memory.limit_in_bytes": 1}
    for name, value in {**others, path: limit}.items():
        file = tmp_path / "tree" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    (tmp_path / "own").write_text(own)
    monkeypatch.setattr(machine, "_CGROUPS", str(tmp_path / "tree"))
    monkeypatch.setattr(machine, "_OWN_CGROUPS", str(tmp_path / "own"))
    assert machine.machine_memory() == found


GIB = 1 << 30


@pytest.fixture
def processes(monkeypatch):
    """Stands in for the processes: each holds a little more than predicted."""
    started = []

    def peak(config):
        started.append(config)
        return round(1.05 * pretraining_memory(config).total)

    monkeypatch.setattr(memory_curve, "measured_peak", peak)
    return started


def test_three_kinds_a_third_of_the_grid_nothing_beyond_the_limit(config):
    found = list(memory_curve.points(config, 1 << 50))
    lengths = [point for point in found if point.part == "lengths"]
    names = ("ELECTRA", "masked LM", "BERT's shape")
    wanted = set(itertools.product(memory_curve.LENGTHS, names))
    assert {(p.config.max_seq_length, p.kind) for p in lengths} == wanted
    for point in lengths:
        objective = "electra" if point.kind == "ELECTRA" else "mlm"
        assert point.config.objective == objective
        wide = point.kind == "BERT's shape"
        assert point.config.embedding_size == (256 if wide else 128)
        rows = point.config.model_hparam_overrides["max_position_embeddings"]
        assert rows == max(512, point.config.max_seq_length)
    grid = [point for point in found if point.part == "grid"]
    assert len(grid) == 2 * 27
    chosen = [
        tuple(p.row()[name] for name in memory_curve.GRID)
        for p in grid
        if p.kind == "ELECTRA" and p.is_measured
    ]
    assert len(chosen) == 9
    for two in itertools.combinations(range(3), 2):
        assert len({tuple(c[i] for i in two) for c in chosen}) == 9
    for point in memory_curve.points(config, 2 * GIB):
        if point.is_measured:
            assert point.row()["predicted"] <= 2 * GIB


def test_largest_is_the_last_that_fits(config):
    for found in memory_curve.largest(config, 2**20).values():
        assert not found["length"] and not any(found["batches"].values())
    found = memory_curve.largest(config, 4 * GIB)
    for kind, own in memory_curve.kinds(config).items():

        def total(batch, length, own=own):
            made = memory_curve.resized(own, batch, length)
            return pretraining_memory(made).total

        longest = found[kind]["length"]
        assert total(8, longest) <= 4 * GIB < total(8, longest + 1)
        for length, batch in found[kind]["batches"].items():
            assert total(batch, length) <= 4 * GIB < total(batch + 1, length)
    assert found["ELECTRA"]["length"] < found["masked LM"]["length"]


def test_what_was_measured_is_not_measured_again(config, processes, tmp_path):
    folder = tmp_path / "curve"
    text = memory_curve.run(config, str(folder), 2.0)
    measured = len(processes)
    found = read_json(folder / "memory.json")
    assert found["measured_points"] == found["within_tolerance"] >= 20
    assert found["worst_error"] == pytest.approx(-1 + 1 / 1.05, abs=1e-6)
    assert f"{measured} of {measured} predictions within 12%" in text
    assert (folder / "memory.png").read_bytes().startswith(b"\x89PNG")
    path = folder / "points.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-3]))  # as after a kill
    assert memory_curve.run(config, str(folder), 2.0) == text
    assert len(processes) == measured + 3
    # Another model's points are others.
    other = config.with_values("argument", {"generator_hidden_size": 0.5})
    memory_curve.run(other, str(folder), 2.0)
    assert len(processes) > measured + 3


def test_what_makes_no_curve_is_refused(config, processes, tmp_path):
    (tmp_path / "points.jsonl").write_text('{"key": 1}\n')
    words = r"points.jsonl:1: found .*key"
    refused(words, memory_curve.run, config, str(tmp_path), 2.0)
    for own in (
        {"generator": "two_tower"},
        {"generator": "unigram", "gradient_accumulation_steps": 16},
        {"keep_best": "disc_auc", "eval_every_n_steps": 5},
    ):
        odd = config.with_values("argument", own)
        assert all(p.kind for p in memory_curve.points(odd, 2 << 30))
    config = PretrainingConfig.create("m", str(tmp_path), objective="mlm")
    refused("objective is 'mlm'; expected another", memory_curve.kinds, config)
