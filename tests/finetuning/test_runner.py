# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs train trials, score and keep models, and continue after a stop."""

import dataclasses
import itertools
import json
import os
import pathlib
import pickle
import re
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.tf1 import find_latest, write_tf1
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.finetuning.hparam_changes import changed_hparams
from electra_tf.modeling.precision import LossScale
from electra_tf.prediction.loading import load_finetuned
from electra_tf.pretraining.loading import load_pretrained
from electra_tf.training.logs import read_rows
from electra_tf.training.loop import TrainLoop
from tests.conftest import differences, read_json, refused

pytestmark = pytest.mark.slow  # Whole runs.


@pytest.mark.usefixtures("with_pictures")
def test_two_trials_leave_the_original_s_results(config_of, run, tmp_path):
    config = config_of(num_trials=2, write_test_outputs=True)
    result, text = run(config)
    base = tmp_path / "models" / "tiny"
    written = pickle.loads((base / "results/sst_results.pkl").read_bytes())
    figures = ["accuracy", "loss"]
    assert [list(trial["sst"]) for trial in written] == [figures] * 2
    assert (base / "results/sst_results.txt").read_text().splitlines() == [
        f"sst: accuracy: {trial['sst']['accuracy']:.2f} -"
        f" loss: {trial['sst']['loss']:.2f}"
        for trial in written
    ]
    record = read_json(base / "results/sst_results.json")
    accuracy = record["statistics"]["sst"]["accuracy"]
    values = [trial["sst"]["accuracy"] for trial in written]
    assert accuracy["values"] == values
    assert accuracy["mean"] == pytest.approx(sum(values) / 2)
    assert record["trials"][0]["seed"] != record["trials"][1]["seed"]
    assert written[0]["sst"]["loss"] != written[1]["sst"]["loss"]
    assert (base / "results/sst_results.png").stat().st_size > 1000
    models = [base / f"finetuning_models/sst_model_{n}" for n in (1, 2)]
    assert all((model / "curves.png").exists() for model in models)
    latest = [tf.train.latest_checkpoint(str(model)) for model in models]
    assert [path.rpartition("-")[2] for path in latest] == ["24", "24"]
    folder = base / "test_predictions"
    first, second = (folder / f"sst_test_{n}_predictions.pkl" for n in (1, 2))
    logits = [pickle.loads(path.read_bytes()) for path in (first, second)]
    assert [list(rows) for rows in logits] == [[0, 1, 2, 3, 4]] * 2
    assert {row.shape for rows in logits for row in rows.values()} == {(2,)}
    assert "Learning rates before warm-up and decay" in text
    # Predictions that are missing or older than their model are made again.
    first.unlink()
    second.write_bytes(b"of another model")
    os.utime(second, (0, 0))
    again, text = run(config)
    assert "Trial 2: an earlier run finished this trial" in text
    assert again["trials"] == result["trials"]
    assert pickle.loads(second.read_bytes()).keys() == logits[1].keys()
    shutil.rmtree(models[1])
    second.unlink()
    # Predictions older than the test data are made again, too.
    first.write_bytes(b"of other data")
    os.utime(tmp_path / "finetuning_data/sst/test.tsv", (2**32, 2**32))
    _, text = run(config)
    assert pickle.loads(first.read_bytes()).keys() == logits[0].keys()
    assert f"such as {second}, are missing or older" in text
    assert result["statistics"]["sst"]["accuracy"]["values"] == values


