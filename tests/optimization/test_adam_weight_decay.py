# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The optimizer's arithmetic, by hand and against float64."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.optimization.optimizer import (
    AdamWeightDecay,
    uses_weight_decay,
    variable_name,
)

RATE = 0.5


def constant_rate(step):
    del step
    return tf.constant(RATE)


def variables(**values):
    """Variables by name; "__" stands for the slash."""
    return [
        tf.Variable(
            tf.constant(value, tf.float32), name=name.replace("__", "/")
        )
        for name, value in values.items()
    ]


def update(optimizer, *gradients, step=0):
    gradients = [
        tf.constant(g, tf.float32) if isinstance(g, (list, float)) else g
        for g in gradients
    ]
    return optimizer.update(gradients, tf.constant(step, tf.int64))


def test_one_step_by_hand():
    [kernel] = variables(a__kernel=[2.0, -1.0])
    optimizer = AdamWeightDecay([kernel], constant_rate, 0.1)
    result = update(optimizer, [0.3, -0.4])
    assert float(result["learning_rate"]) == RATE
    np.testing.assert_allclose(result["grad_norm"], 0.5, rtol=1e-6)
    m, v = np.array([0.03, -0.04]), np.array([0.00009, 0.00016])
    np.testing.assert_allclose(optimizer.m["a/kernel"], m, rtol=1e-5)
    np.testing.assert_allclose(optimizer.v["a/kernel"], v, rtol=1e-5)
    weights = np.array([2.0, -1.0])
    weights -= RATE * (m / (np.sqrt(v) + 1e-6) + 0.1 * weights)
    np.testing.assert_allclose(kernel, weights, rtol=1e-5)


def test_epsilon_is_added_outside_the_root():
    [kernel] = variables(kernel=[0.0])
    update(AdamWeightDecay([kernel], constant_rate, epsilon=1e-2), [0.1])
    expected = -RATE * 0.01 / (np.sqrt(0.001 * 0.01) + 1e-2)
    np.testing.assert_allclose(kernel, [expected], rtol=1e-5)


def test_layer_norms_and_biases_are_not_decayed():
    named = variables(
        e__LayerNorm__gamma=[1.0],
        e__LayerNorm__beta=[1.0],
        e__layer_norm__scale=[1.0],
        e__dense__bias=[1.0],
        generator_predictions__output_bias=[1.0],
        e__dense__kernel=[1.0],
        embeddings__word_embeddings=[1.0],
        embeddings__position_embeddings=[1.0],
    )
    optimizer = AdamWeightDecay(named, constant_rate, 0.1)
    update(optimizer, *[[0.0]] * len(named))
    moved = {variable_name(v) for v in named if float(v[0]) != 1.0}
    assert moved == {
        "e/dense/kernel",
        "embeddings/word_embeddings",
        "embeddings/position_embeddings",
    }
    assert moved == {
        n for n in map(variable_name, named) if uses_weight_decay(n)
    }


def test_no_weight_decay_leaves_weights_without_gradient_in_place():
    [kernel] = variables(kernel=[1.0])
    update(AdamWeightDecay([kernel], constant_rate, 0.0), [0.0])
    assert float(kernel[0]) == 1.0


@pytest.mark.parametrize(
    ("gradient", "scale"),
    [([0.3, 0.4], 1.0), ([0.6, 0.8], 1.0), ([3.0, 4.0], 0.2), ([0.0, 0.0], 1)],
)
def test_gradients_are_scaled_only_above_a_global_norm_of_one(gradient, scale):
    first, second = variables(a=[0.0], b=[0.0])
    optimizer = AdamWeightDecay([first, second], constant_rate)
    result = update(optimizer, *[[g] for g in gradient])
    np.testing.assert_allclose(
        result["grad_norm"], np.hypot(*gradient), rtol=1e-6
    )
    moments = [float(optimizer.m[name][0]) for name in "ab"]
    np.testing.assert_allclose(
        moments, 0.1 * scale * np.array(gradient), rtol=1e-5
    )


