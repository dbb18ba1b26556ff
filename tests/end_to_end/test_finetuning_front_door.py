# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""`run_finetuning.py` as a person uses it."""

import io
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time

import pytest

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.finetuning import runner
from electra_tf.training.summaries import Console

ROOT = pathlib.Path(__file__).resolve().parents[2]


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


def test_mistakes_are_messages(task_dir, hparams):
    done = call(task_dir, hparams, "--task_names=cola")
    assert done.returncode == 1
    assert "no such file" in done.stderr and "Traceback" not in done.stderr
    config = FinetuningConfig.create(
        "m", str(task_dir), **hparams, freeze_layers=9
    )
    with pytest.raises(UserError, match="freeze_layers is 9 but the model has"):
        runner.run(config, Console(io.StringIO()))


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
