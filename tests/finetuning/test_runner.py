# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From rows to results files: trials, scores, and the models that stay."""

import json
import pickle
import shutil

import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.prediction.loading import load_finetuned
from electra_tf.training.summaries import read_rows

pytestmark = pytest.mark.slow  # Whole runs.


@pytest.mark.usefixtures("with_pictures")
def test_two_trials_leave_the_original_s_results_files(
    config_of, run, tmp_path
):
    config = config_of(num_trials=2, write_test_outputs=True)
    result, text = run(config)
    base = tmp_path / "models" / "tiny"
    written = pickle.loads((base / "results/sst_results.pkl").read_bytes())
    assert [list(trial["sst"]) for trial in written] == [
        ["accuracy", "loss"]
    ] * 2
    lines = (base / "results/sst_results.txt").read_text().splitlines()
    assert lines == [
        f"sst: accuracy: {trial['sst']['accuracy']:.2f} -"
        f" loss: {trial['sst']['loss']:.2f}"
        for trial in written
    ]
    record = json.loads((base / "results/sst_results.json").read_text())
    accuracy = record["statistics"]["sst"]["accuracy"]
    values = [trial["sst"]["accuracy"] for trial in written]
    assert accuracy["values"] == values
    assert accuracy["mean"] == pytest.approx(sum(values) / 2)
    assert record["trials"][0]["seed"] != record["trials"][1]["seed"]
    assert (base / "results/sst_results.png").stat().st_size > 1000
    for trial in (1, 2):
        model = base / f"finetuning_models/sst_model_{trial}"
        assert (model / "curves.png").exists()
        assert tf.train.latest_checkpoint(str(model)).endswith("-24")
        outputs = base / f"test_predictions/sst_test_{trial}_predictions.pkl"
        logits = pickle.loads(outputs.read_bytes())
        assert list(logits) == [0, 1, 2, 3, 4]
        assert logits[0].shape == (2,)
    assert "Learning rates before warm-up and decay" in text
    assert result["statistics"]["sst"]["accuracy"]["values"] == values


def test_the_same_seed_gives_the_same_results_and_another_others(
    config_of, run
):
    one, _ = run(config_of())
    two, _ = run(config_of(overwrite=True))
    assert one["trials"] == two["trials"]
    other, _ = run(config_of(overwrite=True, seed=1))
    assert one["trials"][0]["results"] != other["trials"][0]["results"]


def test_the_best_model_is_kept_and_scored(config_of, run, tmp_path):
    config = config_of(
        eval_every_n_steps=4, keep_best="loss", learning_rate=5e-2
    )
    result, _ = run(config)
    directory = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    rows = read_rows(str(directory / "eval_log.jsonl"))
    best = min(rows, key=lambda row: row["loss"])
    record = result["trials"][0]
    assert record["results"]["sst"]["loss"] == best["loss"]
    assert record["global_step"] == best["step"]
    # Alone, it can be asked.
    alone = shutil.copytree(directory / "best", tmp_path / "alone")
    loaded = load_finetuned(str(alone))
    assert loaded.global_step == best["step"]
    assert loaded.config.vocab_file == str(alone / "vocab.txt")


def test_training_stops_when_nothing_gets_better(config_of, run):
    config = config_of(
        eval_every_n_steps=2,
        early_stopping_patience=2,
        keep_best="loss",
        learning_rate=0.0,
    )
    result, text = run(config)
    assert "Stopping early: 2 evaluations without a better loss" in text
    assert result["trials"][0]["global_step"] == 2
    assert "interrupted" not in result


@pytest.mark.parametrize(
    ("hparams", "message"),
    [
        (
            {"eval_every_n_steps": 4, "keep_best": "mcc"},
            "no figure 'mcc'.*accuracy",
        ),
        (
            {"distribution_strategy": "multi_worker"},
            "fine-tuning runs on one machine",
        ),
    ],
)
def test_settings_that_cannot_work_are_named(
    hparams, message, config_of, run, tmp_path
):
    with pytest.raises(UserError, match=message):
        run(config_of(**hparams))
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize(
    "hparams", [{}, {"do_eval": False, "eval_every_n_steps": 4}]
)
def test_a_missing_dev_file_is_named_before_anything_is_done(
    hparams, config_of, run, tmp_path
):
    (tmp_path / "finetuning_data/sst/dev.tsv").unlink()
    with pytest.raises(UserError, match=r"dev.tsv: no such file.*do_eval"):
        run(config_of(**hparams))
    assert not (tmp_path / "models").exists()


def test_a_collapsed_run_is_named(config_of, run, tmp_path):
    # All training labels are the same.
    path = tmp_path / "finetuning_data/sst/train.tsv"
    path.write_text("sentence\tlabel\n" + "the of\t1\n" * 8)
    result, text = run(config_of(num_train_epochs=20, learning_rate=1e-2))
    assert "WARNING: trial 1 collapsed on sst: every prediction is '1'" in text
    assert result["trials"][0]["collapsed"] == {
        "sst": "every prediction is '1'"
    }


def test_several_tasks_are_learned_at_once_and_the_last_model_stays(
    finetuning_config, run, sst, cola, tmp_path
):
    config = finetuning_config(
        "cola",
        "sst",
        num_train_epochs=1.0,
        eval_every_n_steps=4,
        num_trials=2,
        keep_all_models=False,
    )
    result, _ = run(config)
    assert list(result["trials"][0]["results"]) == ["cola", "sst"]
    base = tmp_path / "models/tiny"
    lines = (base / "results/cola,sst_results.txt").read_text().splitlines()
    assert [line.split(":")[0] for line in lines] == ["cola", "sst"] * 2
    (kept,) = (base / "finetuning_models").iterdir()
    assert kept.name == "cola,sst_model_2"


def test_labels_found_in_data_lie_beside_the_model_and_go_with_it(
    finetuning_config, run, write_task, tmp_path
):
    words = [("the", "DT", "B-NP"), ("and", "CC", "O"), ("of", "IN", "B-PP")]
    rows = "".join(" ".join(word) + "\n" for word in words) + "\n"
    for split in ("train", "dev"):
        write_task("chunk", f"{split}.txt", rows * 8)
    run(finetuning_config("chunk", num_train_epochs=1.0))
    model = tmp_path / "models/tiny/finetuning_models/chunk_model_1"
    beside = json.loads((model / "chunk_label_mapping.json").read_text())
    assert list(beside) == ["O", "S-NP", "S-PP"]
    run(finetuning_config("chunk", num_train_epochs=2.0, overwrite=True))
    assert (model / "chunk_label_mapping.json").exists()
