# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The programs from the command line, and on TensorFlow's file systems."""

import io
import json
import signal
import subprocess
import sys
import time

import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from electra_tf.finetuning import runner as finetuning
from electra_tf.pretraining import runner as pretraining
from electra_tf.training.console import Console
from tests.conftest import ROOT, refused

# The start of a program: `run_program` imports TensorFlow late.
START = """
import sys
from configure import flags
def main(parsed):
    import electra_tf.finetuning.runner, electra_tf.pretraining.runner
    print(sorted({names!r} & sys.modules.keys()))
flags.run_program(main, flags.FlagParser())
"""


def command(program, data_dir, hparams, *flags):
    where = ("--data-dir", str(data_dir), "--model-name", "m")
    return [program, *where, "--hparams", json.dumps(hparams), *flags]


@pytest.fixture
def call(run_python):
    """Return a function that runs a program to its end."""
    return lambda *args: run_python(*command(*args))


def pretrain_here(data_dir, hparams):
    """Pre-train in this process; return the console output."""
    output = io.StringIO()
    config = PretrainingConfig.create("m", str(data_dir), **hparams)
    pretraining.run(config, Console(output))
    return output.getvalue()


def test_a_start_imports_no_slow_packages(run_python):
    names = {"keras", "matplotlib", "sklearn", "scipy.stats", "tensorflow_text"}
    done = run_python("-c", START.format(names=names))
    assert done.stdout.strip().endswith("[]"), done.stdout + done.stderr


