# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The three optimizers, against formulas in float64."""

import functools
import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.optimization.optimizer import (
    AdamW,
    AdamWeightDecay,
    Lamb,
    make_optimizer,
)

KINDS = {"original": AdamWeightDecay, "adamw": AdamW, "lamb": Lamb}
# All variables of a rate as one vector, as in a step that XLA compiles.
JOINED = functools.partial(AdamWeightDecay, joins_variables=True)
OPTIMIZERS = {**KINDS, "joined": JOINED}
CORRECTED = functools.partial(AdamWeightDecay, bias_correction=True)
NAMES = ("dense/kernel", "dense/bias", "output/LayerNorm/gamma")
SHAPES = ([4, 3], [3], [3])
SETTINGS = {"beta_1": 0.8, "beta_2": 0.99, "epsilon": 1e-4}
DECAY = 0.1


def rate(step):
    return 0.05 / (1.0 + tf.cast(step, tf.float32))


def fresh():
    random = np.random.default_rng(0)
    return [
        tf.Variable(random.normal(size=shape).astype(np.float32), name=name)
        for name, shape in zip(NAMES, SHAPES, strict=True)
    ]


def gradients(steps=6):
    """Yield gradients from far below the clipping norm to far above it."""
    random = np.random.default_rng(1)
    for scale in 10.0 ** random.uniform(-2, 1, steps):
        drawn = [scale * random.normal(size=shape) for shape in SHAPES]
        yield [values.astype(np.float32) for values in drawn]


def assert_all_close(actual, expected, **bounds):
    """Compare two structures of arrays."""
    tf.nest.map_structure(
        lambda *pair: np.testing.assert_allclose(*pair, **bounds),
        tuple(map(list, actual)),
        tuple(map(list, expected)),
    )


def clipped(values):
    norm = np.sqrt(sum(np.sum(np.square(v)) for v in values))
    return [v * min(1.0, 1.0 / norm) for v in values]


def train(optimizer, steps=None):
    """Make updates; return the values that the last one logs."""
    for step, values in enumerate(steps or gradients()):
        values = [*map(tf.convert_to_tensor, values)]
        logged = optimizer.update(values, tf.constant(step, tf.int64))
    return logged


def in_numpy(
    kind, dtype, weights, gradients, rate, decay, beta_1, beta_2, epsilon
):
    """Return weights and moments by the formulas; only weight 0 decays."""
    weights = [np.asarray(w, dtype) for w in weights]
    m, v = ([np.zeros_like(w) for w in weights] for _ in "mv")
    for step, values in enumerate(gradients):
        for i, g in enumerate(clipped([g.astype(dtype) for g in values])):
            m[i] = beta_1 * m[i] + (1 - beta_1) * g
            v[i] = beta_2 * v[i] + (1 - beta_2) * g * g
            first, root = m[i], 1.0
            if kind not in ("original", "joined"):  # bias correction
                first = m[i] / (1 - beta_1 ** (step + 1))
                root = math.sqrt(1 - beta_2 ** (step + 1))
            # tf_keras adds epsilon before the bias correction.
            added = epsilon / root if kind == "adamw" else epsilon
            change = first / (np.sqrt(v[i]) / root + added)
            now, w = float(rate(step)), weights[i]
            if kind == "adamw":
                if i == 0:  # The weight decays before the update.
                    w = w - now * decay * w
            elif i == 0:
                change = change + decay * w
                if kind == "lamb":
                    change *= np.linalg.norm(w) / np.linalg.norm(change)
            weights[i] = w - now * change
    return weights, m, v