def test_the_best_model_is_kept_and_scored(config_of, run, tmp_path):
    best = {"keep_best": "loss", "learning_rate": 5e-2}
    result, _ = run(config_of(eval_every_n_steps=4, **best))
    directory = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    rows = read_rows(str(directory / "eval_log.jsonl"))
    best = min(rows, key=lambda row: row["loss"])
    record = result["trials"][0]
    assert record["results"]["sst"]["loss"] == best["loss"]
    assert record["global_step"] == best["step"]
    state = read_json(directory / "best/best.json")
    assert re.match("[0-9a-f]{12}; .*n_best", state["scored_on"])
    # Runs that start from this folder, and conversions, read the best, too.
    assert open_weights(str(directory)).path == find_latest(f"{directory}/best")
    # The best model answers without the rest of the folder.
    alone = shutil.copytree(directory / "best", tmp_path / "alone")
    loaded = load_finetuned(str(alone))
    assert loaded.global_step == best["step"]
    assert loaded.config.vocab_file == str(alone / "vocab.txt")


def test_training_stops_when_no_metric_improves(config_of, run):
    config = config_of(
        eval_every_n_steps=2,
        early_stopping_patience=2,
        keep_best="loss",
        learning_rate=0.0,
    )
    result, text = run(config)
    assert "Stopping early: the last 2 evaluations did not improve loss" in text
    assert result["trials"][0]["global_step"] == 2
    assert "interrupted" not in result


def test_missing_metrics_and_data_are_named_before_training(
    config_of, run, tmp_path
):
    regular = {"eval_every_n_steps": 4}
    refused("unknown metric 'mcc'", run, config_of(keep_best="mcc", **regular))
    both = {"task_names": ["sst", "cola"], "early_stopping_patience": 2}
    refused(
        "several tasks the metric to watch", run, config_of(**both, **regular)
    )
    (tmp_path / "finetuning_data/sst/dev.tsv").unlink()
    for hparams in ({}, {"do_eval": False, **regular}):
        refused(r"dev.tsv: no such file.*do_eval", run, config_of(**hparams))
    assert not (tmp_path / "models").exists()


def test_trials_of_other_weights_are_refused(
    config_of, run, tmp_path, pretrained_folder
):
    start = shutil.copytree(
        pretrained_folder(max_seq_length=8), tmp_path / "start"
    )
    config = config_of(init_checkpoint=str(start), model_hparam_overrides={})
    _, text = run(config)
    assert "max_seq_length is 32, but the model was" in text
    trained = load_pretrained(str(start))
    assert trained.max_length == 8
    trained.model.variables[0].assign(-trained.model.variables[0])
    trained.model.save_pretrained(str(start))
    other = dataclasses.replace(config, num_trials=2)
    refused("starting weights: ", run, other)
    tiny = config_of(init_checkpoint=str(start), debug=True, overwrite=True)
    refused(
        "hparams of debug .set init_checkpoint to null. describe", run, tiny
    )


def test_a_run_continues_after_its_data_were_moved(config_of, run, tmp_path):
    config = config_of()
    run(config)
    moved = shutil.move(tmp_path, f"{tmp_path}_moved")
    hparams = config.explicit_hparams(json.loads(config.to_json()))
    again = FinetuningConfig.create(**hparams | {"data_dir": moved})
    assert "Trial 1: an earlier run finished this trial" in run(again)[1]
    outside = {"data_dir": "/a", "init_checkpoint": "/pool/x"}
    assert not changed_hparams(outside, outside | {"data_dir": "/pool"})
    os.remove(again.results_json)
    assert "Already trained to step 24" in run(again)[1]


def test_a_collapsed_run_is_named(config_of, run, tmp_path):
    # All training labels are the same.
    path = tmp_path / "finetuning_data/sst/train.tsv"
    path.write_text("sentence\tlabel\n" + "the of\t1\n" * 8)
    result, text = run(config_of(num_train_epochs=20, learning_rate=1e-2))
    assert "WARNING: trial 1 collapsed on sst: every prediction is '1'" in text
    (trial,) = result["trials"]
    assert trial["collapsed"] == {"sst": "every prediction is '1'"}
    # The trial's score is at most that of the most frequent label.
    accuracy = trial["results"]["sst"]["accuracy"]
    assert accuracy <= trial["baselines"]["sst/majority"]["accuracy"]
    assert trial["baselines"]["sst/chance"]["accuracy"] == 50.0


