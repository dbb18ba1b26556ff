# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Memory curves: points, measurements, and the largest sizes that fit."""

import itertools
import sys

import pytest

from configure.pretraining import PretrainingConfig
from electra_tf.extras.memory_curve import GRID, LENGTHS, MemoryCurve, Point
from electra_tf.plan.memory import pretraining_memory
from tests.conftest import marked_heavy, read_json, refused

FACTOR = 1.5  # accepted ratio of a measured peak and its estimate
DEBUG = {"debug": True, "vocab_size": 500}
BASE = {"preset": "base", "max_seq_length": 128}
GIB = 1 << 30
KINDS = ("ELECTRA", "masked LM", "BERT's shape")


@pytest.fixture
def config(tmp_path):
    return PretrainingConfig.create("model", str(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's /proc")
@pytest.mark.parametrize(
    "settings",
    [
        *marked_heavy(
            DEBUG,
            {"train_batch_size": 16},
            {"train_batch_size": 4, "max_seq_length": 512},
            {**BASE, "train_batch_size": 16},
        ),
    ],
    ids=str,
)
def test_peaks_are_within_the_factor(tmp_path, settings):
    config = PretrainingConfig.create("model", str(tmp_path), **settings)
    peak = Point("lengths", KINDS[0], config, True).measure_peak()
    assert 1 / FACTOR < peak / pretraining_memory(config).total < FACTOR


@pytest.fixture
def processes(monkeypatch):
    """Replace measurements by estimates; return the configs of the calls."""
    configs = []

    def measure_peak(point):
        configs.append(point.config)
        return round(1.05 * pretraining_memory(point.config).total)

    monkeypatch.setattr(Point, "measure_peak", measure_peak)
    return configs


@pytest.fixture(scope="module")
def all_points(tmp_path_factory):
    folder = tmp_path_factory.mktemp("points")
    config = PretrainingConfig.create("model", str(folder))
    return list(MemoryCurve(config, 1 << 50).points())


def test_each_kind_has_every_length(all_points):
    lengths = [
        (point.config.max_seq_length, point.kind)
        for point in all_points
        if point.part == "lengths"
    ]
    assert set(lengths) == set(itertools.product(LENGTHS, KINDS))


@pytest.mark.parametrize(
    ("kind", "objective", "width"),
    [
        ("ELECTRA", "electra", 128),
        ("masked LM", "mlm", 128),
        ("BERT's shape", "mlm", 256),
    ],
)
def test_a_kind_has_its_objective_and_width(all_points, kind, objective, width):
    configs = [
        point.config
        for point in all_points
        if (point.part, point.kind) == ("lengths", kind)
    ]
    assert {config.objective for config in configs} == {objective}
    assert {config.embedding_size for config in configs} == {width}


def test_long_rows_have_positions(all_points):
    points = [point for point in all_points if point.part == "lengths"]
    positions = [
        point.config.model_hparam_overrides["max_position_embeddings"]
        for point in points
    ]
    lengths = [point.config.max_seq_length for point in points]
    assert positions == [max(512, length) for length in lengths]


def test_the_grid_has_two_kinds(all_points):
    grid = [point for point in all_points if point.part == "grid"]
    assert len(grid) == 2 * 27
    assert {point.kind for point in grid} == {"ELECTRA", "masked LM"}


@pytest.mark.parametrize("pair", itertools.combinations(range(3), 2))
def test_a_third_of_the_grid_pairs_all_values_of_two_sizes(all_points, pair):
    measured = [
        [point.row()[name] for name in GRID]
        for point in all_points
        if (point.part, point.kind, point.is_measured)
        == ("grid", "ELECTRA", True)
    ]
    assert len(measured) == 9
    assert len({tuple(sizes[i] for i in pair) for sizes in measured}) == 9


def test_no_point_beyond_the_limit_is_measured(config):
    predictions = [
        point.row()["predicted"]
        for point in MemoryCurve(config, 2 * GIB).points()
        if point.is_measured
    ]
    assert predictions and max(predictions) <= 2 * GIB


def test_no_batch_fits_into_a_megabyte(config):
    largest = MemoryCurve(config, 2**20).find_largest()
    lengths = [one_kind["length"] for one_kind in largest.values()]
    batches = [b for k in largest.values() for b in k["batches"].values()]
    assert not any(lengths) and not any(batches)


@pytest.fixture(scope="module")
def largest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("largest")
    config = PretrainingConfig.create("model", str(folder))
    curve = MemoryCurve(config, 4 * GIB)
    return curve, curve.find_largest()


def total(curve, kind, batch, length):
    return pretraining_memory(curve.resize(kind, batch, length)).total


@pytest.mark.parametrize("kind", KINDS)
def test_the_longest_rows_are_the_last_that_fit(largest, kind):
    curve, sizes = largest
    longest = sizes[kind]["length"]
    next_size = total(curve, kind, 8, longest + 1)
    assert total(curve, kind, 8, longest) <= 4 * GIB < next_size


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_batch_is_the_last_that_fits(largest, kind, length):
    curve, sizes = largest
    batch = sizes[kind]["batches"][length]
    next_size = total(curve, kind, batch + 1, length)
    assert total(curve, kind, batch, length) <= 4 * GIB < next_size


def test_a_masked_lm_fits_longer_rows(largest):
    _, sizes = largest
    assert sizes["ELECTRA"]["length"] < sizes["masked LM"]["length"]


def test_a_measured_point_is_not_measured_again(config, processes, tmp_path):
    folder = tmp_path / "curve"
    curve = MemoryCurve(config, 2 * GIB)
    text = curve.write(str(folder))
    measured = len(processes)
    results = read_json(folder / "memory.json")
    assert results["measured_points"] == results["within_tolerance"] >= 20
    assert results["worst_error"] == pytest.approx(-1 + 1 / 1.05, abs=1e-6)
    assert f"{measured} of {measured} predictions are within 12%" in text
    assert (folder / "memory.png").read_bytes().startswith(b"\x89PNG")
    path = folder / "points.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-3]))  # as after a kill
    assert curve.write(str(folder)) == text
    assert len(processes) == measured + 3


def test_points_of_another_model_are_measured(config, processes, tmp_path):
    folder = str(tmp_path / "curve")
    MemoryCurve(config, 2 * GIB).write(folder)
    measured = len(processes)
    other = config.with_values("argument", {"generator_hidden_size": 0.5})
    MemoryCurve(other, 2 * GIB).write(folder)
    assert len(processes) > measured


@pytest.mark.parametrize(
    "line",
    [
        '{"key": 1}',
        '["key"]',
        '{"key": "a", "measured": Infinity}',
        '{"key": "a", "measured": NaN}',
        '{"key": "a", "meas',
    ],
)
def test_a_damaged_line_of_points_is_refused(config, processes, tmp_path, line):
    (tmp_path / "points.jsonl").write_text(f"{line}\n")
    message = r"points.jsonl:1: found .*key"
    curve = MemoryCurve(config, 2 * GIB)
    refused(message, curve.write, str(tmp_path))


@pytest.mark.parametrize(
    "hparams",
    [
        {"generator": "two_tower"},
        {"generator": "unigram", "gradient_accumulation_steps": 16},
        {"keep_best": "disc_auc", "eval_every_n_steps": 5},
    ],
)
def test_different_settings_have_a_curve_of_equal_size(config, hparams):
    other = config.with_values("argument", hparams)
    points = list(MemoryCurve(other, 2 * GIB).points())
    assert len(points) == 3 * len(LENGTHS) + 2 * 27


def test_a_masked_lm_is_not_compared_with_itself(tmp_path):
    config = PretrainingConfig.create("m", str(tmp_path), objective="mlm")
    message = "objective is 'mlm'; expected a different"
    refused(message, MemoryCurve, config, 2 * GIB)
