# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""`plan --memory_curve`: points, resuming, what fits, refusals."""

import itertools
import json

import pytest

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.plan import memory_curve
from electra_tf.plan.memory import pretraining_memory

GIB = 1 << 30


@pytest.fixture
def config(tmp_path):
    return PretrainingConfig.create("model", str(tmp_path))


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
        assert point.config.objective == (
            "electra" if point.kind == "ELECTRA" else "mlm"
        )
        wide = point.kind == "BERT's shape"
        assert point.config.embedding_size == (256 if wide else 128)
        rows = point.config.model_hparam_overrides["max_position_embeddings"]
        assert rows == max(512, point.config.max_seq_length)
    grid = [point.row() for point in found if point.part == "grid"]
    assert len(grid) == 2 * 27
    chosen = [
        tuple(p.row()[name] for name in memory_curve.GRID)
        for p in found
        if p.part == "grid" and p.kind == "ELECTRA" and p.is_measured
    ]
    assert len(chosen) == 9
    for two in itertools.combinations(range(3), 2):
        assert len({tuple(c[i] for i in two) for c in chosen}) == 9
    for point in memory_curve.points(config, 2 * GIB):
        if point.is_measured:
            assert point.row()["predicted"] <= 2 * GIB


def test_largest_is_the_last_that_fits(config):
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
    found = json.loads((folder / "memory.json").read_text())
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
    with pytest.raises(UserError, match=r"points.jsonl:1: found .*key"):
        memory_curve.run(config, str(tmp_path), 2.0)
    config = PretrainingConfig.create("m", str(tmp_path), objective="mlm")
    with pytest.raises(UserError, match="objective is 'mlm'; expected another"):
        memory_curve.kinds(config)