def test_several_tasks_are_trained_together(
    finetuning_config, run, sst, cola, tmp_path
):
    settings = {"num_train_epochs": 1.0, "eval_every_n_steps": 4}
    settings |= {"num_trials": 2, "keep_all_models": False}
    result, _ = run(finetuning_config("cola", "sst", **settings))
    assert list(result["trials"][0]["results"]) == ["cola", "sst"]
    base = tmp_path / "models/tiny"
    lines = (base / "results/cola,sst_results.txt").read_text().splitlines()
    assert [line.split(":")[0] for line in lines] == ["cola", "sst"] * 2
    folders = (base / "finetuning_models").iterdir()
    assert [folder.name for folder in folders] == ["cola,sst_model_2"]


def test_labels_of_the_data_are_saved_with_the_model(
    finetuning_config, run, write_task, tmp_path
):
    rows = "the DT B-NP\nand CC O\nof IN B-PP\n\n"
    for split in ("train", "dev"):
        write_task("chunk", f"{split}.txt", rows * 8)
    run(finetuning_config("chunk", num_train_epochs=1.0))
    model = tmp_path / "models/tiny/finetuning_models/chunk_model_1"
    mapping = read_json(model / "chunk_label_mapping.json")
    assert list(mapping) == ["O", "S-NP", "S-PP"]
    assert "chunk_label_mapping.json" in read_json(model / "digests.json")
    changes = {"num_train_epochs": 2.0, "overwrite": True, "do_eval": False}
    run(finetuning_config("chunk", **changes))
    assert (model / "chunk_label_mapping.json").exists()
    # Results of the replaced model are put aside.
    assert not (tmp_path / "models/tiny/results/chunk_results.json").exists()


@pytest.fixture
def weights_after(config_of, run, weights_of, tmp_path):
    """Return a function that trains for an epoch and returns the weights."""

    def train(**hparams):
        run(config_of(num_train_epochs=1, overwrite=True, **hparams))
        return weights_of(tmp_path / MODEL)

    return train


@pytest.fixture
def without_dropout(config_of, monkeypatch):
    """Remove dropout from heads; return hparams that remove the rest."""
    monkeypatch.setattr("electra_tf.finetuning.heads.DROPOUT_RATE", 0.0)
    # The default first scale is too large for the steep gradients here.
    monkeypatch.setattr(LossScale, "of", {"fp16": LossScale(256.0)}.get)
    rates = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    sizes = config_of().model_hparam_overrides | dict.fromkeys(rates, 0.0)
    return {"model_hparam_overrides": sizes}


@pytest.fixture(scope="module")
def plain_weights():
    """Return a dictionary that the first test of a switch fills."""
    return {}


@pytest.mark.parametrize(
    ("switch", "value", "bound"),
    [
        ("gradient_accumulation_steps", 2, 1e-5),
        ("recompute_grad", True, 1e-5),
        ("skip_padding", True, 1e-5),
        ("mixed_precision", "bf16", 2e-3),
        ("mixed_precision", "fp16", 2e-3),
    ],
)
def test_a_switch_for_memory_or_speed_leaves_the_weights_equal(
    weights_after,
    without_dropout,
    plain_weights,
    tmp_path,
    switch,
    value,
    bound,
):
    if not plain_weights:
        plain_weights.update(weights_after(**without_dropout))
    hparams = without_dropout | {switch: value}
    weights = weights_after(**hparams)
    assert differences(weights, plain_weights, 1e-7, atol=bound) == []
    dtypes, plain_dtypes = (
        {name: array.dtype for name, array in arrays.items()}
        for arrays in (weights, plain_weights)
    )
    assert dtypes == plain_dtypes
    scaled = {"loss_scale": 256.0, "skipped_updates": 0.0}
    row = read_rows(str(tmp_path / MODEL / "train_log.jsonl"))[-1]
    logged = {name: row[name] for name in scaled if name in row}
    assert logged == (scaled if value == "fp16" else {})


