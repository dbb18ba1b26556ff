# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rates per layer, as in the original and corrected."""

import json

import pytest

from electra_tf.optimization.optimizer import layer_multipliers, rate_table

NAMES = [
    "electra/embeddings/word_embeddings",
    "electra/embeddings_project/kernel",
    "electra/encoder/layer_0/output/dense/kernel",
    "electra/encoder/layer_1/output/dense/kernel",
    "task_specific/cola/dense/kernel",
]
TRAJECTORIES = ("cola", "sts", "chunk", "squad")


@pytest.mark.parametrize("task", TRAJECTORIES)
def test_multipliers_equal_the_recorded_ones(task, golden_dir):
    path = golden_dir / f"train_finetune_{task}_layerwise" / "info.json"
    info = json.loads(path.read_text())
    recorded = info["lr_multiplier_per_variable"]
    assert recorded
    found = layer_multipliers(
        list(recorded),
        info["hparams"]["layerwise_lr_decay"],
        info["bert_config"]["num_hidden_layers"],
    )
    assert found == {n: row["multiplier"] for n, row in recorded.items()}


def test_the_original_s_top_layer_is_two_levels_below_the_heads():
    found = layer_multipliers(NAMES, 0.5, 2)
    assert list(found.values()) == [0.0625, 0.0625, 0.125, 0.25, 1.0]


def test_corrected_depths_leave_out_no_level():
    found = layer_multipliers(NAMES, 0.5, 2, fixed=True)
    assert list(found.values()) == [0.125, 0.125, 0.25, 0.5, 1.0]


def test_no_decay_means_no_multipliers():
    assert layer_multipliers(NAMES, -1, 2) == {}
    assert {row.multiplier for row in rate_table(NAMES, -1, 2)} == {1.0}


def test_the_table_lists_parts_from_the_bottom():
    rows = rate_table(NAMES, 0.5, 2)
    assert [(row.part, row.num_variables) for row in rows] == [
        ("embeddings", 2),
        ("layer 0", 1),
        ("layer 1", 1),
        ("heads", 1),
    ]


def test_a_variable_in_no_layer_is_refused():
    with pytest.raises(ValueError, match="generator/encoder/layer_5"):
        layer_multipliers(["generator/encoder/layer_5/x"], 0.5, 2)
