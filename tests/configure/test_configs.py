# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Both configs: names, defaults, order of overrides, presets; recorded ones."""

import dataclasses
import json
import re

import hypothesis
import hypothesis.strategies as st
import pytest

from configure import flags, presets
from configure.finetuning import FinetuningConfig
from configure.pretraining import (
    EXPERIMENTS,
    PretrainingConfig,
    beyond_switches,
    settled_experiments,
)
from tests.conftest import FIXTURES, read_json, refused

# ELECTRA paper, Table 6.
PUBLISHED_OF = """
model_size learning_rate train_batch_size num_train_steps generator_hidden_size
embedding_size max_seq_length mask_prob
""".split()
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
    ("hparams", "expected"),
    [
        ({"model_size": "tiny"}, "model_size: must be one of small"),
        ({"mask_prob": 0}, "mask_prob: must be a fraction above 0"),
        ({"max_seq_length": 4}, "no token is ever masked"),
        ({"max_seq_length": 513}, "513 is longer .* = 512"),
        ({"keep_every_n_steps": 1500}, r"multiple of .*\(1000\), got 1500"),
        ({"allow_missing": "("}, r"allow_missing: '\('"),
        ({**MLM, "uniform_generator": True}, "uniform_gen.*nothing to train"),
        ({"lerning_rate": 1}, "lerning_rate. Nearest names: learn.*, .*, "),
        ({"preset": "bse"}, "Unknown preset bse. Nearest names: base"),
        ({"model_hparam_overrides": {"hidden": 1}}, "key hidden.*hidden_size"),
        ({"pretrain_text": "a*", "pretrain_tfrecords": "b"}, "= 'b'.*leave on"),
        ({"keep_best": "loss"}, "set eval_every_n_steps"),
        ({"two_stage_steps": 3}, "two_stage_steps: 3 .* got joint"),
        (STAGES | {"two_stage_steps": 10**6}, "without steps"),
        (STAGES | MLM, 'electra_15", got "mlm"'),
        (MLM | BEST, "loss, .*'disc_loss'"),
        (MLM | {"generator": "unigram"}, "'unigram' needs electra_objective"),
        ({"vocab_size": 10**10}, "hparam vocab_size:.*most"),
        ({"model_dir": "runs/a[1]"}, "model_dir: 'runs/a.1.' has"),
        (DEEP, "num_hidden_layers: must be at most"),
        # The original crashes with both of these.
        (TOWERS | {"untied_generator": False}, "the two-tower gen.* cannot"),
        (ELECTRIC | {"two_tower_generator": False}, "needs the two-tower gen"),
        ({"objective": "electric", "generator": "sized"}, "contradicts .*true"),
    ],
)
def test_impossible_values_are_refused(hparams, expected):
    refused(expected, create, **hparams)


@pytest.mark.parametrize(
    ("hparams", "expected"),
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
            {"two_stage_steps": 4, "generator_hidden_size": 1.0}
            | {"embedding_size": None, "embedding_sharing": "none"},
        ),
        (
            {"preset": "released_small", "learning_rate": 1e-4},
            {"generator_hidden_size": 1.0, "num_train_steps": 4000000},
        ),
    ],
)
def test_values_follow_from_others_unless_given(hparams, expected):
    assert create(**hparams).as_dict().items() >= (hparams | expected).items()


def test_a_config_is_frozen_and_a_written_one_keeps_edits():
    overrides = {"hidden_size": "64"}
    config = create(model_hparam_overrides=overrides)
    overrides["hidden_size"] = 3
    assert config.model_hparam_overrides == {"hidden_size": 64}
    config = create()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 3
    refused("mask_prob: must be", dataclasses.replace, config, mask_prob=2.0)
    assert create(seed=0) == config  # whoever asked for it
    written = json.loads(create(seed=3, overwrite=True).to_json())
    given = PretrainingConfig.explicit_hparams(written)
    assert given == {"model_name": "NAME", "data_dir": "DATA", "seed": 3}
    written |= {"max_predictions_per_seq": 25, "learning_rate": 1e-3}
    edited = reread(json.dumps(written))
    assert (edited.max_predictions_per_seq, edited.learning_rate) == (25, 1e-3)