def test_xla_programs_train_and_predict(config_of, run):
    settings = {"num_train_epochs": 1, "max_seq_length": 16}
    result, _ = run(config_of(jit_compile=True, **settings))
    assert np.isfinite(result["trials"][0]["results"]["sst"]["loss"])


def test_frozen_layers_stay_as_they_are(config_of, run, weights_of, tmp_path):
    sizes = config_of().model_hparam_overrides | {"num_hidden_layers": 2}
    run(config_of(model_hparam_overrides=sizes))
    before = weights_of(tmp_path / MODEL)
    frozen = {"freeze_layers": 1, "model_dir": str(tmp_path / "frozen")}
    start = {"init_checkpoint": str(tmp_path / MODEL), "overwrite": True}
    run(config_of(model_hparam_overrides=sizes, **frozen, **start))
    after = weights_of(tmp_path / "frozen_1")
    changed = {
        name
        for name in before.keys() & after.keys()
        if "adam" not in name and not np.array_equal(before[name], after[name])
    }
    frozen = ("electra/embeddings", "electra/encoder/layer_0")
    assert not any(name.startswith(frozen) for name in changed)
    assert any(name.startswith("electra/encoder/layer_1") for name in changed)


MODEL = "models/tiny/finetuning_models/sst_model_1"


@pytest.fixture(scope="module")
def trained_cache(tmp_path_factory):
    """Return the cache of `trained`: a folder to copy, later the result."""
    return {"folder": tmp_path_factory.mktemp("trained") / "models"}


@pytest.fixture
def trained(config_of, run, tmp_path, trained_cache):
    """Return the result and the folder of a trained model."""
    cache, models = trained_cache, tmp_path / "models"
    if "result" not in cache:
        cache["result"], _ = run(config_of())
        shutil.copytree(models, cache["folder"])
    shutil.copytree(cache["folder"], models, dirs_exist_ok=True)
    return cache["result"], str(tmp_path / MODEL)


@pytest.fixture
def stop_run(run, monkeypatch):
    """Return a function whose run receives SIGTERM after some steps."""

    def call(config, steps):
        original, count = TrainLoop.train, itertools.count(1)

        def train(self, num_steps):
            inner = self.should_stop

            def asked():
                if next(count) == steps:
                    signal.raise_signal(signal.SIGTERM)
                return inner()

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(self, "should_stop", asked)
                original(self, num_steps)

        with monkeypatch.context() as patch:
            patch.setattr(TrainLoop, "train", train)
            return run(config)

    return call


def test_a_stop_changes_no_bit(config_of, run, weights_of, tmp_path, stop_run):
    run(config_of(eval_every_n_steps=5))
    directory = tmp_path / "models/tiny/finetuning_models"
    expected = weights_of(directory / "sst_model_1")
    again = config_of(eval_every_n_steps=5, run_name="other")
    stopped, text = stop_run(again, 11)
    assert stopped["interrupted"] == signal.SIGTERM
    assert "Stopped at step 11" in text and stopped["trials"] == []
    _, text = run(again)
    assert "Continuing from" in text
    actual = weights_of(directory / "sst_other_model_1")
    assert list(actual) == list(expected)
    assert differences(actual, expected) == []
    results = tmp_path / "models/tiny/results"
    texts, rows = [], []
    for name in ("sst", "sst_other"):
        texts.append((results / f"{name}_results.txt").read_text())
        log = directory / f"{name}_model_1" / "eval_log.jsonl"
        rows.append(read_rows(str(log)))
    assert texts[0] == texts[1]
    assert rows[0] == rows[1] and len(rows[0]) == 5


