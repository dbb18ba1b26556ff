# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""`run_finetuning.py` as a person uses it."""

import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS = ["the", "of", "and", "in", "to"]


@pytest.fixture
def task_dir(tmp_path):
    """A data directory with thirty made-up rows of SST."""
    directory = tmp_path / "finetuning_data" / "sst"
    directory.mkdir(parents=True)
    random = np.random.RandomState(0)
    for name, count in (("train", 30), ("dev", 11)):
        lines = ["sentence\tlabel"]
        for i in range(count):
            words = random.choice(WORDS, random.randint(2, 12))
            lines.append(f"{' '.join(words)}\t{i % 2}")
        (directory / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def hparams(tiny_vocab):
    return {
        "task_names": ["sst"],
        "vocab_file": tiny_vocab,
        "vocab_size": 200,
        "embedding_size": 8,
        "max_seq_length": 32,
        "train_batch_size": 4,
        "eval_batch_size": 4,
        "predict_batch_size": 4,
        "init_checkpoint": None,
        "learning_rate": 1e-3,
        "log_every_n_steps": 2,
        "model_hparam_overrides": {
            "hidden_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        },
    }


def command(data_dir, hparams, *flags):
    return [
        sys.executable,
        "run_finetuning.py",
        "--data-dir",
        str(data_dir),
        "--model-name",
        "m",
        "--hparams",
        json.dumps(hparams),
        *flags,
    ]


def call(*args):
    return subprocess.run(
        command(*args), cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def test_help_and_config_need_no_tensorflow(task_dir, hparams):
    helped = call(task_dir, {}, "--help")
    assert helped.returncode == 0
    assert "--layerwise_lr_decay" in helped.stdout
    shown = call(task_dir, hparams, "--task_names=rte", "--print_config")
    assert shown.returncode == 0 and "tensorflow" not in shown.stderr.lower()
    assert "num_train_epochs" in shown.stdout and "10.0" in shown.stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--task_names=ssst"], "unknown task ssst. Nearest: sst"),
        (["--task_names=cola"], "no such file"),
        (["--freeze_layers=9"], "freeze_layers is 9 but the model has 1"),
    ],
)
def test_mistakes_are_messages(task_dir, hparams, flags, message):
    done = call(task_dir, hparams, *flags)
    assert done.returncode == 1
    assert message in done.stderr and "Traceback" not in done.stderr


def test_a_stopped_command_goes_on_where_it_was(task_dir, hparams):
    flags = ("--num_trials=2", "--num_train_epochs=60")
    process = subprocess.Popen(
        command(task_dir, hparams, *flags),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    log = task_dir / "models/m/finetuning_models/sst_model_1/train_log.jsonl"
    deadline = time.time() + 120
    while time.time() < deadline and process.poll() is None:
        if log.exists() and log.read_text().count("\n") >= 3:
            process.send_signal(signal.SIGINT)
            break
        time.sleep(0.05)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGINT, err
    assert "Run the same command again" in out

    done = call(task_dir, hparams, *flags)
    assert done.returncode == 0, done.stderr
    assert "Continuing from" in done.stdout
    results = task_dir / "models/m/results/sst_results.pkl"
    assert len(pickle.loads(results.read_bytes())) == 2
    assert "Results of 2 trial(s)" in done.stdout


@pytest.mark.multi_device
def test_two_devices_give_the_scores_of_one(task_dir, hparams):
    hparams["num_train_epochs"] = 1.0
    done = subprocess.run(
        [
            sys.executable,
            str(
                pathlib.Path(__file__).with_name("finetuning_on_two_devices.py")
            ),
            str(task_dir),
            json.dumps(hparams),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    one, two, parts = json.loads(done.stdout.partition("RESULT")[2])
    for found in (two, parts):
        for name, value in one["sst"].items():
            assert found["sst"][name] == pytest.approx(value, abs=1e-4), name