@pytest.mark.parametrize("name", PUBLISHED)
def test_values_are_the_papers(name):
    config = create(preset=name)
    assert [getattr(config, of) for of in PUBLISHED_OF] == PUBLISHED[name]
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
    for name, value in hparams.items():
        assert getattr(config, name) == value


@pytest.mark.parametrize(
    ("hparams", "words"),
    [
        ({"model_size": "base"}, "small model's .* 0.0005.*preset=base"),
        ({"num_train_steps": 5000}, "num_warmup_steps 10000.*num_train.* 5000"),
        ({"model_hparam_overrides": {"vocab_size": 10}}, "gives way to 10"),
        ({"untied_generator": False, "generator_layers": 0.5}, "no effect"),
    ],
)
def test_doubtful_settings_are_warned_of(hparams, words):
    (warning,) = create(**hparams).warnings()
    assert re.search(words, warning)


@pytest.mark.parametrize(
    "given, wanted",
    [
        ("", "electra sized embeddings joint"),
        ("no electra_objective", "mlm sized embeddings joint"),
        ("electric_objective", "electric two_tower embeddings joint"),
        ("uniform_generator", "electra uniform embeddings joint"),
        ("untied_generator_embeddings", "electra sized none joint"),
    ],
)
def test_experiments_follow_from_the_originals_switches(given, wanted):
    switch = {given.removeprefix("no "): given[:3] != "no "} if given else {}
    config = create(**switch)
    assert [getattr(config, name) for name in EXPERIMENTS] == wanted.split()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_experiment_sets_the_originals_switches(name):
    for value, switches in EXPERIMENTS[name].items():
        config = create(**{name: value})
        assert getattr(config, name) == value
        for switch, wanted in switches.items():
            assert getattr(config, switch) == wanted, (value, switch)


def test_only_what_no_switch_tells_is_kept_beside_the_switches():
    told = {"electra_objective": False, "objective": "mlm", "generator": None}
    assert beyond_switches(told) == {"electra_objective": False}
    kept = {"objective": "electra_15", "generator": "unigram"}
    assert beyond_switches(create(**kept).as_dict()).items() >= kept.items()
    assert not EXPERIMENTS.keys() & beyond_switches(create().as_dict()).keys()
    run = create(electric_objective=True).as_dict()
    older = {n: v for n, v in run.items() if n not in EXPERIMENTS}
    assert settled_experiments(older) == {n: run[n] for n in EXPERIMENTS}


def create_finetuning(**hparams):
    return FinetuningConfig.create("NAME", "DATA", **hparams)


@pytest.mark.parametrize(
    ("hparams", "words"),
    [
        ({"task_names": []}, "at least one task"),
        ({"task_names": ["../x"]}, "no task name"),
        ({"task_name": ["rte"]}, "task_names"),
        ({"early_stopping_patience": 2}, "eval_every_n_steps"),
        ({"gradient_accumulation_steps": 3}, "does not divide"),
        ({"mixed_precision": "fp8"}, "bf16, fp16 or empty"),
        ({"wnli_majority": True}, r"wnli is not among task_names \(chunk\)"),
        ({"adam_beta_1": 1.0}, "adam_beta_1: must be at least 0 and below 1"),
    ],
)
def test_what_cannot_work_is_refused_with_a_remedy(hparams, words):
    refused(words, create_finetuning, **hparams)


def test_a_run_s_name_keeps_its_files_apart():
    plain = create_finetuning(task_names="sst")
    named = create_finetuning(task_names="sst", run_name="long")
    for name in ("model_dir", "results_txt", "results_pkl", "results_json"):
        before, now = getattr(plain, name), getattr(named, name)
        assert now == before.replace("/sst_", "/sst_long_") != before
    assert named.qa_file("sst", "preds").endswith("/sst_long_qa/sst_preds.json")
    predictions = named.test_predictions("sst", "test", 1)
    assert predictions.endswith("/sst_long_test_1_predictions.pkl")
    # The records are the same.
    assert named.preprocessed_data_dir == plain.preprocessed_data_dir