def test_an_unlimited_count_of_trials_runs_until_a_stop(
    config_of, run, stop_run
):
    config = config_of(num_trials=-1, num_train_epochs=1)  # 8 steps each
    stopped, _ = stop_run(config, 11)
    assert stopped["interrupted"] == signal.SIGTERM
    assert [trial["trial"] for trial in stopped["trials"]] == [1]
    # A run with a count of trials accepts the finished trials.
    with pytest.raises(UserError, match=r"learning_rate: 0.001 -> 0.002"):
        run(dataclasses.replace(config, learning_rate=2e-3))
    two, text = run(dataclasses.replace(config, num_trials=2))
    assert "Trial 1: an earlier run finished this trial" in text
    assert two["trials"][0] == stopped["trials"][0]
    assert [trial["trial"] for trial in two["trials"]] == [1, 2]


def test_a_folder_with_other_files_is_not_deleted(config_of, run, tmp_path):
    directory = tmp_path / MODEL
    directory.mkdir(parents=True)
    (directory / "thesis.txt").write_text("mine")
    refused("thesis.txt", run, config_of(overwrite=True))
    assert (directory / "thesis.txt").exists()


def test_outputs_of_damaged_weights_are_no_scores(config_of, run, trained):
    folder = pathlib.Path(trained[1])
    values = dict(open_weights(str(folder)))
    (bias,) = (n for n in values if n.startswith("task_") and n[-4:] == "bias")
    values[bias] = np.full_like(values[bias], np.nan)
    for path in [path for path in folder.iterdir() if path.is_file()]:
        path.unlink()
    write_tf1(MemoryWeights(values), str(folder / "model.ckpt-24"))
    refused(
        r"sst, dev, example \d+: the model's output \w+ is nan; expected a fin",
        run,
        config_of(do_train=False),
    )


def test_the_originals_model_is_evaluated_or_replaced(config_of, run, trained):
    # The trial's folder gets the files of the original.
    folder = pathlib.Path(trained[1])
    weights = MemoryWeights(dict(open_weights(str(folder))))
    for path in [path for path in folder.iterdir() if path.is_file()]:
        path.unlink()
    shutil.rmtree(folder / "tensorboard", ignore_errors=True)
    write_tf1(weights, str(folder / "model.ckpt-24"))
    for name in ("graph.pbtxt", "events.out.tfevents.1.host"):
        (folder / name).write_text("")
    results = folder.parent.parent / "results/sst_results.txt"
    results.with_suffix(".json").unlink()
    for hparams in ({}, {"num_trials": -1}, {"learning_rate": 1.0}):
        refused(r"do_train .*--overwrite.*_name", run, config_of(**hparams))
    assert results.exists()  # Nothing was touched.
    actual, _ = run(config_of(do_train=False))
    scores = actual["trials"][0]["results"]["sst"]
    assert scores == pytest.approx(trained[0]["trials"][0]["results"]["sst"])
    result, text = run(config_of(run_name="mine", num_train_epochs=1))
    assert "Already trained" not in text
    assert result["trials"][0]["model_dir"].endswith("/sst_mine_model_1")
    replaced, text = run(config_of(overwrite=True))
    assert f"--overwrite: deleted {folder}" in text
    (before,), (after,) = trained[0]["trials"], replaced["trials"]
    assert after == before | {"model_dir": after["model_dir"]}
    assert not (folder / "graph.pbtxt").exists()


def test_evaluation_alone_uses_the_settings_of_the_run(
    config_of, run, tmp_path
):
    short = {"max_seq_length": 8, "num_train_epochs": 1}

    def train(**hparams):  # The vocabulary comes from the checkpoint.
        config = config_of(**short, **hparams)
        origins = {**config.origins, "vocab_file": "checkpoint"}
        return run(dataclasses.replace(config, origins=origins))

    train()  # one trial
    first, _ = train(num_trials=2)

    def evaluate(**hparams):
        where = ("tiny", str(tmp_path))
        config = FinetuningConfig.create(*where, do_train=False, **hparams)
        result, text = run(config)
        assert "Earlier results were renamed" in text
        return [trial["results"] for trial in result["trials"]]

    expected = [trial["results"] for trial in first["trials"]]
    assert evaluate() == evaluate(num_trials=-1) == expected
    start = {"init_checkpoint": str(tmp_path / MODEL)}
    assert evaluate(**start) == expected[:1]
    refused("another --run_name", evaluate, write_test_outputs=True, **start)
    assert evaluate(task_names=["sst"], max_seq_length=32) != expected
    run(config_of(run_name="b", max_seq_length=16, num_train_epochs=1))
    refused("sst_b_model_1, sst_model_1.*run_name", evaluate)
    assert len(evaluate(run_name="b")) == 1


