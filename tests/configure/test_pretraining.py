# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""PretrainingConfig: names, defaults, order of overrides, presets."""

import dataclasses
import json
import pathlib

import hypothesis
import hypothesis.strategies as st
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
SMALL_WARNING = "the small model's settings"


def create(**hparams):
    return PretrainingConfig.create("NAME", "DATA", **hparams)


@pytest.fixture(scope="module")
def cases():
    """What the original made of ten sets of hparams."""
    path = pathlib.Path(__file__).parents[1] / "fixtures"
    path /= "pretraining_configs.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_recorded_configs_are_the_reference_ones(cases, golden_dir):
    path = golden_dir / "configs.json"
    golden = json.loads(path.read_text(encoding="utf-8"))["pretraining"]
    wanted = [{k: case[k] for k in ("kwargs", "config")} for case in golden]
    assert cases == wanted


def test_every_recorded_config_of_the_original_is_reproduced(cases):
    assert len(cases) >= 10
    for case in cases:
        config = create(**case["kwargs"]).as_dict()
        for name, expected in case["config"].items():
            assert config[name] == expected, (case["kwargs"], name)
            assert type(config[name]) is type(expected), (name, expected)


def test_names_and_defaults_are_the_originals(cases):
    plain = next(c["config"] for c in cases if not c["kwargs"])
    extensions = set(create().as_dict()) - set(plain)
    assert extensions == {
        "data_dir",
        "preset",
        "seed",
        "strip_accents",
        "mask_without_replacement",
        "whole_word_mask",
        "mask_replace_prob",
        "lr_read_order",
        "adam_bias_correction",
        "eval_every_n_steps",
        "eval_tfrecords",
        "log_every_n_steps",
        "shuffle_buffer_size",
        "deterministic_input",
        "distribution_strategy",
        "require_gpu",
        "overwrite",
        "collapse_patience",
        "results_json",
        "init_checkpoint",
        "allow_missing",
        "keep_every_n_steps",
        "keep_best",
        "export_at_end",
        "gradient_accumulation_steps",
        "jit_compile",
        "mixed_precision",
        "recompute_grad",
        "threads",
    }


def test_keep_best_needs_a_metric_that_evaluations_have():
    config = create(keep_best="disc_auc_real_tokens", eval_every_n_steps=5)
    assert config.keep_best == "disc_auc_real_tokens"
    with pytest.raises(UserError, match="one of loss, .*got 'disc_au'"):
        create(keep_best="disc_au", eval_every_n_steps=5)
    with pytest.raises(UserError, match="set eval_every_n_steps"):
        create(keep_best="loss")
    with pytest.raises(UserError, match="got 'disc_loss'"):
        create(
            keep_best="disc_loss", eval_every_n_steps=5, electra_objective=False
        )


def test_the_config_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        create().seed = 3


def test_debug_settings_give_way_to_explicit_ones():
    config = create(debug=True, train_batch_size=64)
    assert (config.train_batch_size, config.num_train_steps) == (64, 20)
    assert (config.eval_batch_size, config.num_eval_steps) == (4, 2)


def test_max_predictions_follow_mask_prob_and_length_unless_given():
    assert create().max_predictions_per_seq == 19
    config = create(mask_prob=0.2, max_seq_length=64)
    assert config.max_predictions_per_seq == 13
    assert create(max_predictions_per_seq=7).max_predictions_per_seq == 7
    assert create(max_predictions_per_seq=None).max_predictions_per_seq == 19


def test_results_stay_with_the_default_model_dir():
    config = create(model_dir="elsewhere")
    assert config.model_dir == "elsewhere"
    assert config.results_txt == "DATA/models/NAME/results/unsup_results.txt"
    assert config.results_json == "DATA/models/NAME/results/unsup_results.json"


def test_unknown_names_raise_with_the_nearest():
    with pytest.raises(UserError, match="Unknown hparam lerning_rate") as e:
        create(lerning_rate=1)
    assert "learning_rate" in str(e.value)
    assert isinstance(e.value, ValueError)


