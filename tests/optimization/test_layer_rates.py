# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layer-wise learning rates: multipliers by depth, and their table."""

import pytest

from electra_tf.optimization.layer_rates import layer_multipliers, rate_table
from tests.conftest import read_json

LAYERS = [
    "electra/embeddings/word_embeddings",
    "electra/embeddings_project/kernel",
    "electra/encoder/layer_0/output/dense/kernel",
    "electra/encoder/layer_1/output/dense/kernel",
    "task_specific/cola/dense/kernel",
]


@pytest.mark.parametrize("task", ["cola", "sts", "chunk", "squad"])
def test_multipliers_equal_the_recorded_ones(task, golden_dir):
    info = read_json(golden_dir / f"train_finetune_{task}_layerwise/info.json")
    recorded = info["lr_multiplier_per_variable"]
    assert recorded
    multipliers = layer_multipliers(
        list(recorded),
        info["hparams"]["layerwise_lr_decay"],
        info["bert_config"]["num_hidden_layers"],
    )
    assert multipliers == {n: row["multiplier"] for n, row in recorded.items()}


# The original's top layer is two levels below the heads.
@pytest.mark.parametrize(
    ("fixed", "expected"),
    [
        (False, [0.0625, 0.0625, 0.125, 0.25, 1.0]),
        (True, [0.125, 0.125, 0.25, 0.5, 1.0]),
    ],
)
def test_rates_fall_by_depth(fixed, expected):
    multipliers = layer_multipliers(LAYERS, 0.5, 2, fixed=fixed)
    assert [*multipliers.values()] == expected


def test_the_table_lists_parts_from_the_bottom():
    rows = rate_table(LAYERS, 0.5, 2)
    parts = ["embeddings", "layer 0", "layer 1", "heads"]
    assert [row.part for row in rows] == parts
    assert [row.num_variables for row in rows] == [2, 1, 1, 1]


def test_without_decay_all_rates_are_equal():
    assert layer_multipliers(LAYERS, -1, 2) == {}
    assert {row.multiplier for row in rate_table(LAYERS, -1, 2)} == {1.0}


def test_a_name_without_a_layer_is_refused():
    with pytest.raises(ValueError, match="generator/encoder/layer_5"):
        layer_multipliers(["generator/encoder/layer_5/x"], 0.5, 2)