def test_doubtful_settings_of_fine_tuning_are_warned_of():
    assert "512" in create_finetuning(task_names="naturalqs").warnings()[0]
    assert "init_checkpoint" in create_finetuning(debug=True).warnings()[0]
    assert "no effect" in create_finetuning(predict_batch_size=8).warnings()[0]
    assert create_finetuning().warnings() == []
    idle = create_finetuning(do_train=False, do_eval=False)
    refused("Nothing to do", idle.check_mode)


def parse(*words):
    names = ["run_finetuning.py", "--data-dir", "D", "--model-name", "M"]
    return flags.parse_config(FinetuningConfig, [*names, *words])[0]


def test_flags_win_over_json_and_json_over_the_task_file(tmp_path):
    path = tmp_path / "my_task.json"
    brought = {"num_train_epochs": 7, "seed": 1, "max_seq_length": 64}
    path.write_text(json.dumps({"name": "mine", "hparams": brought}))
    hparams = '--hparams={"seed": 2, "max_seq_length": 32}'
    config = parse(f"--task_config={path}", hparams, "--max-seq-length=16")
    assert config.model_dir == "D/models/M/finetuning_models/mine_model"
    assert config.task_names == ["mine"] and config.num_train_epochs == 7
    assert (config.seed, config.max_seq_length) == (2, 16)
    assert config.origins["num_train_epochs"] == "task_config"
    assert config.origins["seed"] == "json"
    refused("my.json: the file of --task_conf", parse, "--task_config=my.json")


CONFIGS = {"pretraining": (PretrainingConfig, 10)}
CONFIGS["finetuning"] = (FinetuningConfig, 14)
QA_FILES = {"qa_eval_file": "eval", "qa_preds_file": "preds"}
QA_FILES["qa_na_file"] = "null_odds"


def recorded(kind):
    return read_json(FIXTURES / f"{kind}_configs.json")


def resolved(config, name):
    """A value; of a method, its path for a task given by place holders."""
    if name in QA_FILES:
        return f"<{config.qa_file('{task}', QA_FILES[name])}>"
    value = getattr(config, name)
    if not callable(value):
        return value
    places = ("{task}", "{split}", "{trial}")
    wanted = places if name == "test_predictions" else places[:1]
    return f"<{value(*wanted)}>"


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_recorded_configs_are_the_reference_ones(kind, golden_dir):
    golden = read_json(golden_dir / "configs.json")[kind]
    wanted = [{k: case[k] for k in ("kwargs", "config")} for case in golden]
    assert recorded(kind) == wanted


@pytest.mark.parametrize("kind", CONFIGS)
def test_every_recorded_config_of_the_original_is_reproduced(kind):
    (program, count), cases = CONFIGS[kind], recorded(kind)
    assert len(cases) >= count
    for case in cases:
        config = program.create("NAME", "DATA", **case["kwargs"])
        for name, expected in case["config"].items():
            value = resolved(config, name)
            assert value == expected, (case["kwargs"], name)
            assert type(value) is type(expected), (case["kwargs"], name)


def test_finetuning_extensions_are_off_by_default():
    plain = create_finetuning()
    for kept in ("do_lower_case", "strip_accents"):  # None published is so.
        assert create_finetuning(**{kept: False}).fix_tagging_casing
    original = {*recorded("finetuning")[0]["config"], "write_distill_outputs"}
    extensions = set(plain.as_dict()) - original
    off = (False, 0, None, "")
    # The settings that say how the original's behaviour is reached, paths,
    # and those that change time, or what a stop does, but no result.
    assert {n for n in extensions if getattr(plain, n) not in off} == set(
        """
        results_json data_source strip_accents lr_read_order pooling
        shuffle_buffer_size length_buckets group_eval_by_length
        gradient_accumulation_steps keep_checkpoint_max
        distribution_strategy log_every_n_steps optimizer adam_beta_1
        adam_beta_2 adam_epsilon classification_head_layers
        on_nonfinite preemption_seconds
        """.split()
    )
