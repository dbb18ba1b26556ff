# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Schedule, layer-wise rates, the three optimizers: by hand, in float64."""

import functools
import math

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from electra_tf.optimization.layer_rates import layer_multipliers, rate_table
from electra_tf.optimization.optimizer import (
    AdamW,
    AdamWeightDecay,
    Lamb,
    WarmupPolynomialDecay,
    make_optimizer,
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
    left = max(1 - completed / total, 1e-7)
    slack = 2e-7 * power * max(1.0, left ** (power - 1)) + 1e-7
    np.testing.assert_allclose(
        float(schedule(tf.constant(completed, tf.int64))),
        reference(peak, total, warmup, power, order, completed),
        rtol=5e-7,
        atol=peak * slack,
    )


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
    found = layer_multipliers(
        list(recorded),
        info["hparams"]["layerwise_lr_decay"],
        info["bert_config"]["num_hidden_layers"],
    )
    assert found == {n: row["multiplier"] for n, row in recorded.items()}


def test_depths_of_the_original_and_corrected_ones():
    # The original's top layer is two levels below the heads.
    found = layer_multipliers(LAYERS, 0.5, 2, fixed=False)
    assert [*found.values()] == [0.0625, 0.0625, 0.125, 0.25, 1.0]
    found = layer_multipliers(LAYERS, 0.5, 2, fixed=True)
    assert [*found.values()] == [0.125, 0.125, 0.25, 0.5, 1.0]


def test_the_table_lists_parts_from_the_bottom():
    rows = rate_table(LAYERS, 0.5, 2)
    parts = ["embeddings", "layer 0", "layer 1", "heads"]
    assert [row.part for row in rows] == parts
    assert [row.num_variables for row in rows] == [2, 1, 1, 1]
    assert {row.multiplier for row in rate_table(LAYERS, -1, 2)} == {1.0}
    assert layer_multipliers(LAYERS, -1, 2) == {}
    with pytest.raises(ValueError, match="generator/encoder/layer_5"):
        layer_multipliers(["generator/encoder/layer_5/x"], 0.5, 2)


KINDS = {"original": AdamWeightDecay, "adamw": AdamW, "lamb": Lamb}
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
    """From far below the clipping norm to far above it."""
    random = np.random.default_rng(1)
    for scale in 10.0 ** random.uniform(-2, 1, steps):
        drawn = [scale * random.normal(size=shape) for shape in SHAPES]
        yield [values.astype(np.float32) for values in drawn]


def clipped(values):
    norm = np.sqrt(sum(np.sum(np.square(v)) for v in values))
    return [v * min(1.0, 1.0 / norm) for v in values]


def train(optimizer, given=None):
    for step, values in enumerate(given or gradients()):
        values = [*map(tf.convert_to_tensor, values)]
        found = optimizer.update(values, tf.constant(step, tf.int64))
    return found


def in_numpy(
    kind, dtype, weights, gradients, rate, decay, beta_1, beta_2, epsilon
):
    """The formulas as they are written; the first weight alone decays."""
    weights = [np.asarray(w, dtype) for w in weights]
    m, v = ([np.zeros_like(w) for w in weights] for _ in "mv")
    for step, values in enumerate(gradients):
        for i, g in enumerate(clipped([g.astype(dtype) for g in values])):
            m[i] = beta_1 * m[i] + (1 - beta_1) * g
            v[i] = beta_2 * v[i] + (1 - beta_2) * g * g
            unbiased = kind != "original"
            first = m[i] / (1 - beta_1 ** (step + 1) * unbiased)
            root = math.sqrt(1 - beta_2 ** (step + 1) * unbiased)
            # AdamW's epsilon is the one before bias correction.
            below = epsilon / root if kind == "adamw" else epsilon
            change = first / (np.sqrt(v[i]) / root + below)
            now, w = float(rate(step)), weights[i]
            if kind == "adamw":
                # Decays first; the step does not see the weight.
                w = w - now * decay * w * (i == 0)
            elif i == 0:
                change = change + decay * w
                if kind == "lamb":
                    change *= np.linalg.norm(w) / np.linalg.norm(change)
            weights[i] = w - now * change
    return weights, m, v


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [("adamw", 1e-4, 3.1e-4), ("corrected", 0.0, 1e-6)],
)
def test_epsilon_makes_adamw_differ_from_the_paper(kind, least, most):
    """Loshchilov and Hutter add it to the corrected second moment's root."""
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
    assert least <= differences.max() <= most
    assert least <= differences.mean() <= most