def test_overrides_are_copied_and_checked():
    overrides = {"hidden_size": "64"}
    config = create(model_hparam_overrides=overrides)
    overrides["hidden_size"] = 3
    assert config.model_hparam_overrides == {"hidden_size": 64}
    assert create().model_hparam_overrides == {}
    with pytest.raises(UserError, match="key hidden.*hidden_size"):
        create(model_hparam_overrides={"hidden": 1})
    with pytest.raises(UserError, match="model_hparam_overrides.hidden_size"):
        create(model_hparam_overrides={"hidden_size": "big"})
    with pytest.raises(UserError, match="at least 1"):
        create(model_hparam_overrides={"num_hidden_layers": 0})


def test_given_vocab_file_needs_no_real_data_dir(tmp_path):
    missing = tmp_path / "nowhere"
    config = PretrainingConfig.create("m", missing, vocab_file="v.txt")
    assert config.vocab_file == "v.txt"
    assert config.data_dir == str(missing)
    assert not missing.exists()


@pytest.mark.parametrize(
    ("hparams", "expected"),
    [
        ({"model_size": "tiny"}, "model_size: must be one of small"),
        ({"mask_prob": 0}, "mask_prob: must be a fraction above 0"),
        ({"mask_prob": 15}, "mask_prob: .* got 15"),
        ({"train_batch_size": 0}, "train_batch_size: must be at least 1"),
        ({"num_warmup_steps": -1}, "num_warmup_steps: must be at least 0"),
        ({"temperature": 0}, "temperature: must be above 0"),
        ({"seed": 2**31}, "seed: must be below"),
        ({"max_seq_length": 4}, "no token is ever masked"),
        ({"max_predictions_per_seq": 0}, "no token is ever masked"),
        ({"max_seq_length": 513}, "513 is longer .* = 512"),
        ({"distribution_strategy": "gpu"}, "must be one of auto"),
        ({"mask_replace_prob": 1.1}, "must be a fraction from 0 to 1"),
        ({"keep_every_n_steps": 1500}, r"multiple of .*\(1000\), got 1500"),
        ({"allow_missing": "("}, r"allow_missing: '\('"),
        (
            {"uniform_generator": True, "electra_objective": False},
            "uniform_generator.*nothing to train",
        ),
        (
            {
                "max_seq_length": 64,
                "model_hparam_overrides": {"max_position_embeddings": 32},
            },
            "64 is longer .* = 32",
        ),
    ],
)
def test_impossible_values_are_refused(hparams, expected):
    with pytest.raises(UserError, match=expected):
        create(**hparams)


@pytest.mark.parametrize(
    "hparams",
    [
        {"two_tower_generator": True, "untied_generator": False},
        {"two_tower_generator": True, "uniform_generator": True},
        {"two_tower_generator": True, "electra_objective": False},
        {"electric_objective": True, "untied_generator": False},
        {"electric_objective": True, "two_tower_generator": False},
        {"electric_objective": True, "uniform_generator": True},
    ],
)
def test_two_tower_combinations_that_crash_the_original_are_refused(hparams):
    with pytest.raises(UserError, match="two-tower generator|two_tower"):
        create(**hparams)


def test_exactly_one_of_training_and_evaluation():
    expected = "Exactly one of `do_train` or `do_eval` must be True."
    for both in (True, False):
        with pytest.raises(UserError, match=expected):
            create(do_train=both, do_eval=both).check_mode()
    create().check_mode()
    create(do_train=False, do_eval=True).check_mode()


def test_origins_say_where_each_value_came_from():
    config = PretrainingConfig.from_layers(
        "m",
        "d",
        [
            ("file", {"preset": "base", "seed": 3, "mask_prob": 0.2}),
            ("flag", {"seed": 4}),
        ],
    )
    assert config.seed == 4
    assert config.origins["seed"] == "flag"
    assert config.origins["mask_prob"] == "file"
    assert config.origins["learning_rate"] == "preset"
    assert config.origins["max_predictions_per_seq"] == "derived"
    assert config.origins["model_dir"] == "derived"
    assert config.origins["gen_weight"] == "default"
    assert config.max_predictions_per_seq == int(0.205 * 512)
    assert set(config.origins) == set(config.as_dict())


def test_a_written_config_reads_back_equal():
    config = create(preset="base", seed="3", model_dir="x", debug=True)
    assert PretrainingConfig.from_json(config.to_json()) == config
    assert create(seed=0) == create()  # whoever asked for it


