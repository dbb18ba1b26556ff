# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Alarms: one class in evaluations, a training loss no better than guessing."""

import numpy as np
import pytest

from electra_tf.pretraining.metrics import (
    CollapseWatch,
    LossWatch,
    predicts_one_class,
)

SHARE = 0.13
GUESSING = -SHARE * np.log(SHARE) - (1 - SHARE) * np.log(1 - SHARE)


def test_collapse_is_reported_after_patience_evaluations_in_a_row():
    one_class = {"disc_predicted_replaced_share": 0.0}
    both = {"disc_predicted_replaced_share": 0.1}
    watch = CollapseWatch(3)
    assert [watch.update(r) for r in (one_class, one_class)] == [1, 2]
    assert watch.message is None
    assert watch.update(one_class) == 3
    assert "3 evaluations in a row" in watch.message
    watch.update(both)
    assert watch.message is None
    continued = CollapseWatch(3, earlier=[both, one_class, one_class])
    continued.update(one_class)
    assert continued.message is not None


def test_a_stray_token_of_the_other_class_does_not_hide_a_collapse():
    for share, expected in ((1e-5, True), (1 - 1e-5, True), (0.01, False)):
        found = predicts_one_class({"disc_predicted_replaced_share": share})
        assert found is expected
    assert not predicts_one_class({})


def rows(relative_losses, every=100):
    """Log rows whose loss is so much of what guessing gives, with noise."""
    random = np.random.default_rng(0)
    for i, relative in enumerate(relative_losses):
        noise = 1 + 0.02 * random.standard_normal()
        yield {
            "step": (i + 1) * every,
            "disc_loss": GUESSING * relative * noise,
            "replaced_share": SHARE,
        }


def alarms(config, series):
    watch = LossWatch(config)
    found = {row["step"]: watch.update(row) for row in series}
    return {step: text for step, text in found.items() if text}


def test_a_loss_no_better_than_guessing_is_reported_once_a_window(tiny_config):
    config = tiny_config(num_warmup_steps=1000)
    found = alarms(config, rows([1.002] * 180))
    assert [*found] == [6000, 11000, 16000]
    assert "over the last 5,000 steps" in found[6000]
    assert f"alone ({GUESSING:.4f})" in found[6000]
    assert "generator_hidden_size" not in found[6000]
    assert [*alarms(tiny_config(collapse_window=500), rows([1.0] * 12))] == [
        *(600, 1100)
    ]


def test_healthy_starts_are_silent_and_a_later_collapse_is_not(tiny_config):
    plateau = [3.0] * 2 + [0.98] * 38
    config = tiny_config(num_warmup_steps=500)
    assert not alarms(config, rows([*plateau, *np.linspace(0.98, 0.7, 100)]))
    assert not alarms(config, rows([0.99] * 200))
    # A high loss in the warm-up is no sign of anything.
    config = tiny_config(num_warmup_steps=2000)
    assert not alarms(config, rows([1.5] * 20 + [0.98] * 100))
    config = tiny_config(num_warmup_steps=0)
    assert [*alarms(config, rows([0.8] * 60 + [1.0] * 100))] == [15000]


def test_a_large_generator_is_named(tiny_config):
    found = alarms(tiny_config(untied_generator=False), rows([1.0] * 60))
    assert "has 1 of its width" in found[5100]
    assert "lower generator_hidden_size" in found[5100]


def test_a_continued_run_goes_on_with_its_window(tiny_config):
    config = tiny_config()
    series = [*rows([1.0] * 60)]
    watch = LossWatch(config, series[:40])
    found = [row["step"] for row in series[40:] if watch.update(row)]
    assert found == [*alarms(config, series)] == [5100]


@pytest.mark.parametrize(
    "hparams",
    [
        {"collapse_window": 0},
        {"electra_objective": False},
        {"electra_objective": False, "electric_objective": True},
    ],
    ids=["switched_off", "no_discriminator", "another_loss"],
)
def test_nothing_else_is_watched(tiny_config, hparams):
    assert not alarms(tiny_config(**hparams), rows([2.0] * 200))
