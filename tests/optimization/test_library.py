# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""AdamW and LAMB of the libraries behind the project's interface."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from official.modeling.optimization.lamb import LAMB

from electra_tf.optimization.optimizer import AdamW, Lamb, make_optimizer

KINDS = {"adamw": AdamW, "lamb": Lamb}
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
    """From far below the clipping norm to far above it."""
    random = np.random.default_rng(1)
    for scale in 10.0 ** random.uniform(-2, 1, steps):
        yield [
            (scale * random.normal(size=shape)).astype(np.float32)
            for shape in SHAPES
        ]


def clipped(values):
    norm = np.sqrt(sum(np.sum(np.square(v, dtype=float)) for v in values))
    return [v * min(1.0, 1.0 / norm) for v in values]


def train(optimizer, given=None):
    for step, values in enumerate(given or gradients()):
        found = optimizer.update(
            [tf.constant(v) for v in values], tf.constant(step, tf.int64)
        )
    return found


def in_numpy(kind):
    """The formulas as they are written, in float64."""
    weights = [v.numpy().astype(float) for v in fresh()]
    m, v = ([np.zeros_like(w) for w in weights] for _ in "mv")
    beta_1, beta_2, epsilon = SETTINGS.values()
    for step, values in enumerate(gradients()):
        for i, g in enumerate(clipped(values)):
            m[i] = beta_1 * m[i] + (1 - beta_1) * g
            v[i] = beta_2 * v[i] + (1 - beta_2) * g * g
            first = m[i] / (1 - beta_1 ** (step + 1))
            root = np.sqrt(1 - beta_2 ** (step + 1))
            # AdamW's epsilon is the one before bias correction.
            below = epsilon / root if kind == "adamw" else epsilon
            change = first / (np.sqrt(v[i]) / root + below)
            now, w = float(rate(step)), weights[i]
            if kind == "adamw":
                # Decays first; the step does not see the weight.
                w = w - now * DECAY * w * (i == 0)
            elif i == 0:
                change = change + DECAY * w
                change *= np.linalg.norm(w) / np.linalg.norm(change)
            weights[i] = w - now * change
    return weights, m, v


@pytest.mark.parametrize("kind", KINDS)
def test_updates_equal_the_formulas(kind):
    variables = fresh()
    optimizer = KINDS[kind](variables, rate, DECAY, **SETTINGS)
    found = train(optimizer)
    weights, m, v = in_numpy(kind)
    for i, (name, variable) in enumerate(zip(NAMES, variables, strict=True)):
        np.testing.assert_allclose(variable, weights[i], atol=1e-6)
        np.testing.assert_allclose(optimizer.m[name], m[i], atol=1e-6)
        np.testing.assert_allclose(optimizer.v[name], v[i], atol=1e-6)
    assert float(found["learning_rate"]) == float(rate(5))
    last = [*gradients()][-1]
    norm = np.sqrt(sum(np.sum(np.square(g)) for g in last))
    np.testing.assert_allclose(found["grad_norm"], norm, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_updates_are_those_of_the_library_used_alone(kind):
    variables, alone = fresh(), fresh()
    train(KINDS[kind](variables, rate, DECAY, **SETTINGS))
    excluded = ["LayerNorm", "bias"]
    if kind == "adamw":
        library = tf_keras.optimizers.AdamW(0.0, DECAY, **SETTINGS)
        library.exclude_from_weight_decay(var_names=excluded)
    else:
        library = LAMB(
            0.0,
            weight_decay_rate=DECAY,
            exclude_from_weight_decay=excluded,
            **SETTINGS,
        )
    for step, values in enumerate(gradients()):
        library.learning_rate = float(rate(step))
        values, _ = tf.clip_by_global_norm(values, 1.0)
        library.apply_gradients(zip(values, alone, strict=True))
    for ours, theirs in zip(variables, alone, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_s_rate_is_a_multiple_of_the_schedule_s(kind):
    variables, others = fresh(), fresh()
    slow = {NAMES[0]: 0.25, NAMES[1]: 1.0, NAMES[2]: 0.25}
    train(KINDS[kind](variables, rate, DECAY, learning_rate_multipliers=slow))
    train(KINDS[kind](others, lambda s: 0.25 * rate(s), DECAY))
    for name, variable, other in zip(NAMES, variables, others, strict=True):
        same = np.allclose(variable, other, rtol=1e-6)
        assert same is (slow[name] == 0.25), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_norm_that_is_not_finite_changes_no_weight(kind, bad):
    variables = fresh()
    optimizer = KINDS[kind](variables, rate, DECAY)
    train(optimizer)
    before = [v.numpy() for v in variables]
    moments = [optimizer.m[n].numpy() for n in NAMES]
    broken = [np.full(shape, bad, np.float32) for shape in SHAPES]
    found = train(optimizer, [broken])
    assert not np.isfinite(found["grad_norm"])
    for name, variable, old, moment in zip(
        NAMES, variables, before, moments, strict=True
    ):
        np.testing.assert_array_equal(variable, old)
        np.testing.assert_allclose(optimizer.m[name], 0.9 * moment, rtol=1e-5)
        assert np.isfinite(optimizer.v[name]).all()
    train(optimizer)
    assert all(np.isfinite(v).all() for v in variables)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_become_whole_and_what_has_no_gradient_is_left_alone(kind):
    table, dense, unused = (
        tf.Variable(np.ones([4, 2], np.float32), name=name)
        for name in ("table", "dense", "unused")
    )
    optimizer = KINDS[kind]([table, dense, unused], rate, DECAY)
    row = tf.IndexedSlices([[0.1, 0.2], [0.1, 0.1]], [2, 2], [4, 2])
    merged = tf.constant([[0, 0], [0, 0], [0.2, 0.3], [0, 0]], tf.float32)
    optimizer.update([row, merged, None], tf.constant(0, tf.int64))
    np.testing.assert_array_equal(optimizer.m["table"], optimizer.m["dense"])
    np.testing.assert_array_equal(table, dense)
    assert float(table[0, 0]) < 1.0  # decayed, though absent from the batch
    np.testing.assert_array_equal(unused, np.ones([4, 2]))
    with pytest.raises(ValueError, match="2 gradients for 3 variables"):
        optimizer.update([row, merged], tf.constant(1, tf.int64))


def test_hparams_choose_the_optimizer_and_its_constants(tiny_config):
    variables = fresh()
    given = {"adam_beta_1": 0.0, "adam_beta_2": 0.5, "adam_epsilon": 0.1}
    for kind in KINDS:
        made = make_optimizer(
            tiny_config(optimizer=kind, **given), fresh(), rate
        )
        assert made.kind == kind
    config = tiny_config(adam_bias_correction=True, **given)
    made = make_optimizer(config, variables, rate)
    assert made.kind == "original"
    gradient = [np.full(shape, 0.1, np.float32) for shape in SHAPES]
    train(made, [gradient])
    # One step from nothing: both moments are the gradient's own.
    expected = fresh()[1].numpy() - 0.05 * 0.1 / (0.1 + 0.1)
    np.testing.assert_allclose(variables[1], expected, rtol=1e-5)
    twins = [*fresh(), *fresh()]
    with pytest.raises(ValueError, match="Two variables are named dense"):
        AdamW(twins, rate)
