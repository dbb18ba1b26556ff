# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs that lose their output before they are stopped save a checkpoint."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow
LONG = 1_000_000  # steps; no run here reaches it


@pytest.fixture
def stop(tmp_path):
    """Return a function that signals a run without output.

    It returns the exit status. `lost`: "tee": the reader of both streams ends
    before the signal; "stderr": standard error is closed from the start.
    """
    running = []

    def call(command, is_at_work, lost, number):
        reader, writer = os.pipe()
        settings = {"stdout": writer, "stderr": writer}
        if lost == "stderr":
            settings = {"stdout": writer, "preexec_fn": lambda: os.close(2)}
        running.append(
            subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
                **settings,
            )
        )
        os.close(writer)
        os.set_blocking(reader, False)
        deadline = time.monotonic() + 300
        while not is_at_work():
            assert running[-1].poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        os.close(reader)
        running[-1].send_signal(number)
        return running[-1].wait(120)

    yield call
    for process in running:
        process.kill()
        process.wait()


def assert_saved(folder):
    """Assert that the last checkpoint is not before the last logged step."""
    *_, last = (folder / "train_log.jsonl").read_text().splitlines()
    steps = [
        int(path.stem.removeprefix("model.ckpt-"))
        for path in folder.glob("model.ckpt-*.index")
    ]
    assert max(steps) >= json.loads(last)["step"]


def logs_of(folder):
    log = folder / "train_log.jsonl"
    return lambda: log.exists() and log.read_text().count("\n") >= 3


@pytest.mark.parametrize(
    ("lost", "number"),
    [("tee", signal.SIGINT), ("stderr", signal.SIGTERM)],
    ids=["tee_sigint", "stderr_sigterm"],
)
def test_a_stopped_pretraining_saves(
    data_dir, settings, tmp_path, stop, lost, number
):
    many = ("num_train_steps", "save_checkpoints_steps")
    hparams = settings(**dict.fromkeys(many, LONG))
    command = ["run_pretraining.py", f"--data-dir={data_dir}", "--model-name=m"]
    command += ["--hparams", json.dumps(hparams)]
    run = tmp_path / "run"
    assert stop(command, logs_of(run), lost, number) == 128 + number
    assert_saved(run)


def test_a_stopped_finetuning_saves(task_dir, hparams, stop):
    hparams |= {"num_train_epochs": 1e5, "save_checkpoints_steps": LONG}
    command = ["run_finetuning.py", f"--data-dir={task_dir}", "--model-name=m"]
    command += ["--hparams", json.dumps(hparams)]
    run = pathlib.Path(task_dir, "models/m/finetuning_models/sst_model_1")
    status = stop(command, logs_of(run), "tee", signal.SIGINT)
    assert status == 128 + signal.SIGINT
    assert_saved(run)


def test_a_stopped_build_continues(tiny_vocab, tmp_path, stop, run_python):
    corpus, records = tmp_path / "corpus", tmp_path / "records"
    corpus.mkdir()
    for name in "ab":
        (corpus / name).write_text("the film was in the of\n" * 300_000)
    command = ["build_pretraining_dataset.py", f"--corpus-dir={corpus}"]
    command += [f"--vocab-file={tiny_vocab}", f"--output-dir={records}"]
    command += ["--num-processes=2", "--num-shards=2", "--max_seq_length=16"]
    status = stop(command, records.exists, "tee", signal.SIGINT)
    assert status == 128 + signal.SIGINT
    assert not (records / "pretrain_data.tfrecord-0-of-2").exists()
    for name in "ab":
        (corpus / name).write_text("the film was in the of\n" * 300)
    run_python(*command, "--overwrite")
    assert (records / "pretrain_data.tfrecord-0-of-2").exists()
