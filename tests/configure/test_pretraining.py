# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pre-training configs: defaults, overrides, presets, experiments, errors."""

import dataclasses
import json
import re

import hypothesis
import hypothesis.strategies as st
import pytest

from configure import presets
from configure.experiments import EXPERIMENTS
from configure.pretraining import (
    PretrainingConfig,
    derive_experiments,
    without_derived,
)
from tests.conftest import refused

# ELECTRA paper, Table 6.
PUBLISHED_HPARAMS = (
    "model_size",
    "learning_rate",
    "train_batch_size",
    "num_train_steps",
    "generator_hidden_size",
    "embedding_size",
    "max_seq_length",
    "mask_prob",
)
PUBLISHED = {
    "small": ["small", 5e-4, 128, 1000000, 0.25, 128, 128, 0.15],
    "base": ["base", 2e-4, 256, 766000, 0.33333, 768, 512, 0.15],
    "large": ["large", 2e-4, 2048, 400000, 0.25, 1024, 512, 0.25],
    # The released model differs from the paper's.
    "released_large": ["large", 2e-4, 2048, 1750000, 0.25, 1024, 512, 0.25],
}
MLM = {"electra_objective": False}
STAGES = {"training_schedule": "two_stage"}
ELECTRIC, TOWERS = {"electric_objective": True}, {"two_tower_generator": True}
BEST = {"eval_every_n_steps": 5, "keep_best": "disc_loss"}
DEEP = {"model_hparam_overrides": {"num_hidden_layers": 10**6}}


def create(**hparams):
    return PretrainingConfig.create("NAME", "DATA", **hparams)


def reread(text):
    hparams = PretrainingConfig.explicit_hparams(json.loads(text))
    return PretrainingConfig.create(**hparams)


@pytest.mark.parametrize(
    ("hparams", "message"),
    [
        ({"model_size": "tiny"}, "model_size: must be one of small"),
        ({"mask_prob": 0}, "mask_prob: must be a fraction above 0"),
        ({"max_seq_length": 4}, "must be at least 1, got 0.*max_seq_length 4"),
        ({"max_seq_length": 513}, r"513 exceeds .*\(512\)"),
        ({"keep_every_n_steps": 1500}, r"1500 is not a multiple of .*\(1000\)"),
        ({"allow_missing": "("}, r"allow_missing: '\('"),
        ({**MLM, "uniform_generator": True}, "uniform generator is fixed"),
        ({"lerning_rate": 1}, "lerning_rate. Nearest names: learn.*, .*, "),
        ({"preset": "bse"}, "Unknown preset bse. Nearest names: base"),
        ({"model_hparam_overrides": {"hidden": 1}}, "key hidden.*hidden_size"),
        ({"pretrain_text": "a*", "pretrain_tfrecords": "b"}, "= 'b'.*leave on"),
        ({"keep_best": "loss"}, "set eval_every_n_steps"),
        ({"two_stage_steps": 3}, "two_stage_steps: 3 .* got joint"),
        (STAGES | {"two_stage_steps": 10**6}, "without steps"),
        (STAGES | MLM, 'electra_15", got "mlm"'),
        (MLM | BEST, "'disc_loss'; .*loss, "),
        (
            MLM | {"generator": "unigram"},
            "a unigram generator .*remove generator",
        ),
        ({"vocab_size": 10**10}, "hparam vocab_size:.*most"),
        ({"model_dir": "runs/a[1]"}, "model_dir: 'runs/a.1.' contains"),
        (DEEP, "num_hidden_layers: must be at most"),
        # The original crashes with both of these.
        (TOWERS | {"untied_generator": False}, "the two-tower gen.* cannot"),
        (
            ELECTRIC | {"two_tower_generator": False},
            "requires the two-tower gen",
        ),
        ({"objective": "electric", "generator": "sized"}, "contradicts .*true"),
    ],
)
def test_impossible_values_are_refused(hparams, message):
    refused(message, create, **hparams)


@pytest.mark.parametrize(
    ("hparams", "derived"),
    [
        ({"debug": True, "train_batch_size": 64}, {"num_train_steps": 20}),
        ({}, {"max_predictions_per_seq": 19}),
        ({"max_seq_length": 64}, {"max_predictions_per_seq": 9}),
        (ELECTRIC, TOWERS),
        (
            {"pretrain_tfrecords": "a/t*,b/t*,a/u*"},
            {"eval_tfrecords": "a/eval_data.tfrecord*,b/eval_data.tfrecord*"},
        ),
        (
            {"training_schedule": "two_stage", "num_train_steps": 9},
            {
                "two_stage_steps": 4,
                "generator_hidden_size": 1.0,
                "embedding_size": None,
                "embedding_sharing": "none",
            },
        ),
        (
            {"preset": "released_small", "learning_rate": 1e-4},
            {"generator_hidden_size": 1.0, "num_train_steps": 4000000},
        ),
    ],
)
def test_values_are_derived_unless_they_are_explicit(hparams, derived):
    assert create(**hparams).as_dict().items() >= (hparams | derived).items()


def test_a_config_does_not_change_with_the_dictionaries_it_was_made_from():
    overrides = {"hidden_size": "64"}
    config = create(model_hparam_overrides=overrides)
    overrides["hidden_size"] = 3
    assert config.model_hparam_overrides == {"hidden_size": 64}


def test_a_config_is_frozen_and_replaced_values_are_checked():
    config = create()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 3
    refused("mask_prob: must be", dataclasses.replace, config, mask_prob=2.0)


def test_configs_of_equal_values_are_equal_whatever_their_origins():
    assert create(seed=0) == create()


