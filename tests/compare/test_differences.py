# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers of differences equal those worked out by hand."""

import types

import numpy as np
import pytest

from electra_tf.compare import differences


def difference(a, b):
    return differences.Difference().add(a, b)


def test_numbers_of_a_small_difference():
    found = difference([1.0, -4.0, 0.0], [1.0, -2.0, 0.0])
    assert (found.count, found.max_abs, found.max_b) == (3, 2.0, 2.0)
    assert found.mean_abs == pytest.approx(2 / 3)
    assert found.relative == 1.0
    assert found.norm_relative == pytest.approx(2 / np.sqrt(5))
    assert found.scaled == 1.0 and not found.is_exact
    assert found.agrees(1.0) and not found.agrees(0.99)


def test_tolerance_is_absolute_below_one_and_relative_above():
    assert difference([0.001], [0.0011]).agrees(2e-4)
    assert difference([1000.1], [1000.0]).agrees(2e-4)
    assert not difference([1.1], [1.0]).agrees(2e-4)


@pytest.mark.parametrize("a", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_never_agrees(a):
    found = difference([a, 1.0], [2.0, 1.0])
    assert found.not_finite == 1 and found.max_abs == 0
    assert found.text == "1 not finite"
    assert not found.agrees(1e9) and not found.is_exact
    assert not difference([np.nan], [np.nan]).agrees(1e9)


def test_what_is_equal_agrees_and_zero_divides_nothing():
    assert difference([-np.inf, 2.0], [-np.inf, 2.0]).is_exact
    assert difference([0.0], [0.0]).relative == 0.0
    assert difference([1.0], [0.0]).relative is None


def test_pieces_give_what_the_whole_gives(monkeypatch):
    monkeypatch.setattr(differences, "_CHUNK", 7)
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 5, 11))
    whole = difference(a, b)
    running = differences.Difference()
    for row_a, row_b in zip(a, b, strict=True):
        running.add(row_a, row_b)
    assert running.max_abs == whole.max_abs == np.abs(a - b).max()
    assert whole.mean_abs == pytest.approx(np.abs(a - b).mean())
    assert np.sqrt(whole.squares) == pytest.approx(np.linalg.norm(a - b))
    assert np.sqrt(running.squares_b) == pytest.approx(np.linalg.norm(b))


def test_shapes_are_not_broadcast():
    with pytest.raises(ValueError, match=r"\(2, 1\) and \(2,\)"):
        difference(np.ones([2, 1]), np.ones([2]))


class Tensors:
    """Counts how many are read."""

    def __init__(self, **values):
        self.values = {n: np.asarray(v) for n, v in values.items()}
        self.specs = {
            name: types.SimpleNamespace(shape=v.shape, dtype=v.dtype)
            for name, v in self.values.items()
        }
        self.was_read = []

    def read(self, name):
        self.was_read.append(name)
        return self.values[name]


def test_missing_shapes_and_types_are_told_without_reading():
    a = Tensors(x=np.float32([1, 2]), only_a=[1.0], y=np.zeros([2, 3]))
    b = Tensors(x=np.float64([1, 3]), only_b=[1.0], y=np.zeros([3, 2]))
    names = ("x", "only_a", "only_b", "y")
    found = {row.name: row for row in differences.compare_tensors(a, b, names)}
    assert found["x"].problem is None and found["x"].difference.max_abs == 1
    assert (found["x"].dtype_a, found["x"].dtype_b) == ("float32", "float64")
    assert found["only_a"].problem == "missing in B"
    assert found["only_b"].problem == "missing in A"
    assert found["y"].problem == "shape [2, 3] | [3, 2]"
    assert not any(found[name].agrees(9.0) for name in names[1:])
    assert a.was_read == b.was_read == ["x"]
