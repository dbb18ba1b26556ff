# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""`run_pretraining.py` and `run_finetuning.py` as a person uses them."""

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
from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from electra_tf.finetuning import runner as finetuning
from electra_tf.pretraining import runner as pretraining
from electra_tf.training.summaries import Console

ROOT = pathlib.Path(__file__).resolve().parents[2]

# As a program starts: through `run_program`, TensorFlow imported late.
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
    given = ("--hparams", json.dumps(hparams), *flags)
    return [sys.executable, program, *where, *given]


def call(*args):
    return subprocess.run(
        command(*args), cwd=ROOT, capture_output=True, text=True, timeout=600
    )


def stop(log, signal_number, *args):
    """Runs until there are three rows in `log`, then sends a signal."""
    child = subprocess.Popen(
        command(*args),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.time() + 500
    while not (log.exists() and log.read_text().count("\n") >= 3):
        assert time.time() < deadline and child.poll() is None
        time.sleep(0.05)
    child.send_signal(signal_number)
    output, errors = child.communicate(timeout=120)
    assert child.returncode == 128 + signal_number, errors
    assert "Run the same command again to continue" in output
    assert "Traceback" not in errors


def pretrain_here(data_dir, hparams):
    """In this process; returns what was printed."""
    output = io.StringIO()
    config = PretrainingConfig.create("m", str(data_dir), **hparams)
    pretraining.run(config, Console(output))
    return output.getvalue()


def test_a_start_imports_nothing_it_needs_only_at_the_end():
    names = {"keras", "matplotlib", "sklearn", "scipy.stats", "tensorflow_text"}
    done = subprocess.run(
        [sys.executable, "-c", START.format(names=names)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip().endswith("[]"), done.stdout + done.stderr


def test_stopped_pretraining_goes_on_and_its_model_is_evaluated(
    data_dir, settings, tmp_path
):
    hparams = settings(
        num_train_steps=1_000_000, save_checkpoints_steps=1_000_000
    )
    run = tmp_path / "run"
    log = run / "train_log.jsonl"
    stop(log, signal.SIGTERM, "run_pretraining.py", data_dir, hparams)
    newest = tf.train.latest_checkpoint(run)
    step = int(newest.rsplit("-", 1)[1])
    assert step >= 3
    assert json.loads(log.read_text().splitlines()[-1])["step"] == step

    total = hparams["num_train_steps"] = step + 2
    continued = call("run_pretraining.py", data_dir, hparams)
    assert continued.returncode == 0, continued.stderr
    assert f"Continuing from {newest}" in continued.stdout
    assert f"num_train_steps: 1000000 -> {total}" in continued.stdout
    assert f"{total}/{total} = 100.0%, SPS: " in continued.stdout
    assert "train | step" not in continued.stdout  # orbit's own line
    assert json.loads((run / "config.json").read_text())["seed"] == 0
    assert (run / "curves.png").stat().st_size > 1000
    assert not (run / "results").exists()
    assert "Already trained to step" in pretrain_here(data_dir, hparams)

    pretrain_here(data_dir, {**hparams, "do_train": False, "do_eval": True})
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


def test_mistakes_of_pretraining_are_messages(data_dir, settings, tmp_path):
    flags = ("--do_train=0", "--do_eval")
    result = call("run_pretraining.py", data_dir, settings("nothing"), *flags)
    assert result.returncode == 1
    assert "error: do_eval: there is no checkpoint in" in result.stderr
    assert "Traceback" not in result.stderr

    def complaint(**changes):
        with pytest.raises(UserError) as raised:
            pretrain_here(data_dir, {**settings(), **changes})
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


def test_help_and_config_need_no_tensorflow(task_dir, hparams):
    helped = call("run_finetuning.py", task_dir, {}, "--help")
    assert helped.returncode == 0
    assert "--layerwise_lr_decay" in helped.stdout
    shown = call(
        "run_finetuning.py",
        task_dir,
        hparams,
        "--task_names=rte",
        "--print_config",
    )
    assert shown.returncode == 0 and "tensorflow" not in shown.stderr.lower()
    assert "num_train_epochs" in shown.stdout and "10.0" in shown.stdout


def test_mistakes_of_finetuning_are_messages(task_dir, hparams):
    done = call("run_finetuning.py", task_dir, hparams, "--task_names=cola")
    assert done.returncode == 1
    assert "no such file" in done.stderr and "Traceback" not in done.stderr
    config = FinetuningConfig.create(
        "m", str(task_dir), **hparams, freeze_layers=9
    )
    with pytest.raises(UserError, match="freeze_layers is 9 but the model has"):
        finetuning.run(config, Console(io.StringIO()))


def test_stopped_finetuning_goes_on_where_it_was(task_dir, hparams):
    arguments = (
        *("run_finetuning.py", task_dir, hparams),
        *("--num_trials=2", "--num_train_epochs=60"),
    )
    log = task_dir / "models/m/finetuning_models/sst_model_1/train_log.jsonl"
    stop(log, signal.SIGINT, *arguments)
    done = call(*arguments)
    assert done.returncode == 0, done.stderr
    assert "Continuing from" in done.stdout
    results = task_dir / "models/m/results/sst_results.pkl"
    assert len(pickle.loads(results.read_bytes())) == 2
    assert "Results of 2 trial(s)" in done.stdout