def test_a_written_config_keeps_explicit_values_and_edits():
    written = json.loads(create(seed=3, overwrite=True).to_json())
    explicit = PretrainingConfig.explicit_hparams(written)
    assert explicit == {"model_name": "NAME", "data_dir": "DATA", "seed": 3}
    written |= {"max_predictions_per_seq": 25, "learning_rate": 1e-3}
    edited = reread(json.dumps(written))
    assert (edited.max_predictions_per_seq, edited.learning_rate) == (25, 1e-3)


@pytest.mark.parametrize("name", PUBLISHED)
def test_presets_have_the_published_values(name):
    config = create(preset=name)
    values = [getattr(config, hparam) for hparam in PUBLISHED_HPARAMS]
    assert values == PUBLISHED[name]
    assert config.num_warmup_steps == 10000


@pytest.mark.parametrize("name", presets.preset_names())
def test_every_preset_has_a_complete_header(name):
    header = presets.load_preset(name)["header"]
    keys = ("description", "source", "hardware", "expected", "command")
    assert all(header[key] for key in keys)


@pytest.mark.parametrize("name", presets.preset_names())
def test_every_preset_makes_a_config_without_warnings(name):
    config = create(preset=name)
    config.check_mode()
    if name != "debug":
        assert config.warnings() == []


@hypothesis.given(
    hparams=st.fixed_dictionaries(
        {},
        optional={
            "debug": st.booleans(),
            "model_size": st.sampled_from(["small", "base", "large"]),
            "preset": st.sampled_from([None, *presets.preset_names()]),
            "seed": st.integers(0, 2**31 - 1),
            "mask_prob": st.floats(0.1, 0.9),
            "max_seq_length": st.integers(16, 32),
            "max_predictions_per_seq": st.integers(1, 16),
            "train_batch_size": st.integers(1, 4096),
            "embedding_size": st.none() | st.integers(1, 1024),
            "model_dir": st.text("abc/", min_size=1),
        },
    )
)
def test_any_config_survives_being_written_and_read(hparams):
    config = create(**hparams)
    assert config.results_txt == "DATA/models/NAME/results/unsup_results.txt"
    assert reread(config.to_json()) == config
    assert config.as_dict().items() >= hparams.items()


@pytest.mark.parametrize(
    ("hparams", "message"),
    [
        ({"model_size": "base"}, "small model: .*0.0005.* --preset=base "),
        ({"num_train_steps": 5000}, "num_warmup_steps 10000.*num_train.* 5000"),
        ({"model_hparam_overrides": {"vocab_size": 10}}, "overridden by 10"),
        (
            {"untied_generator": False, "generator_layers": 0.5},
            "ignored, because",
        ),
    ],
)
def test_doubtful_settings_are_warned_of(hparams, message):
    (warning,) = create(**hparams).warnings()
    assert re.search(message, warning)


@pytest.mark.parametrize(
    ("switches", "experiments"),
    [
        ({}, "electra sized embeddings joint"),
        ({"electra_objective": False}, "mlm sized embeddings joint"),
        ({"electric_objective": True}, "electric two_tower embeddings joint"),
        ({"uniform_generator": True}, "electra uniform embeddings joint"),
        ({"untied_generator_embeddings": True}, "electra sized none joint"),
    ],
)
def test_experiments_follow_from_the_originals_switches(switches, experiments):
    config = create(**switches)
    values = [getattr(config, name) for name in EXPERIMENTS]
    assert values == experiments.split()


@pytest.mark.parametrize(
    ("name", "value", "switches"),
    [
        (name, value, switches)
        for name, choices in EXPERIMENTS.items()
        for value, switches in choices.items()
    ],
)
def test_each_experiment_sets_the_originals_switches(name, value, switches):
    hparams = {name: value}
    assert create(**hparams).as_dict().items() >= (hparams | switches).items()


def test_experiments_that_switches_imply_are_left_out():
    implied = {"electra_objective": False, "objective": "mlm"}
    assert without_derived(implied | {"generator": None}) == MLM
    assert not EXPERIMENTS.keys() & without_derived(create().as_dict()).keys()


def test_experiments_that_no_switch_implies_are_kept():
    explicit = {"objective": "electra_15", "generator": "unigram"}
    hparams = without_derived(create(**explicit).as_dict())
    assert hparams.items() >= explicit.items()


def test_experiments_of_an_older_run_follow_from_its_switches():
    run = create(electric_objective=True).as_dict()
    older = {n: v for n, v in run.items() if n not in EXPERIMENTS}
    assert derive_experiments(older) == {n: run[n] for n in EXPERIMENTS}


@pytest.mark.parametrize("origin", [[], {}, ["default"], 5, None, True])
def test_an_origin_of_a_wrong_type_counts_as_explicit(origin):
    written = json.loads(PretrainingConfig.create("m", "d").to_json())
    written["_origins"]["learning_rate"] = origin
    explicit = PretrainingConfig.explicit_hparams(written)
    assert explicit["learning_rate"] == written["learning_rate"]


@pytest.mark.parametrize("origins", [[], "default", 5])
def test_origins_that_are_no_object_inherit_nothing(origins):
    run = json.loads(create(seed=7).to_json()) | {"_origins": origins}
    assert create().with_run_settings(run) == create()


@pytest.mark.parametrize("origins", [{"seed": [1]}, {}])
def test_an_origin_that_is_no_text_is_inherited(origins):
    run = json.loads(create(seed=7).to_json()) | {"_origins": origins}
    assert create().with_run_settings(run).seed == 7
