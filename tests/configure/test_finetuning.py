# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""FinetuningConfig; both configs equal what the original made of hparams."""

import json
import pathlib

import pytest

from configure import flags
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig


def create(**hparams):
    return FinetuningConfig.create("NAME", "DATA", **hparams)


@pytest.mark.parametrize(
    ("hparams", "words"),
    [
        ({"task_names": []}, "at least one task"),
        ({"task_names": ["rte", "rte"]}, "given twice"),
        ({"task_names": ["../x"]}, "no task name"),
        ({"task_name": ["rte"]}, "task_names"),
        ({"num_train_epochs": 0}, "above 0"),
        ({"pooling": "max"}, "first, mean"),
        ({"early_stopping_patience": 2}, "eval_every_n_steps"),
        ({"gradient_accumulation_steps": 3}, "does not divide"),
        ({"mixed_precision": "fp8"}, "bf16, fp16 or empty"),
        ({"num_trials": 0}, "num_trials: must be 1 or more, or negative"),
        ({"run_name": "a/b"}, "run_name: 'a/b' would be part of file names"),
        ({"classification_head_layers": 3}, "must be 1 or 2, got 3"),
        ({"wnli_majority": True}, r"wnli is not among task_names \(chunk\)"),
        ({"optimizer": "sgd"}, "optimizer: must be one of original, adamw"),
        ({"adam_beta_1": 1.0}, "adam_beta_1: must be at least 0 and below 1"),
        ({"adam_beta_2": -0.1}, "adam_beta_2: must be at least 0 and below 1"),
        ({"adam_epsilon": 0.0}, "adam_epsilon: must be at least 1e-37"),
    ],
)
def test_what_cannot_work_is_refused_with_a_remedy(hparams, words):
    with pytest.raises(UserError, match=words):
        create(**hparams)


def test_a_run_s_name_keeps_its_files_apart():
    plain, named = (
        create(task_names="sst"),
        create(task_names="sst", run_name="long"),
    )
    for name in ("model_dir", "results_txt", "results_pkl", "results_json"):
        before, now = getattr(plain, name), getattr(named, name)
        assert now == before.replace("/sst_", "/sst_long_") != before
    assert named.qa_file("sst", "preds").endswith("/sst_long_qa/sst_preds.json")
    predictions = named.test_predictions("sst", "test", 1)
    assert predictions.endswith("/sst_long_test_1_predictions.pkl")
    # The records are the same.
    assert named.preprocessed_data_dir == plain.preprocessed_data_dir


def test_doubtful_settings_are_warned_of():
    assert "512" in create(task_names="naturalqs").warnings()[0]
    assert "init_checkpoint" in create(debug=True).warnings()[0]
    assert "no effect" in create(predict_batch_size=8).warnings()[0]
    assert create().warnings() == []
    with pytest.raises(UserError, match="Nothing to do"):
        create(do_train=False, do_eval=False).check_mode()


def parse(*words):
    names = ["run_finetuning.py", "--data-dir", "D", "--model-name", "M"]
    return flags.parse_config(FinetuningConfig, [*names, *words])[0]


def test_flags_win_over_json_and_json_over_the_task_file(tmp_path):
    path = tmp_path / "my_task.json"
    brought = {"num_train_epochs": 7, "seed": 1, "max_seq_length": 64}
    path.write_text(json.dumps({"name": "mine", "hparams": brought}))
    config = parse(
        f"--task_config={path}",
        "--hparams",
        '{"seed": 2, "max_seq_length": 32}',
        "--max-seq-length=16",
    )
    assert config.model_dir == "D/models/M/finetuning_models/mine_model"
    assert config.task_names == ["mine"]
    assert config.num_train_epochs == 7
    assert (config.seed, config.max_seq_length) == (2, 16)
    assert config.origins["num_train_epochs"] == "task_config"


def test_a_task_file_that_is_not_there_is_called_by_its_flag():
    expected = "my.json: the file of --task_config cannot be read: No such"
    with pytest.raises(UserError, match=expected):
        parse("--task_config=my.json")


FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"
CONFIGS = {"pretraining": PretrainingConfig, "finetuning": FinetuningConfig}
NUM_CASES = {"pretraining": 10, "finetuning": 14}
QA_FILES = {
    "qa_eval_file": "eval",
    "qa_preds_file": "preds",
    "qa_na_file": "null_odds",
}


def recorded(kind):
    path = FIXTURES / f"{kind}_configs.json"
    return json.loads(path.read_text(encoding="utf-8"))


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
    path = golden_dir / "configs.json"
    golden = json.loads(path.read_text(encoding="utf-8"))[kind]
    wanted = [{k: case[k] for k in ("kwargs", "config")} for case in golden]
    assert recorded(kind) == wanted


@pytest.mark.parametrize("kind", CONFIGS)
def test_every_recorded_config_of_the_original_is_reproduced(kind):
    cases = recorded(kind)
    assert len(cases) >= NUM_CASES[kind]
    for case in cases:
        config = CONFIGS[kind].create("NAME", "DATA", **case["kwargs"])
        for name, expected in case["config"].items():
            value = resolved(config, name)
            assert value == expected, (case["kwargs"], name)
            assert type(value) is type(expected), (case["kwargs"], name)


def test_finetuning_extensions_are_off_by_default():
    plain = create()
    original = {*recorded("finetuning")[0]["config"], "write_distill_outputs"}
    extensions = set(plain.as_dict()) - original
    on = {
        n for n in extensions if getattr(plain, n) not in (False, 0, None, "")
    }
    # The settings that say how the original's behaviour is reached, paths,
    # and those that change time, or what a stop does, but no result.
    assert on == set(
        """
        results_json data_source strip_accents lr_read_order pooling
        shuffle_buffer_size length_buckets group_eval_by_length
        gradient_accumulation_steps keep_checkpoint_max
        distribution_strategy log_every_n_steps optimizer adam_beta_1
        adam_beta_2 adam_epsilon classification_head_layers
        on_nonfinite preemption_seconds
        """.split()
    )