def test_another_clip_norm():
    [kernel] = variables(a=[0.0, 0.0])
    optimizer = AdamWeightDecay([kernel], constant_rate, clip_norm=2.5)
    update(optimizer, [3.0, 4.0])
    np.testing.assert_allclose(optimizer.m["a"], [0.15, 0.2], rtol=1e-5)


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
    np.testing.assert_allclose(
        result["grad_norm"], np.sqrt(0.09 + 0.04 + 0.01), rtol=1e-6
    )
    np.testing.assert_allclose(
        optimizer.m["word_embeddings"],
        [[0.02], [0.0], [0.02], [0.0]],
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        optimizer.v["word_embeddings"],
        [[4e-5], [0.0], [4e-5], [0.0]],
        rtol=1e-4,
    )


def test_rows_absent_from_the_batch_still_move_and_decay():
    [table] = variables(word_embeddings=[[1.0], [1.0], [1.0]])
    optimizer = AdamWeightDecay([table], constant_rate, 0.1)
    update(optimizer, rows([[0.5]], [0], [3, 1]))
    np.testing.assert_allclose(table[1:], np.full([2, 1], 0.95), rtol=1e-6)
    moved, moment = float(table[0, 0]), float(optimizer.m["word_embeddings"][0])
    update(optimizer, rows([[0.5]], [1], [3, 1]), step=1)
    np.testing.assert_allclose(
        optimizer.m["word_embeddings"][0], 0.9 * moment, rtol=1e-6
    )
    without_momentum = moved - RATE * 0.1 * moved
    assert float(table[0, 0]) < without_momentum - 0.1


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


def test_the_schedule_is_read_at_the_number_of_completed_updates():
    [kernel] = variables(kernel=[1.0])
    optimizer = AdamWeightDecay(
        [kernel], lambda step: tf.cast(step, tf.float32)
    )
    assert float(update(optimizer, [0.1], step=7)["learning_rate"]) == 7


def test_slots_are_zero_and_named_after_their_variable():
    optimizer = AdamWeightDecay(
        variables(a__kernel=[[1.0, 2.0]]), constant_rate
    )
    names = [optimizer.m["a/kernel"].name, optimizer.v["a/kernel"].name]
    assert names == ["a/kernel/adam_m:0", "a/kernel/adam_v:0"]
    np.testing.assert_array_equal(optimizer.m["a/kernel"], [[0.0, 0.0]])
    np.testing.assert_array_equal(optimizer.v["a/kernel"], [[0.0, 0.0]])
    slots = [*optimizer.m.values(), *optimizer.v.values()]
    assert not any(slot.trainable for slot in slots)


def test_two_variables_of_one_name_are_refused():
    with pytest.raises(ValueError, match="Two variables are named same"):
        AdamWeightDecay(
            variables(same=1.0) + variables(same=2.0), constant_rate
        )


@pytest.mark.parametrize("count", [1, 3])
def test_a_gradient_for_each_variable_is_needed(count):
    optimizer = AdamWeightDecay(variables(a=[1.0], b=[1.0]), constant_rate)
    with pytest.raises(ValueError, match=f"{count} gradients for 2 variables"):
        update(optimizer, *[[0.0]] * count)


def plain_adam(gradients, weights, dtype):
    """The update as the formula is written, in numpy."""
    w = weights.astype(dtype)
    m, v = np.zeros_like(w), np.zeros_like(w)
    number = dtype
    for gradient in gradients:
        g = gradient.astype(dtype)
        norm = np.sqrt(np.sum(g * g, dtype=dtype))
        g = g * min(number(1), number(1) / norm)
        m = number(0.9) * m + number(1 - 0.9) * g
        v = number(0.999) * v + number(1 - 0.999) * g * g
        step = m / (np.sqrt(v) + number(1e-6)) + number(0.01) * w
        w = w - number(1e-3) * step
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