def test_evaluation_alone_uses_the_labels_of_the_training(
    describe, run, tmp_path, capsys
):
    rows = {"train": "the\tbad\nof\tgood\n" * 8, "dev": "the\tbad\n" * 4}
    files = {f"{name}.tsv": f"text\tlabel\n{r}" for name, r in rows.items()}
    columns = {"text_a": "text", "label": "label"}
    config = describe({"columns": columns}, files).config
    run(config.with_values("program", {"do_eval": False}))
    first, _ = run(config)
    # Other classes are refused, whichever steps remain.
    train, results = tmp_path / "train.tsv", tmp_path.glob("**/*_results.json")
    train.write_text(train.read_text().replace("good", "alright"))
    with open(tmp_path / "dev.tsv", "a") as file:
        file.write("in\tbad\n")
    refused("(?s)mine, train: .*mine, dev: .*set do_tr", run, config)
    next(results).unlink()
    refused(r"labels of mine: .*'good'\] ->", run, config)
    (tmp_path / "dev.tsv").write_text(f"text\tlabel\n{rows['dev']}")
    # Labels from dev alone would have a different order.
    train.unlink()
    with open(tmp_path / "dev.tsv", "a") as file:
        file.write("in\taverage\n")
    actual, _ = run(config.with_values("program", {"do_train": False}))
    assert actual["trials"][0]["results"] == first["trials"][0]["results"]
    assert "dev.tsv:6: found label 'average'" in capsys.readouterr().out
    assert [*tmp_path.glob("**/mine_model_1/task.json")]
    files = tmp_path.glob("**/mine_model_1/mine_labels.json")
    assert {path.read_text() for path in files} == {'[\n "bad",\n "good"\n]\n'}


def test_unsuitable_initial_checkpoints_are_refused(
    config_of, run, trained, finetuning_config, cola
):
    start = {"init_checkpoint": trained[1]}
    sizes = config_of().model_hparam_overrides
    other = {"do_train": False, "model_hparam_overrides": sizes, **start}
    refused("task_specific/cola", run, finetuning_config("cola", **other))
    sizes = sizes | {"num_attention_heads": 4}  # in no shape
    with pytest.raises(UserError, match="num_attention_heads 2"):
        run(config_of(model_hparam_overrides=sizes, **start))


def test_an_initial_checkpoint_without_a_model_is_named(
    config_of, run, tmp_path
):
    refused("sst_model_1 contains no model", run, config_of(do_train=False))
    (tmp_path / "models/empty").mkdir(parents=True)
    config = config_of(init_checkpoint=str(tmp_path / "models/empty"))
    refused("init_checkpoint.*random weights", run, config)


def test_a_model_of_a_different_task_can_initialize_a_run(
    run, trained, tiny_vocab, cola, tmp_path
):
    # The checkpoint states the sizes.
    settings = {"task_names": ["cola"], "vocab_file": tiny_vocab}
    settings |= {"max_seq_length": 32, "train_batch_size": 4}
    settings["init_checkpoint"] = trained[1]
    config = FinetuningConfig.create("tiny", str(tmp_path), **settings)
    result, text = run(config)
    assert "missing, keeps its initial value: task_specific/cola" in text
    assert result["trials"][0]["results"]["cola"].keys() == {"mcc", "loss"}
