# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rates of updates, and multipliers by layer with their table."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from electra_tf.optimization.learning_rate import (
    WarmupPolynomialDecay,
    layer_multipliers,
    rate_table,
)
from tests.conftest import read_json


def reference(peak, total, warmup, power, order, completed):
    step = completed + (order == "after_increment")
    value = peak * (1 - min(step, total) / total) ** power
    return value * min(1.0, step / warmup) if warmup else value


@hypothesis.given(
    peak=st.floats(1e-6, 1.0),
    total=st.integers(1, 1_000_000),
    warmup=st.just(0) | st.floats(0.25, 20_000),
    power=st.sampled_from([0.5, 1.0, 2.0, 3.0]),
    order=st.sampled_from(["after_increment", "before_increment"]),
    share=st.floats(0, 1.2),
)
def test_rates_equal_the_reference(peak, total, warmup, power, order, share):
    completed = int(share * total)
    schedule = WarmupPolynomialDecay(peak, total, warmup, power, order)
    # float32 rounds 1 - step / total to 6e-8; a root magnifies that near 0.
    remaining = max(1 - completed / total, 1e-7)
    slack = 2e-7 * power * max(1.0, remaining ** (power - 1)) + 1e-7
    np.testing.assert_allclose(
        float(schedule(tf.constant(completed, tf.int64))),
        reference(peak, total, warmup, power, order, completed),
        rtol=5e-7,
        atol=peak * slack,
    )


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("total", [3, 6, 7, 10, 12, 300, 1000])
def test_the_last_rate_is_zero_in_xla(total, power):
    # XLA's difference is negative here, whose root is NaN.
    schedule = WarmupPolynomialDecay(1e-3, total, power=power)
    rate = tf.function(schedule, jit_compile=True)
    last = tf.constant(total - 1, tf.int64)
    np.testing.assert_allclose(float(rate(last)), 0.0, atol=1e-9)
    assert float(rate(last)) >= 0.0


def test_an_unknown_order_of_reading_the_rate_is_refused():
    with pytest.raises(KeyError, match="later"):
        WarmupPolynomialDecay(1.0, 10, read_order="later")(0)


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