def test_stopped_pretraining_continues(data_dir, settings, tmp_path, call):
    many = ("num_train_steps", "save_checkpoints_steps")
    hparams = settings(**dict.fromkeys(many, 1_000_000))
    run = tmp_path / "run"
    log = run / "train_log.jsonl"
    child = subprocess.Popen(
        [sys.executable, *command("run_pretraining.py", data_dir, hparams)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.time() + 500
    while not (log.exists() and log.read_text().count("\n") >= 3):
        assert time.time() < deadline and child.poll() is None
        time.sleep(0.05)
    child.send_signal(signal.SIGTERM)
    output, errors = child.communicate(timeout=120)
    assert child.returncode == 128 + signal.SIGTERM, errors
    assert "Run the same command again to continue" in output
    assert "Traceback" not in errors
    newest = tf.train.latest_checkpoint(run)
    step = int(newest.rsplit("-", 1)[1])
    assert step >= 3
    assert json.loads(log.read_text().splitlines()[-1])["step"] == step
    total = hparams["num_train_steps"] = step + 2
    continued = call("run_pretraining.py", data_dir, hparams)
    assert f"Continuing from {newest}" in continued.stdout
    assert f"num_train_steps: 1000000 -> {total}" in continued.stdout
    assert f"{total}/{total} = 100.0%, SPS: " in continued.stdout
    assert "train | step" not in continued.stdout  # a line of orbit
    assert json.loads((run / "config.json").read_text())["seed"] == 0
    assert (run / "curves.png").stat().st_size > 1000
    assert not (run / "results").exists()
    assert "Already trained to step" in pretrain_here(data_dir, hparams)


def test_mistakes_of_pretraining_are_messages(
    data_dir, settings, tmp_path, monkeypatch
):
    with pytest.raises(UserError, match="do_eval: model_dir .* contains no"):
        pretrain_here(data_dir, settings(do_train=False, do_eval=True))
    assert not (tmp_path / "run").exists()
    whole = data_dir / "pretrain_tfrecords" / "pretrain_data.tfrecord-0-of-3"
    changed = bytearray(whole.read_bytes())
    changed[-30] ^= 1  # Inside the last record, whose checksum is now wrong.
    damaged = tmp_path / "damaged"
    damaged.write_bytes(changed)
    place_message = rf"{damaged}: record \d+ .*corrupt payload"
    with pytest.raises(UserError, match=place_message):
        pretrain_here(data_dir, settings(pretrain_tfrecords=str(damaged)))
    # For files that a manifest lists, only the size is checked at the start.
    monkeypatch.setattr(pretraining, "check_records", lambda *_, **__: None)
    hparams = settings(pretrain_tfrecords=str(damaged), num_train_steps=50)
    refused(
        f"record for training .* {place_message}",
        pretrain_here,
        data_dir,
        hparams,
    )


def test_help_and_config_need_no_tensorflow(task_dir, hparams, call):
    helped = call("run_finetuning.py", task_dir, {}, "--help")
    assert "--layerwise_lr_decay" in helped.stdout
    flags = ("--task_names=rte", "--print_config")
    shown = call("run_finetuning.py", task_dir, hparams, *flags)
    assert "tensorflow" not in shown.stderr.lower()
    assert "num_train_epochs" in shown.stdout and "10.0" in shown.stdout


def test_more_frozen_layers_than_the_model_has_are_refused(task_dir, hparams):
    hparams["freeze_layers"] = 9
    config = FinetuningConfig.create("m", str(task_dir), **hparams)
    with pytest.raises(
        UserError, match="freeze_layers is 9, but the model has"
    ):
        finetuning.run(config, Console(io.StringIO()))


@pytest.fixture
def remote(data_dir, sst, tmp_path, tiny_vocab):
    """Return a folder in TensorFlow's memory with records, task, vocabulary."""
    root = "ram://remote"
    for folder in (data_dir, tmp_path):
        for path in folder.rglob("*.*"):
            target = f"{root}/{path.relative_to(folder)}"
            tf.io.gfile.makedirs(target.rpartition("/")[0])
            tf.io.gfile.copy(str(path), target, overwrite=True)
    tf.io.gfile.copy(str(tiny_vocab), f"{root}/vocab.txt", overwrite=True)
    yield root
    tf.io.gfile.rmtree(root)


def listing(folder):
    return {name.rstrip("/") for name in tf.io.gfile.listdir(folder)}


@pytest.mark.slow
def test_all_files_of_runs_can_be_remote(
    remote, tiny_pretraining, tiny_finetuning
):
    console = Console(io.StringIO())
    vocab = {"vocab_file": f"{remote}/vocab.txt"}
    every = ("save_checkpoints_steps", "eval_every_n_steps")
    settings = {**tiny_pretraining, **vocab, **dict.fromkeys(every, 2)}
    settings |= {"keep_checkpoint_max": 2, "keep_best": "loss"}
    for steps in (4, 6):
        settings["num_train_steps"] = steps
        config = PretrainingConfig.create("m", remote, **settings)
        assert config.model_dir.startswith("ram://")
        assert pretraining.run(config, console)["global_step"] == steps
    folder = config.model_dir
    names = {"checkpoint", "best", "export", "results", "train_log.jsonl"}
    assert names <= listing(folder)
    assert "model.ckpt-2.index" not in listing(folder)
    with tf.io.gfile.GFile(f"{folder}/eval_log.jsonl") as log:
        rows = [json.loads(line) for line in log.read().splitlines()]
    assert [row["step"] for row in rows] == [2, 4, 6]
    tuning = {**tiny_finetuning, **vocab, "task_names": ["sst"]}
    tuning |= {"init_checkpoint": folder, "num_train_epochs": 1.0}
    tuning |= {"max_seq_length": 16, "train_batch_size": 4}
    tuning.pop("model_hparam_overrides")
    tuned = FinetuningConfig.create("m", remote, **tuning)
    (trial,) = finetuning.run(tuned, console)["trials"]
    assert 0 <= trial["results"]["sst"]["accuracy"] <= 100
    assert "checkpoint" in listing(trial["model_dir"])
    settings |= {"do_train": False, "do_eval": True}
    config = PretrainingConfig.create("m", remote, **settings)
    again = pretraining.run(config, console)
    assert again["loss"] == pytest.approx(rows[-1]["loss"], rel=1e-6)
