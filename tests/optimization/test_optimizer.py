# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The schedule, layer-wise rates and Adam, by hand and against float64."""

import json

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from electra_tf.optimization.optimizer import (
    AdamWeightDecay,
    WarmupPolynomialDecay,
    layer_multipliers,
    rate_table,
)


def rate(schedule, completed):
    return float(schedule(tf.constant(completed, tf.int64)))


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
    expected = reference(peak, total, warmup, power, order, completed)
    # float32 rounds 1 - step / total to 6e-8; a root magnifies that near 0.
    left = max(1 - completed / total, 1e-7)
    slack = 2e-7 * power * max(1.0, left ** (power - 1)) + 1e-7
    np.testing.assert_allclose(
        rate(schedule, completed), expected, rtol=5e-7, atol=peak * slack
    )


def test_another_order_is_refused():
    with pytest.raises(ValueError, match="'later'.*after_increment, before"):
        WarmupPolynomialDecay(1.0, 10, read_order="later")


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


@pytest.mark.parametrize(
    ("fixed", "expected"),
    [
        # The original's top layer is two levels below the heads.
        (False, [0.0625, 0.0625, 0.125, 0.25, 1.0]),
        (True, [0.125, 0.125, 0.25, 0.5, 1.0]),
    ],
)
def test_depths_of_the_original_and_corrected_ones(fixed, expected):
    found = layer_multipliers(NAMES, 0.5, 2, fixed=fixed)
    assert list(found.values()) == expected


def test_the_table_lists_parts_from_the_bottom():
    rows = rate_table(NAMES, 0.5, 2)
    parts = ["embeddings", "layer 0", "layer 1", "heads"]
    assert [row.part for row in rows] == parts
    assert [row.num_variables for row in rows] == [2, 1, 1, 1]
    assert {row.multiplier for row in rate_table(NAMES, -1, 2)} == {1.0}
    assert layer_multipliers(NAMES, -1, 2) == {}
    with pytest.raises(ValueError, match="generator/encoder/layer_5"):
        layer_multipliers(["generator/encoder/layer_5/x"], 0.5, 2)


RATE = 0.5


def constant_rate(step):
    del step
    return tf.constant(RATE)


def variables(**values):
    """Variables by name; "__" stands for the slash."""
    return [
        tf.Variable(np.float32(value), name=name.replace("__", "/"))
        for name, value in values.items()
    ]


def update(optimizer, *gradients, step=0):
    gradients = [
        tf.constant(g, tf.float32) if isinstance(g, (list, float)) else g
        for g in gradients
    ]
    return optimizer.update(gradients, tf.constant(step, tf.int64))


def rows(values, indices, shape):
    return tf.IndexedSlices(
        tf.constant(values), tf.constant(indices), tf.constant(shape)
    )


