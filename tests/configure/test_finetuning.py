# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning configs: errors, warnings, paths, layers of hparams."""

import json

import pytest

from configure import flags
from configure.finetuning import FinetuningConfig
from tests.conftest import refused


def create(**hparams):
    return FinetuningConfig.create("NAME", "DATA", **hparams)


@pytest.mark.parametrize(
    ("hparams", "message"),
    [
        ({"task_names": []}, "at least one task"),
        ({"task_names": ["../x"]}, "not a task name"),
        ({"task_names": ["rte", "rte"]}, "rte is listed twice"),
        ({"task_name": ["rte"]}, "task_names"),
        ({"early_stopping_patience": 2}, "eval_every_n_steps"),
        ({"gradient_accumulation_steps": 3}, "does not divide"),
        ({"mixed_precision": "fp8"}, "bf16, fp16 or empty"),
        ({"wnli_majority": True}, r"wnli is not among task_names \(chunk\)"),
        ({"skip_padding": True, "jit_compile": True}, "skip_padding: true"),
        ({"adam_beta_1": 1.0}, "adam_beta_1: must be at least 0 and below 1"),
    ],
)
def test_impossible_values_are_refused(hparams, message):
    refused(message, create, **hparams)


@pytest.mark.parametrize(
    "name", ["model_dir", "results_txt", "results_pkl", "results_json"]
)
def test_run_name_separates_paths(name):
    plain = getattr(create(task_names="sst"), name)
    named = getattr(create(task_names="sst", run_name="long"), name)
    assert named == plain.replace("/sst_", "/sst_long_") != plain


def test_run_name_separates_predictions_but_not_records():
    plain = create(task_names="sst")
    named = create(task_names="sst", run_name="long")
    assert named.qa_file("sst", "preds").endswith("/sst_long_qa/sst_preds.json")
    predictions = named.test_predictions("sst", "test", 1)
    assert predictions.endswith("/sst_long_test_1_predictions.pkl")
    assert named.preprocessed_data_dir == plain.preprocessed_data_dir


@pytest.mark.parametrize(
    ("hparams", "message"),
    [
        ({"task_names": "naturalqs"}, "512"),
        ({"debug": True}, "init_checkpoint"),
        ({"predict_batch_size": 8}, "no effect"),
    ],
)
def test_doubtful_settings_are_warned_of(hparams, message):
    assert message in create(**hparams).warnings()[0]


def test_the_defaults_have_no_warnings():
    assert create().warnings() == []


def test_a_config_without_work_is_refused():
    idle = create(do_train=False, do_eval=False)
    refused("Nothing to do", idle.check_mode)


def parse(*arguments):
    names = ["run_finetuning.py", "--data-dir", "D", "--model-name", "M"]
    return flags.parse_config(FinetuningConfig, [*names, *arguments])[0]


def test_flags_win_over_json_and_json_over_the_task_file(tmp_path):
    path = tmp_path / "my_task.json"
    task_hparams = {"num_train_epochs": 7, "seed": 1, "max_seq_length": 64}
    path.write_text(json.dumps({"name": "mine", "hparams": task_hparams}))
    hparams = '--hparams={"seed": 2, "max_seq_length": 32}'
    config = parse(f"--task_config={path}", hparams, "--max-seq-length=16")
    assert config.model_dir == "D/models/M/finetuning_models/mine_model"
    assert config.task_names == ["mine"] and config.num_train_epochs == 7
    assert (config.seed, config.max_seq_length) == (2, 16)
    assert config.origins["num_train_epochs"] == "task_config"
    assert config.origins["seed"] == "json"


def test_a_missing_task_file_is_refused():
    refused(
        "my.json: the file passed to --task_conf",
        parse,
        "--task_config=my.json",
    )
