# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Differences: worked out by hand, collected, described, decided on."""

import json
import math
import types

import numpy as np
import pytest

from electra_tf.compare import differences, report

COUNTS = {"examples": 1, "length": 4, "tokens": 4, "predictions": 2}


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


# Outputs, and what is printed of them.


def collected(error=0.0, losses=((2.0, 2.0),)):
    found = differences.ForwardDifference(COUNTS)
    layers = np.linspace(-1, 1, 24).reshape(2, 4, 3)
    for _ in range(2):  # two batches
        shifted = layers + np.array([0, error])[:, None, None]
        found.add_layers("generator", layers, layers)
        found.add_layers("discriminator", shifted, layers)
    found.add_output("discriminator logits", layers[0], layers[0] - error)
    found.add_agreement("sign", [1, 0], [1, 1])
    found.add_integers("ids", [1, 2], [1, 2])
    found.losses = {f"loss {i}": pair for i, pair in enumerate(losses)}
    return found


@pytest.mark.parametrize("loss", [2.1, math.nan])
def test_losses_and_integers_decide(loss):
    found = collected(losses=((loss, 2.0),))
    found.add_integers("others", [1, 2, 3], [1, 0, 0])
    assert found.problems(0.01) == [
        "others: 2 of 3 differ",
        f"loss 0: {loss:.6g} | 2",
    ]


def test_everything_goes_into_json():
    both = collected(error=0.5, losses=((2.0, 2.0), (math.nan, 1.0)))
    text = json.dumps(both.as_dict(), allow_nan=False)
    found = json.loads(text)
    assert found["layers"]["discriminator"][1]["max_abs"] == 0.5
    assert found["losses"]["loss 0"] == {"a": 2.0, "b": 2.0}
    assert found["losses"]["loss 1"] == {"a": None, "b": 1.0}


def test_screen_shows_the_worst_layer_and_fits():
    lines = report.forward_table(collected(error=0.5))
    text = "\n".join(lines)
    assert "discriminator, worst of 2 layers: 2" in text
    assert "1 of 2" in text and "2.00000" in text
    assert max(map(len, lines)) <= 80


def row(name, a, b):
    is_same = a is not None and b is not None and np.shape(a) == np.shape(b)
    return differences.TensorDifference(
        name=name,
        shape_a=None if a is None else np.shape(a),
        shape_b=None if b is None else np.shape(b),
        dtype_a="float32",
        dtype_b="float32",
        difference=difference(a, b) if is_same else None,
    )


def test_variables_are_listed_worst_first_and_whole_scopes_at_once():
    found = report.worst_first(
        [
            row("electra/a", [1.0], [1.0]),
            row("electra/b", [1.0], [1.5]),
            row("electra/c", [1.0], [3.0]),
            row("generator/x/k", [1.0], None),
            row("generator/x/l", [1.0], None),
            row("electra/d", [1.0], [1.0, 2.0]),
        ]
    )
    lines = report.variables_table(found, 0.1)
    assert lines[0] == (
        "Variables: 3 compared, 1 exactly equal, 1 within 0.1,"
        " 2 missing in B, 1 of another shape"
    )
    assert lines[1:3] == [
        "  generator/x/... (2): missing in B",
        "  electra/d: shape [1] | [2]",
    ]
    assert [line.split()[0] for line in lines[3:]] == [
        "worst",
        "electra/c",
        "electra/b",
    ]


def test_long_lists_are_cut_and_counted():
    found = [row(f"v{i}", [0.0], None) for i in range(30)]
    lines = report.variables_table(found, 0.1)
    assert len(lines) == 12 and lines[-1] == "  ... and 20 more"
    text = report.verdict([str(i) for i in range(9)], False, 0.1)
    assert text == "DIFFER by more than 0.1: 0; 1; 2; 3; 4; and 4 more"
