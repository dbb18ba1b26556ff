# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""`run_pretraining.py` as a person uses it."""

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
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.pretraining import runner
from electra_tf.training.summaries import Console

ROOT = pathlib.Path(__file__).resolve().parents[2]


def command(data_dir, hparams, *flags):
    return [
        sys.executable,
        "run_pretraining.py",
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


def call_here(data_dir, hparams):
    """The same without a process; returns what was printed."""
    output = io.StringIO()
    config = PretrainingConfig.create("m", str(data_dir), **hparams)
    runner.run(config, Console(output))
    return output.getvalue()


def test_a_stopped_command_goes_on_and_its_model_is_evaluated(
    data_dir, settings, tmp_path
):
    hparams = settings(
        num_train_steps=1_000_000, save_checkpoints_steps=1_000_000
    )
    run = tmp_path / "run"
    log = run / "train_log.jsonl"
    child = subprocess.Popen(
        command(data_dir, hparams),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.time() + 200
    while not (log.exists() and log.read_text().count("\n") >= 3):
        assert time.time() < deadline and child.poll() is None
        time.sleep(0.1)
    child.send_signal(signal.SIGTERM)
    output, errors = child.communicate(timeout=60)
    assert child.returncode == 128 + signal.SIGTERM
    assert "Run the same command again to continue" in output
    assert "Traceback" not in errors
    newest = tf.train.latest_checkpoint(run)
    step = int(newest.rsplit("-", 1)[1])
    assert step >= 3
    assert json.loads(log.read_text().splitlines()[-1])["step"] == step

    total = hparams["num_train_steps"] = step + 2
    continued = call(data_dir, hparams)
    assert continued.returncode == 0, continued.stderr
    assert f"Continuing from {newest}" in continued.stdout
    assert f"num_train_steps: 1000000 -> {total}" in continued.stdout
    assert f"{total}/{total} = 100.0%, SPS: " in continued.stdout
    assert "train | step" not in continued.stdout  # orbit's own line
    assert json.loads((run / "config.json").read_text())["seed"] == 0
    assert (run / "curves.png").stat().st_size > 1000
    assert not (run / "results").exists()
    assert "Already trained to step" in call_here(data_dir, hparams)

    call_here(data_dir, {**hparams, "do_train": False, "do_eval": True})
    lines = (run / "results" / "r.txt").read_text().splitlines()
    assert lines == sorted(lines)
    values = dict(line.split(" = ") for line in lines)
    for name in (
        "disc_accuracy disc_auc disc_auc_frequency_rank disc_auc_real_tokens"
        " disc_loss disc_precision disc_recall loss masked_lm_accuracy"
        " masked_lm_accuracy_at_mask masked_lm_loss sampled_masked_lm_accuracy"
        " masked_lm_most_frequent_accuracy"
    ).split():
        assert name in values
    assert values["global_step"] == str(total)
    assert values["examples"] == "10"  # The last, smaller batch as well.
    pickled = pickle.loads((run / "results" / "r.pkl").read_bytes())
    assert {k: str(v) for k, v in pickled.items()} == values
    record = json.loads((run / "results" / "r.json").read_text())
    assert record["metrics"] == pickled


def test_users_mistakes_are_messages(data_dir, settings, tmp_path):
    result = call(data_dir, settings("nothing"), "--do_train=0", "--do_eval")
    assert result.returncode == 1
    assert "error: do_eval: there is no checkpoint in" in result.stderr
    assert "Traceback" not in result.stderr

    def complaint(**changes):
        with pytest.raises(UserError) as raised:
            call_here(data_dir, {**settings(), **changes})
        return str(raised.value)

    if not tf.config.list_physical_devices("GPU"):
        assert "require_gpu is true" in complaint(require_gpu=True)
    assert not (tmp_path / "run").exists()
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    whole = data_dir / "pretrain_tfrecords" / "pretrain_data.tfrecord-0-of-3"
    changed = bytearray(whole.read_bytes())
    changed[-30] ^= 1  # Inside the last record, whose checksum is now wrong.
    (damaged / "pretrain_data.tfrecord-0-of-1").write_bytes(changed)
    assert "record" in complaint(pretrain_tfrecords=f"{damaged}/*")
    if os.geteuid():  # root may write anywhere
        (tmp_path / "locked").mkdir(mode=0o500)
        locked = str(tmp_path / "locked" / "run")
        assert "cannot be written" in complaint(model_dir=locked)
