# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Easy starts, separate networks, correction: what is refused or warned of."""

import re

import pytest

from configure.pretraining import PretrainingConfig
from tests.conftest import refused


def create(**hparams):
    return PretrainingConfig.create("m", "data", **hparams)


ALONE = {
    "fixed": ({"uniform_generator": True}, "generator 'uniform'"),
    "unigram": ({"generator": "unigram"}, "generator 'unigram'"),
    "tied": ({"untied_generator": False}, "untied_generator false"),
    "masked_lm": ({"objective": "mlm"}, "objective 'mlm'"),
    "two_stage": (
        {"training_schedule": "two_stage"},
        "training_schedule 'two_stage'",
    ),
}
NEEDS_GENERATOR = {
    "unigram_steps": 2500,
    "unigram_floor": 0.2,
    "clip_networks_apart": True,
    "generator_learning_rate": 1e-4,
}


@pytest.mark.parametrize("kind", ALONE)
@pytest.mark.parametrize("name", NEEDS_GENERATOR)
def test_hparams_of_a_generator_need_a_trained_one_of_its_own(name, kind):
    hparams, got = ALONE[kind]
    value = NEEDS_GENERATOR[name]
    shown = "true" if value is True else value
    words = rf"hparam {name}: {shown} needs a generator .* got {got}"
    if (name, kind) == ("generator_learning_rate", "two_stage"):
        assert create(**{name: value}, **hparams).generator_learning_rate
        return
    refused(words, create, **{name: value}, **hparams)


@pytest.mark.parametrize("floor", [-0.1, 1.0, 1.5])
def test_a_floor_outside_0_to_1_is_refused(floor):
    words = f"unigram_floor: must be at least 0 and below 1, got {floor}"
    refused(re.escape(words), create, unigram_floor=floor)


@pytest.mark.parametrize(
    "objective", ["mlm", "electric", "replace_mlm", "all_tokens_mlm"]
)
def test_correction_needs_a_discriminator(objective):
    words = f"correction_weight: 5 needs .* got objective '{objective}'"
    refused(words, create, correction_weight=5, objective=objective)


def test_a_generator_rate_is_a_multiple_of_a_rate_above_0():
    words = "generator_learning_rate: 0.0001 .* got 0; set both above 0"
    refused(words, create, generator_learning_rate=1e-4, learning_rate=0)


@pytest.mark.parametrize(
    ("steps", "warned"), [(0, False), (100, False), (101, True)]
)
def test_unigram_steps_beyond_the_run_are_warned_of(steps, warned):
    config = create(
        unigram_steps=steps, num_train_steps=100, num_warmup_steps=10
    )
    words = f"unigram_steps {steps} is beyond num_train_steps 100"
    assert any(words in text for text in config.warnings()) == warned


def test_by_default_nothing_is_mixed_corrected_or_apart():
    config = create()
    assert not (config.mixes_token_counts or config.corrects)
    assert config.generator_learning_rate is None
    assert not config.clip_networks_apart
    assert create(unigram_floor=0.1).mixes_token_counts
    assert create(keep_best="token_loss", eval_every_n_steps=1, **CORRECTS)
    refused("keep_best", create, keep_best="token_loss", eval_every_n_steps=1)


CORRECTS = {"correction_weight": 1.0}
