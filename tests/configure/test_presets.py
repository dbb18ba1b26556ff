# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Presets: the published settings, as new defaults."""

import pytest

from configure import presets
from configure.errors import UserError
from configure.pretraining import PretrainingConfig

# ELECTRA paper, Table 6.
PUBLISHED = {
    "small": ("small", 5e-4, 128, 1000000, 0.25, 128, 128, 0.15),
    "base": ("base", 2e-4, 256, 766000, 0.33333, 768, 512, 0.15),
    "large": ("large", 2e-4, 2048, 400000, 0.25, 1024, 512, 0.25),
}


def test_the_expected_presets_exist():
    assert set(presets.preset_names()) == {
        "small",
        "small_owt",
        "base",
        "large",
        "released_small",
        "released_base",
        "released_large",
        "electric_base",
        "debug",
        "reference",
        "reference_short",
    }


@pytest.mark.parametrize("name", PUBLISHED)
def test_values_are_the_papers(name):
    config = PretrainingConfig.create("m", "d", preset=name)
    assert PUBLISHED[name] == (
        config.model_size,
        config.learning_rate,
        config.train_batch_size,
        config.num_train_steps,
        config.generator_hidden_size,
        config.embedding_size,
        config.max_seq_length,
        config.mask_prob,
    )
    assert config.num_warmup_steps == 10000


@pytest.mark.parametrize("name", presets.preset_names())
def test_every_preset_has_a_header_and_builds(name):
    header = presets.load_preset(name)["header"]
    for key in ("description", "source", "hardware", "expected", "command"):
        assert header[key]
    config = PretrainingConfig.create("m", "d", preset=name)
    config.check_mode()
    if name != "debug":
        assert config.warnings() == []


def test_explicit_values_win_over_a_preset():
    config = PretrainingConfig.create(
        "m", "d", preset="base", learning_rate=1e-4
    )
    assert config.learning_rate == 1e-4
    assert config.train_batch_size == 256


def test_released_small_has_a_full_width_generator():
    config = PretrainingConfig.create("m", "d", preset="released_small")
    assert config.generator_hidden_size == 1.0
    assert config.num_train_steps == 4000000


def test_released_large_differs_from_large_in_steps_only():
    large = presets.load_preset("large")["hparams"]
    released = presets.load_preset("released_large")["hparams"]
    assert released == {**large, "num_train_steps": 1750000}


def test_electric_uses_the_two_tower_generator():
    config = PretrainingConfig.create("m", "d", preset="electric_base")
    assert config.two_tower_generator
    assert not config.electra_objective


def test_unknown_presets_list_those_there_are():
    with pytest.raises(UserError, match="Nearest name: base. Presets: base"):
        PretrainingConfig.create("m", "d", preset="bse")