@pytest.mark.parametrize(
    ("kind", "smallest", "largest"),
    [("adamw", 1e-4, 3.1e-4), ("corrected", 0.0, 1e-6)],
)
def test_epsilon_makes_adamw_differ_from_the_paper(kind, smallest, largest):
    """Loshchilov and Hutter add epsilon to the corrected moment's root."""
    random = np.random.default_rng(0)
    weights = [random.normal(size=[4, 3]).astype(np.float32)]
    drawn = [
        [(0.01 * random.normal(size=[4, 3])).astype(np.float32)]
        for _ in range(6)
    ]
    variable = tf.Variable(weights[0], name="dense/kernel")
    make = KINDS.get(kind, CORRECTED)
    constants = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6}
    train(
        make([variable], lambda _: tf.constant(0.01), 0.01, **constants), drawn
    )
    paper, *_ = in_numpy(
        "paper", np.float64, weights, drawn, lambda _: 0.01, 0.01, **constants
    )
    differences = np.abs(variable.numpy() - paper[0])
    assert smallest <= differences.max() <= largest
    assert smallest <= differences.mean() <= largest


@pytest.mark.parametrize("kind", [*OPTIMIZERS, "corrected"])
def test_updates_equal_the_formulas(kind):
    variables = fresh()
    make = OPTIMIZERS.get(kind, CORRECTED)
    optimizer = make(variables, rate, DECAY, **SETTINGS)
    logged = train(optimizer)
    expected = in_numpy(
        kind, np.float64, fresh(), gradients(), rate, DECAY, **SETTINGS
    )
    m = [optimizer.m[name] for name in NAMES]
    v = [optimizer.v[name] for name in NAMES]
    assert_all_close((variables, m, v), expected, atol=1e-6)
    assert float(logged["learning_rate"]) == float(rate(5))
    last = [*gradients()][-1]
    norm = np.sqrt(sum(np.sum(np.square(g)) for g in last))
    np.testing.assert_allclose(logged["grad_norm"], norm, rtol=1e-5)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_multiplier_scales_the_rate_of_its_variable(kind):
    variables, slow_variables = fresh(), fresh()
    slow = {NAMES[0]: 0.25, NAMES[1]: 1.0, NAMES[2]: 0.25}
    train(
        OPTIMIZERS[kind](variables, rate, DECAY, learning_rate_multipliers=slow)
    )
    train(OPTIMIZERS[kind](slow_variables, lambda s: 0.25 * rate(s), DECAY))
    pairs = zip(variables, slow_variables, strict=True)
    is_slow = [np.allclose(*pair, rtol=1e-6) for pair in pairs]
    assert is_slow == [True, False, True]


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_norm_that_is_not_finite_changes_no_weight(kind, bad, sparse):
    variables = fresh()
    optimizer = OPTIMIZERS[kind](variables, rate, DECAY)
    train(optimizer)
    before = [v.numpy() for v in variables]
    m, v = ([slots[n] for n in NAMES] for slots in (optimizer.m, optimizer.v))
    decayed_m = [0.9 * slot.numpy() for slot in m]
    decayed_v = [0.999 * slot.numpy() for slot in v]
    broken = [np.full(shape, 0.1, np.float32) for shape in SHAPES]
    broken[0][1] = bad
    if sparse:
        broken[0] = tf.IndexedSlices(broken[0][:2], [3, 1], SHAPES[0])
    assert not np.isfinite(train(optimizer, [broken])["grad_norm"])
    assert_all_close([variables], [before], rtol=0, atol=0)
    assert_all_close((m, v), (decayed_m, decayed_v), rtol=1e-6)
    train(optimizer)  # The next updates change every weight again.
    after = np.concatenate([np.ravel(v) for v in variables])
    before = np.concatenate([np.ravel(v) for v in before])
    assert np.isfinite(after).all() and (after != before).all()