def test_a_written_config_serves_another_name_and_length(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(create(seed=3).to_json(), encoding="utf-8")
    given = PretrainingConfig.explicit_hparams(json.loads(path.read_text()))
    assert given == {"model_name": "NAME", "data_dir": "DATA", "seed": 3}
    del given["model_name"], given["data_dir"]
    other = PretrainingConfig.create("other", "D", **given, max_seq_length=64)
    assert other.model_dir == "D/models/other"
    assert other.max_predictions_per_seq == 9


def test_an_edited_written_config_keeps_the_edit():
    written = json.loads(create().to_json())
    written["max_predictions_per_seq"] = 25
    written["learning_rate"] = 1e-3
    config = PretrainingConfig.from_json(json.dumps(written))
    assert config.max_predictions_per_seq == 25
    assert config.learning_rate == 1e-3


def test_large_sizes_with_smalls_settings_name_the_preset():
    (warning,) = create(model_size="base").warnings()
    assert SMALL_WARNING in warning
    assert "learning_rate 0.0005" in warning
    assert "--preset=base" in warning
    (warning,) = create(model_size="large").warnings()
    assert "mask_prob 0.15" in warning
    assert "--preset=large" in warning


def test_settings_asked_for_are_not_nagged_about():
    config = create(
        model_size="base",
        learning_rate=2e-4,
        max_seq_length=128,
        train_batch_size=128,
        generator_hidden_size=0.25,
    )
    assert config.warnings() == []


def test_more_warmup_than_steps_warns():
    (warning,) = create(num_train_steps=5000).warnings()
    assert "num_warmup_steps 10000" in warning
    assert "num_train_steps 5000" in warning
    assert create(num_train_steps=5000, num_warmup_steps=0).warnings() == []
    assert len(create(debug=True).warnings()) == 1


def test_settings_without_effect_warn():
    overrides = {"vocab_size": 10, "hidden_size": 32}
    config = create(model_hparam_overrides=overrides, vocab_size=20)
    assert any("gives way to 10" in text for text in config.warnings())
    config = create(untied_generator=False, generator_layers=0.5)
    assert any("no effect" in text for text in config.warnings())


def test_replace_checks_again():
    config = create()
    with pytest.raises(UserError):
        dataclasses.replace(config, mask_prob=2.0)


@pytest.mark.parametrize("name", PUBLISHED)
def test_values_are_the_papers(name):
    config = create(preset=name)
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
    config = create(preset=name)
    config.check_mode()
    if name != "debug":
        assert config.warnings() == []


def test_released_models_differ_from_the_papers():
    large = presets.load_preset("large")["hparams"]
    released = presets.load_preset("released_large")["hparams"]
    assert released == {**large, "num_train_steps": 1750000}
    released = create(preset="released_small", learning_rate=1e-4)
    assert released.generator_hidden_size == 1.0
    assert released.num_train_steps == 4000000
    assert released.learning_rate == 1e-4  # Explicit values win.


def test_electric_uses_the_two_tower_generator():
    assert create(electric_objective=True).two_tower_generator
    config = create(preset="electric_base")
    assert config.two_tower_generator
    assert not config.electra_objective


def test_unknown_presets_list_those_there_are():
    with pytest.raises(UserError, match="Nearest name: base. Presets: base"):
        create(preset="bse")


@hypothesis.given(
    hparams=st.fixed_dictionaries(
        {},
        optional={
            "debug": st.booleans(),
            "model_size": st.sampled_from(["small", "base", "large"]),
            "preset": st.sampled_from([None, *presets.preset_names()]),
            "seed": st.integers(0, 2**31 - 1),
            "mask_prob": st.floats(0.1, 0.9),
            "max_seq_length": st.integers(16, 512),
            "max_predictions_per_seq": st.integers(1, 16),
            "train_batch_size": st.integers(1, 4096),
            "embedding_size": st.none() | st.integers(1, 1024),
            "model_dir": st.text("abc/", min_size=1),
        },
    )
)
def test_any_config_survives_being_written_and_read(hparams):
    config = create(**hparams)
    again = PretrainingConfig.from_json(config.to_json())
    assert again == config
    for name, value in hparams.items():
        assert getattr(config, name) == value
