# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hparams of easy starts, separate networks and correction: their limits."""

import json
import re

import pytest

from configure.pretraining import PretrainingConfig
from tests.conftest import refused


def create(**hparams):
    return PretrainingConfig.create("m", "data", **hparams)


OBSTACLES = {
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


@pytest.mark.parametrize("kind", OBSTACLES)
@pytest.mark.parametrize("name", NEEDS_GENERATOR)
def test_hparams_of_a_separate_generator_need_a_separate_generator(name, kind):
    hparams, actual = OBSTACLES[kind]
    value = NEEDS_GENERATOR[name]
    hparams = {name: value, **hparams}
    if (name, kind) == ("generator_learning_rate", "two_stage"):
        assert create(**hparams).generator_learning_rate == value
        return
    message = (
        f"hparam {name}: {json.dumps(value)} requires a sep.* got {actual}"
    )
    refused(message, create, **hparams)


@pytest.mark.parametrize("floor", [-0.1, 1.0, 1.5])
def test_a_floor_outside_0_to_1_is_refused(floor):
    message = f"unigram_floor: must be at least 0 and below 1, got {floor}"
    refused(re.escape(message), create, unigram_floor=floor)


@pytest.mark.parametrize(
    "objective", ["mlm", "electric", "replace_mlm", "all_tokens_mlm"]
)
def test_correction_needs_a_discriminator(objective):
    message = f"correction_weight: 5 requires .* got objective '{objective}'"
    refused(message, create, correction_weight=5, objective=objective)


@pytest.mark.parametrize(
    "hparams", [{"unigram_steps": 2500}, {"unigram_floor": 0.2}]
)
def test_the_noise_of_electric_is_the_generator_alone(hparams):
    ((name, value),) = hparams.items()
    message = f"{name}: {value} mixes .* 'electric' .*leave {name} out"
    refused(message, create, objective="electric", **hparams)


@pytest.mark.parametrize(
    ("hparams", "names"),
    [
        ({"objective": "replace_mlm"}, ["correction_weight"]),
        ({"objective": "mlm"}, ["unigram_steps", "correction_weight"]),
        ({"objective": "electric"}, ["unigram_steps", "correction_weight"]),
        ({"generator": "uniform"}, ["unigram_steps"]),
        ({"untied_generator": False}, ["unigram_steps"]),
    ],
)
def test_the_remedy_for_a_value_of_a_preset_works(hparams, names):
    hparams = {"preset": "small_machine", **hparams}
    for name in names:
        message = f"hparam {name}: .*set {name} to 0.* in place of the preset"
        refused(message, create, **hparams)
        hparams[name] = 0
    create(**hparams)


def test_a_generator_rate_is_a_multiple_of_a_rate_above_0():
    message = "generator_learning_rate: 0.0001 .* is 0; set both above 0"
    refused(message, create, generator_learning_rate=1e-4, learning_rate=0)


@pytest.mark.parametrize(
    ("steps", "is_warned"), [(0, False), (100, False), (101, True)]
)
def test_unigram_steps_beyond_the_run_are_warned_of(steps, is_warned):
    config = create(
        unigram_steps=steps, num_train_steps=100, num_warmup_steps=10
    )
    message = f"unigram_steps {steps} exceeds num_train_steps 100"
    assert any(message in text for text in config.warnings()) == is_warned


def test_by_default_the_networks_train_as_in_the_original():
    config = create()
    assert not (config.mixes_token_counts or config.corrects)
    assert config.generator_learning_rate is None
    assert not config.clip_networks_apart


def test_a_floor_alone_mixes_token_counts():
    assert create(unigram_floor=0.1).mixes_token_counts


def test_metrics_of_the_correction_need_it():
    hparams = {"keep_best": "token_loss", "eval_every_n_steps": 1}
    assert create(correction_weight=1.0, **hparams).keep_best == "token_loss"
    refused("keep_best", create, **hparams)