def table_of_ones(name):
    return tf.Variable(np.ones([4, 2], np.float32), name=name)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_rows_are_updated_as_the_dense_gradient_they_add_up_to(kind):
    table, dense = table_of_ones("table"), table_of_ones("dense")
    optimizer = OPTIMIZERS[kind]([table, dense], rate, DECAY)
    row = tf.IndexedSlices([[0.25, 0.2], [-0.125, 0.1]], [2, 2], [4, 2])
    merged = np.float32([[0, 0], [0, 0], [0.125, 0.3], [0, 0]])
    logged = optimizer.update([row, merged], tf.constant(0, tf.int64))
    # Repeated rows count apart in the norm, together in the update.
    norm = np.sqrt(np.square(row.values).sum() + np.square(merged).sum())
    np.testing.assert_allclose(logged["grad_norm"], norm, rtol=1e-6)
    m, v = optimizer.m, optimizer.v
    np.testing.assert_array_equal(m["table"], m["dense"])
    np.testing.assert_array_equal(v["table"], v["dense"])
    np.testing.assert_allclose(m["dense"], 0.1 * merged, 1e-5)
    np.testing.assert_allclose(v["dense"], 0.001 * merged**2, 1e-4)
    np.testing.assert_array_equal(table, dense)
    assert float(table[0, 0]) < 1.0  # decayed, though absent from the batch


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_variable_without_gradient_keeps_value_and_moments(kind):
    table, unused = table_of_ones("table"), table_of_ones("unused")
    optimizer = OPTIMIZERS[kind]([table, unused], rate, DECAY)
    optimizer.m["unused"].assign(np.full([4, 2], 0.7))
    gradient = np.full([4, 2], 0.1, np.float32)
    optimizer.update([gradient, None], tf.constant(0, tf.int64))
    np.testing.assert_array_equal(unused, np.ones([4, 2]))
    np.testing.assert_allclose(optimizer.m["unused"], np.full([4, 2], 0.7))


def test_unequal_counts_of_gradients_and_variables_are_refused():
    optimizer = AdamWeightDecay(fresh(), rate)
    with pytest.raises(ValueError, match="2 gradients for 3 variables"):
        optimizer.update([None, None], tf.constant(1, tf.int64))


def test_two_variables_with_equal_names_are_refused():
    with pytest.raises(ValueError, match="two variables are named dense"):
        AdamW([*fresh(), *fresh()], rate)


CONSTANTS = {"adam_beta_1": 0.0, "adam_beta_2": 0.5, "adam_epsilon": 0.1}


@pytest.mark.parametrize("kind", KINDS)
def test_an_hparam_chooses_the_optimizer(tiny_config, kind):
    config = tiny_config(optimizer=kind, **CONSTANTS)
    optimizer = make_optimizer(config.optimizer_settings, fresh(), rate)
    assert optimizer.kind == kind


def test_hparams_set_the_constants(tiny_config):
    variables = fresh()
    config = tiny_config(adam_bias_correction=True, **CONSTANTS)
    optimizer = make_optimizer(config.optimizer_settings, variables, rate)
    assert optimizer.kind == "original"
    train(optimizer, [[np.full(shape, 0.1, np.float32) for shape in SHAPES]])
    # After the first update both moments are the gradient's own.
    expected = fresh()[1].numpy() - 0.05 * 0.1 / (0.1 + 0.1)
    np.testing.assert_allclose(variables[1], expected, rtol=1e-5)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_over_1000_steps_the_error_is_no_larger_than_the_plain_formulas(seed):
    random = np.random.RandomState(seed)
    weights = random.randn(16, 8).astype(np.float32)
    # From far below the clipping norm to far above it.
    scales = 10.0 ** random.uniform(-4, 1, [1000, 1, 1])
    gradients = (random.randn(1000, 16, 8) * scales).astype(np.float32)
    kernel = tf.Variable(weights, name="kernel")
    optimizer = AdamWeightDecay([kernel], lambda _: tf.constant(1e-3), 0.01)

    @tf.function
    def run():
        for step in tf.range(1000, dtype=tf.int64):
            optimizer.update([tf.gather(gradients, step)], step)

    run()

    def plain_adam(dtype):
        steps, constants = gradients[:, None], (0.9, 0.999, 1e-6)
        plain_weights, _, _ = in_numpy(
            "original",
            dtype,
            [weights],
            steps,
            lambda _: 1e-3,
            0.01,
            *constants,
        )
        return plain_weights[0]

    exact = plain_adam(np.float64)
    plain = np.abs(plain_adam(np.float32) - exact).max()
    assert 0 < np.abs(kernel.numpy() - exact).max() <= 1.05 * plain
