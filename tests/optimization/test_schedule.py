# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The learning rate of every update, against float64."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from electra_tf.optimization.optimizer import WarmupPolynomialDecay


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


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("after_increment", [0.45, 0.8, 0.7, 0.6, 0.5]),
        ("before_increment", [0.0, 0.45, 0.8, 0.7, 0.6]),
    ],
)
def test_the_warm_up_does_not_shift_the_decay(order, expected):
    schedule = WarmupPolynomialDecay(1.0, 10, 2, 1.0, order)
    actual = [rate(schedule, completed) for completed in range(5)]
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_a_fractional_warm_up_is_not_rounded():
    schedule = WarmupPolynomialDecay(1.0, 1000, 2.5)
    actual = [rate(schedule, completed) for completed in range(3)]
    expected = [0.999 / 2.5, 0.998 * 2 / 2.5, 0.997]
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("order", "first"), [("after_increment", 0.9), ("before_increment", 1.0)]
)
def test_no_warm_up_is_no_warm_up(order, first):
    schedule = WarmupPolynomialDecay(1.0, 10, 0, read_order=order)
    np.testing.assert_allclose(rate(schedule, 0), first, rtol=1e-6)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("order", ["after_increment", "before_increment"])
def test_the_rate_is_zero_from_the_last_step_on(power, order):
    schedule = WarmupPolynomialDecay(1.0, 10, 2, power, order)
    last = 9 if order == "after_increment" else 10
    assert rate(schedule, last - 1) > 0
    for completed in (last, last + 1, 1000, 2**40):
        assert rate(schedule, completed) == 0


def test_the_rate_is_the_same_when_traced():
    schedule = WarmupPolynomialDecay(1e-3, 100, 10)
    traced = tf.function(
        schedule, input_signature=[tf.TensorSpec([], tf.int64)]
    )
    for completed in (0, 5, 50):
        step = tf.constant(completed, tf.int64)
        np.testing.assert_allclose(traced(step), schedule(step), rtol=1e-7)


def test_another_order_is_refused():
    with pytest.raises(ValueError, match="'later'.*after_increment, before"):
        WarmupPolynomialDecay(1.0, 10, read_order="later")