@pytest.mark.parametrize("kind", [*KINDS, "corrected"])
def test_updates_equal_the_formulas(kind):
    variables, made = fresh(), KINDS.get(kind, CORRECTED)
    optimizer = made(variables, rate, DECAY, **SETTINGS)
    found = train(optimizer)
    given = fresh(), gradients(), rate, DECAY
    weights, m, v = in_numpy(kind, np.float64, *given, **SETTINGS)
    for i, (name, variable) in enumerate(zip(NAMES, variables, strict=True)):
        np.testing.assert_allclose(variable, weights[i], atol=1e-6)
        np.testing.assert_allclose(optimizer.m[name], m[i], atol=1e-6)
        np.testing.assert_allclose(optimizer.v[name], v[i], atol=1e-6)
    assert float(found["learning_rate"]) == float(rate(5))
    last = [*gradients()][-1]
    norm = np.sqrt(sum(np.sum(np.square(g)) for g in last))
    np.testing.assert_allclose(found["grad_norm"], norm, rtol=1e-5)


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
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_norm_that_is_not_finite_changes_no_weight(kind, bad, sparse):
    variables = fresh()
    optimizer = KINDS[kind](variables, rate, DECAY)
    train(optimizer)
    before = [v.numpy() for v in variables]
    slots = optimizer.m, optimizer.v
    moments = [{n: slot[n].numpy() for n in NAMES} for slot in slots]
    broken = [np.full(shape, 0.1, np.float32) for shape in SHAPES]
    broken[0][1] = bad
    if sparse:
        broken[0] = tf.IndexedSlices(broken[0][:2], [3, 1], SHAPES[0])
    assert not np.isfinite(train(optimizer, [broken])["grad_norm"])
    for variable, old in zip(variables, before, strict=True):
        np.testing.assert_array_equal(variable, old)
    for slot, beta, old in zip(slots, (0.9, 0.999), moments, strict=True):
        for name in NAMES:
            np.testing.assert_allclose(slot[name], beta * old[name], rtol=1e-6)
    train(optimizer)
    for variable, old in zip(variables, before, strict=True):
        assert np.isfinite(variable).all() and (variable.numpy() != old).all()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_become_whole_and_what_has_no_gradient_is_left_alone(kind):
    table, dense, unused = (
        tf.Variable(np.ones([4, 2], np.float32), name=name)
        for name in ("table", "dense", "unused")
    )
    optimizer = KINDS[kind]([table, dense, unused], rate, DECAY)
    optimizer.m["unused"].assign(np.full([4, 2], 0.7))
    row = tf.IndexedSlices([[0.25, 0.2], [-0.125, 0.1]], [2, 2], [4, 2])
    merged = np.float32([[0, 0], [0, 0], [0.125, 0.3], [0, 0]])
    found = optimizer.update([row, merged, None], tf.constant(0, tf.int64))
    # Repeated rows count apart in the norm, together in the update.
    norm = np.sqrt(np.square(row.values).sum() + np.square(merged).sum())
    np.testing.assert_allclose(found["grad_norm"], norm, rtol=1e-6)
    m, v = optimizer.m, optimizer.v
    moments = (m, 0.1 * merged, 1e-5), (v, 0.001 * merged**2, 1e-4)
    for slot, wanted, rtol in moments:
        np.testing.assert_array_equal(slot["table"], slot["dense"])
        np.testing.assert_allclose(slot["dense"], wanted, rtol)
    np.testing.assert_array_equal(table, dense)
    assert float(table[0, 0]) < 1.0  # decayed, though absent from the batch
    np.testing.assert_array_equal(unused, np.ones([4, 2]))
    np.testing.assert_allclose(optimizer.m["unused"], np.full([4, 2], 0.7))
    with pytest.raises(ValueError, match="2 gradients for 3 variables"):
        optimizer.update([row, row], tf.constant(1, tf.int64))


def test_hparams_choose_the_optimizer_and_its_constants(tiny_config):
    variables = fresh()
    given = {"adam_beta_1": 0.0, "adam_beta_2": 0.5, "adam_epsilon": 0.1}
    for kind in KINDS:
        config = tiny_config(optimizer=kind, **given)
        assert make_optimizer(config, fresh(), rate).kind == kind
    config = tiny_config(adam_bias_correction=True, **given)
    made = make_optimizer(config, variables, rate)
    assert made.kind == "original"
    train(made, [[np.full(shape, 0.1, np.float32) for shape in SHAPES]])
    # One step from nothing: both moments are the gradient's own.
    expected = fresh()[1].numpy() - 0.05 * 0.1 / (0.1 + 0.1)
    np.testing.assert_allclose(variables[1], expected, rtol=1e-5)
    with pytest.raises(ValueError, match="Two variables are named dense"):
        AdamW([*fresh(), *fresh()], rate)
    with pytest.raises(KeyError, match="later"):
        WarmupPolynomialDecay(1.0, 10, read_order="later")(0)


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
        given = [weights], gradients[:, None], lambda _: 1e-3, 0.01
        return in_numpy("original", dtype, *given, 0.9, 0.999, 1e-6)[0][0]

    exact = plain_adam(np.float64)
    plain = np.abs(plain_adam(np.float32) - exact).max()
    assert 0 < np.abs(kernel.numpy() - exact).max() <= 1.05 * plain