def test_repeated_rows_count_apart_in_the_norm_and_together_in_the_update():
    [table] = variables(word_embeddings=np.zeros([4, 1]))
    optimizer = AdamWeightDecay([table], constant_rate)
    gradient = rows([[0.3], [0.2], [-0.1]], [2, 0, 2], [4, 1])
    result = update(optimizer, gradient)
    # Merged, row 2 would be 0.2 and the norm sqrt(0.08).
    norm = np.sqrt(0.09 + 0.04 + 0.01)
    np.testing.assert_allclose(result["grad_norm"], norm, rtol=1e-6)
    m, v = optimizer.m["word_embeddings"], optimizer.v["word_embeddings"]
    np.testing.assert_allclose(m[:, 0], [0.02, 0, 0.02, 0], rtol=1e-5)
    np.testing.assert_allclose(v[:, 0], [4e-5, 0, 4e-5, 0], rtol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_norm_that_is_not_finite_changes_no_weight(bad, sparse):
    kernel, table = variables(kernel=[1.0, 2.0], table=[[3.0], [4.0]])
    optimizer = AdamWeightDecay([kernel, table], constant_rate, 0.1)
    update(optimizer, [0.3, 0.4], [[0.5], [0.1]])
    before = [v.numpy() for v in (kernel, table)]
    moments = [optimizer.m["kernel"].numpy(), optimizer.v["kernel"].numpy()]
    if sparse:
        gradients = [0.1, 0.2], rows([[np.float32(bad)]], [1], [2, 1])
    else:
        gradients = [0.1, bad], [[0.1], [0.1]]
    result = update(optimizer, *gradients, step=1)
    assert not np.isfinite(result["grad_norm"])
    np.testing.assert_array_equal(kernel, before[0])
    np.testing.assert_array_equal(table, before[1])
    np.testing.assert_allclose(optimizer.m["kernel"], 0.9 * moments[0], 1e-6)
    np.testing.assert_allclose(optimizer.v["kernel"], 0.999 * moments[1], 1e-6)
    for slots in (optimizer.m, optimizer.v):
        assert all(np.isfinite(slot).all() for slot in slots.values())
    update(optimizer, [0.3, 0.4], [[0.5], [0.1]], step=2)
    assert np.isfinite(kernel).all() and (kernel.numpy() != before[0]).all()


def test_a_variable_without_gradient_is_left_alone():
    used, unused = variables(used=[1.0], unused=[1.0])
    optimizer = AdamWeightDecay([used, unused], constant_rate, 0.1)
    optimizer.m["unused"].assign([0.7])
    result = update(optimizer, [0.6], None)
    np.testing.assert_allclose(result["grad_norm"], 0.6, rtol=1e-6)
    assert float(used[0]) != 1.0
    assert float(unused[0]) == 1.0
    np.testing.assert_allclose(optimizer.m["unused"], [0.7])


def test_bias_correction_divides_the_moments():
    [kernel] = variables(kernel=[1.0, 1.0])
    optimizer = AdamWeightDecay([kernel], constant_rate, bias_correction=True)
    weights, m, v = np.ones(2), np.zeros(2), np.zeros(2)
    for step, gradient in enumerate(([0.3, -0.2], [0.1, 0.4], [0.2, 0.2])):
        update(optimizer, gradient, step=step)
        m = 0.9 * m + 0.1 * np.array(gradient)
        v = 0.999 * v + 0.001 * np.array(gradient) ** 2
        root = np.sqrt(v / (1 - 0.999 ** (step + 1)))
        weights -= RATE * m / (1 - 0.9 ** (step + 1)) / (root + 1e-6)
        np.testing.assert_allclose(kernel, weights, atol=1e-6)


def plain_adam(gradients, weights, dtype):
    """The update as the formula is written, in numpy."""
    w = weights.astype(dtype)
    m, v = np.zeros_like(w), np.zeros_like(w)
    for gradient in gradients:
        g = gradient.astype(dtype)
        norm = np.sqrt(np.sum(g * g, dtype=dtype))
        g = g * min(dtype(1), dtype(1) / norm)
        m = dtype(0.9) * m + dtype(1 - 0.9) * g
        v = dtype(0.999) * v + dtype(1 - 0.999) * g * g
        step = m / (np.sqrt(v) + dtype(1e-6)) + dtype(0.01) * w
        w = w - dtype(1e-3) * step
    return w


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_over_1000_steps_the_error_is_no_larger_than_the_plain_formulas(seed):
    random = np.random.RandomState(seed)
    weights = random.randn(16, 8).astype(np.float32)
    # From far below the clipping norm to far above it.
    scales = 10.0 ** random.uniform(-4, 1, [1000, 1, 1])
    gradients = (random.randn(1000, 16, 8) * scales).astype(np.float32)
    [kernel] = variables(kernel=weights)
    optimizer = AdamWeightDecay([kernel], lambda _: tf.constant(1e-3), 0.01)

    @tf.function
    def run():
        for step in tf.range(1000, dtype=tf.int64):
            optimizer.update([tf.gather(gradients, step)], step)

    run()
    exact = plain_adam(gradients, weights, np.float64)
    plain = np.abs(plain_adam(gradients, weights, np.float32) - exact).max()
    ours = np.abs(kernel.numpy() - exact).max()
    assert 0 < ours <= 1.05 * plain
