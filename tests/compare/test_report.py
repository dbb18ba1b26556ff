# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Differences of outputs: collected, described, decided on."""

import json
import math

import numpy as np
import pytest

from electra_tf.compare import report
from electra_tf.compare.differences import (
    Difference,
    ForwardDifference,
    TensorDifference,
)

COUNTS = {"examples": 1, "length": 4, "tokens": 4, "predictions": 2}


def collected(error=0.0, losses=((2.0, 2.0),)):
    found = ForwardDifference(COUNTS)
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


def test_equal_outputs_have_no_problems():
    found = collected()
    assert found.problems(0.0) == []
    assert found.layers["generator"][0].count == 24
    assert found.agreement["sign"] == (1, 2)  # told, not decisive


def test_the_layer_that_differs_is_named():
    problems = collected(error=0.5).problems(1e-3)
    assert problems == [
        "discriminator layer 2: 0.5",
        "discriminator logits: 0.5",
    ]


@pytest.mark.parametrize("loss", [2.1, math.nan])
def test_losses_and_integers_decide(loss):
    found = collected(losses=((loss, 2.0),))
    found.add_integers("others", [1, 2, 3], [1, 0, 0])
    assert found.problems(0.01) == [
        "others: 2 of 3 differ",
        f"loss 0: {loss:.6g} | 2",
    ]


def test_layers_of_other_sizes_are_not_compared():
    found = ForwardDifference(COUNTS)
    found.add_layers("generator", np.ones([2, 4, 3]), np.ones([1, 4, 3]))
    why = "2 of width 3 in A, 1 of width 3 in B"
    assert not found.layers and found.not_compared == {"generator layers": why}


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
    return TensorDifference(
        name=name,
        shape_a=None if a is None else np.shape(a),
        shape_b=None if b is None else np.shape(b),
        dtype_a="float32",
        dtype_b="float32",
        difference=Difference().add(a, b) if is_same else None,
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
