# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs and builds that diverge, collide, are killed or are stopped."""

import io
import os
import re
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints import tf1
from electra_tf.checkpoints.formats import open_weights
from electra_tf.files.locks import LOCK_FILE
from electra_tf.pretraining import runner
from electra_tf.training.console import Console
from electra_tf.training.non_finite_loss import NonFiniteLossError
from electra_tf.training.preemption import PreemptionHandler
from electra_tf.training.run import MAX_REWINDS
from tests.conftest import ROOT, read_json, refused
from tests.data.conftest import corpus_dir, vocab_file  # noqa: F401
from tests.training.conftest import start_run  # noqa: F401

HOLDER = """
import sys, time
from electra_tf.files.locks import folder_lock
with folder_lock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def _start(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_second_run_is_refused_until_the_first_is_dead(start_run, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    first = _start(HOLDER, folder)
    try:
        assert first.stdout.readline() == "held\n"
        host = re.escape(os.uname().nodename)
        refused(f"process {first.pid} on {host}", start_run(total=2).train)
        again = start_run(total=2, overwrite=True)
        refused(f"process {first.pid} on", again.train)
    finally:
        first.kill()
        first.wait()
    assert (folder / LOCK_FILE).exists()  # The lock ended with its process.
    assert start_run(total=2).train()["global_step"] == 2
    assert not (folder / LOCK_FILE).exists()


@pytest.fixture
def poisoned(start_run):
    """Return a factory of runs with one batch of NaN."""

    def start():
        values = tf.random.stateless_normal([64, 4, 2], [1, 2]).numpy()
        values[25] = np.nan
        data = tf.data.Dataset.from_tensor_slices({"x": values}).repeat()
        run = start_run(total=40, log=4, on_nonfinite="rewind")
        run.prepare_training = lambda: (data, run.config.total)
        return run

    return start


def test_a_rewound_run_continues_with_other_batches(poisoned, tmp_path):
    run = poisoned()
    assert run.train()["global_step"] == 40
    assert np.isfinite(run.model.weights.numpy()).all()
    row = read_json(tmp_path / "run" / "rewinds.jsonl")
    assert (row["step"], row["back_to"]) == (28, 20)
    output = run.stream.getvalue()
    assert "WARNING: step 26 has a number that is not finite" in output
    assert "model.ckpt-20, and continuing with the following batches" in output
    assert (tmp_path / "run" / "non_finite_step_26.npz").exists()
    assert [row["step"] for row in run.train_log.rows] == [1, *range(4, 41, 4)]
    assert [row["steps"] for row in run.train_log.rows][1:] == [3] + [4] * 9
    assert all(row["steps_per_second"] > 0 for row in run.train_log.rows[1:])
    # A run that is killed after rewinding continues to equal results.
    os.rename(tmp_path / "run", tmp_path / "whole")
    dead = poisoned()
    dead.stops = lambda _: dead._rewinds and dead.global_step > 22 and 1 / 0
    with pytest.raises(ZeroDivisionError):
        dead.train()
    again = poisoned()
    again.train()
    np.testing.assert_array_equal(
        again.model.weights.numpy(), run.model.weights.numpy()
    )


def test_a_run_that_diverges_again_and_again_stops(start_run):
    run = start_run(save=2, nan_at=5, on_nonfinite="rewind")
    with pytest.raises(NonFiniteLossError, match=r"model\.ckpt-4 3 times"):
        run.train()
    assert run.stream.getvalue().count("WARNING: step 5") == MAX_REWINDS


def test_divergence_is_reported_with_a_remedy(data_dir, tiny_config, tmp_path):
    config = tiny_config(
        data_dir=data_dir,
        model_dir=str(tmp_path / "model"),
        learning_rate=1e3,
        num_warmup_steps=0,
        num_train_steps=60,
        weight_decay_rate=10.0,
    )
    with pytest.raises(NonFiniteLossError, match="Lower learning_rate.*rewind"):
        runner.run(config, Console(io.StringIO()))
    assert list((tmp_path / "model").glob("non_finite_step_*.npz"))


def test_files_that_a_kill_prevented_are_written_at_the_next_start(
    data_dir, tiny_config, tmp_path, with_pictures
):
    folder = tmp_path / "model"
    config = tiny_config(
        data_dir=data_dir,
        model_dir=str(folder),
        num_train_steps=4,
        eval_every_n_steps=4,
        keep_best="loss",
        results_txt=str(folder / "results" / "r.txt"),
        results_pkl=str(folder / "results" / "r.pkl"),
        results_json=str(folder / "results" / "r.json"),
    )
    runner.run(config, Console(io.StringIO()))
    missing = [
        folder / "results" / "r.txt",
        folder / "results" / "r.json",
        folder / "export" / "generator" / "model.ckpt.index",
        folder / "curves.png",
        folder / "best" / "best.json",
    ]
    restored = (missing[0], missing[-1])
    contents = [path.read_bytes() for path in restored]
    untouched = folder / "export" / "discriminator" / "model.ckpt.index"
    changed = untouched.stat().st_mtime_ns
    for path in missing:
        path.unlink()
    assert runner.run(config, Console(io.StringIO()))["global_step"] == 4
    assert [path.read_bytes() for path in restored] == contents
    assert read_json(missing[1])["step"] == 4
    assert open_weights(str(folder / "export" / "generator")).global_step == 4
    assert missing[3].stat().st_size > 1000
    assert untouched.stat().st_mtime_ns == changed


def test_a_stop_while_a_run_starts_is_an_interruption(start_run):
    run = start_run(total=4)
    run.preemption.signal_number = signal.SIGTERM
    result = run.train()
    assert (result["interrupted"], result["global_step"]) == (15, 0)


def test_a_run_stopped_at_its_end_finishes_at_the_next_start(start_run):
    finished, results = [], []
    for stop_at in (4, None):
        run = start_run(total=4, stop_at=stop_at)
        run.finish = lambda again=False: finished.append(again)
        run.is_finished = lambda due, run=run: run.global_step == 4
        results.append((run.train().get("interrupted"), list(finished)))
    assert results == [(15, []), (None, [True])]


LEAVING = """
import os, signal, sys, time
from electra_tf.training.preemption import PreemptionHandler
with PreemptionHandler(float(sys.argv[1])):
    print("ready", flush=True)
    while True:  # like a long operation, which handles no signal
        signal.pthread_sigmask(signal.SIG_BLOCK, []) or time.sleep(0.01)
"""


def test_a_run_exits_some_time_after_sigterm_in_any_operation():
    process = _start(LEAVING, 0.5)
    assert process.stdout.readline() == "ready\n"
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert 0.4 < time.monotonic() - started < 10
    assert "0.5 seconds after SIGTERM: exiting now" in output


def test_a_run_that_exits_in_time_is_not_ended():
    with PreemptionHandler(0.05) as preemption:
        os.kill(os.getpid(), signal.SIGTERM)
        assert preemption.requested()
    time.sleep(0.2)
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.parametrize(
    "content", [b'{"step": 5, "lo', b"\xff\xfe", b'{"step": 5, "loss": "x"}']
)
def test_a_damaged_line_of_a_log_is_skipped(start_run, tmp_path, content):
    start_run(total=20, stop_at=13).train()
    log = tmp_path / "run" / "train_log.jsonl"
    lines = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([lines[0], content, *lines[2:]]))
    run = start_run(total=20)
    run.train()
    assert [row["step"] for row in run.train_log.rows] == [1, 10, 15, 20]
    output = run.stream.getvalue()
    assert f"WARNING: {log}:2: skipping a corrupt line: found" in output


@pytest.mark.parametrize(
    ("name", "keep", "message"),
    [
        ("train", None, "step 0, but the run is at step 20"),
        ("train", -1, ":5: skipping a corrupt line: found {};"),
        ("eval", 1, "step 5, but the run is at step 20"),
    ],
)
def test_missing_rows_of_logs_are_reported(
    start_run, tmp_path, name, keep, message
):
    start_run(total=20, evaluate=5).train()
    path = tmp_path / "run" / f"{name}_log.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    if keep is None:
        path.unlink()
    else:
        damage = "{}\n" if keep < 0 else ""
        path.write_text("".join(lines[:keep]) + damage)
    run = start_run(total=25, evaluate=5)
    run.train()
    assert f"WARNING: {path}" in run.stream.getvalue()
    assert message in run.stream.getvalue()


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"model_checkpoint_path: 7", b"", b"\0" * 40]
)
def test_a_damaged_checkpoint_file_is_refused(start_run, tmp_path, content):
    start_run(total=5).train()
    path = tmp_path / "run" / "checkpoint"
    path.write_bytes(content)
    refused(re.escape(str(path)), start_run(total=10).train)
    refused(re.escape(str(path)), open_weights, str(tmp_path / "run"))


def test_a_checkpoint_file_cannot_name_a_different_folder(start_run, tmp_path):
    start_run(total=5).train()
    os.rename(tmp_path / "run", tmp_path / "other")
    (tmp_path / "run").mkdir()
    elsewhere = str(tmp_path / "other" / "model.ckpt-5")
    state = f'model_checkpoint_path: "{elsewhere}"\n'
    (tmp_path / "run" / "checkpoint").write_text(state)
    refused(r"names model\.ckpt-5, whose files", start_run(total=10).train)
    message = "not in the same folder. Pass the path"
    refused(message, tf1.find_checkpoint, str(tmp_path / "run"))
    assert open_weights(elsewhere).global_step == 5


def test_files_of_a_killed_save_are_removed(start_run, tmp_path):
    start_run(total=5).train()
    part = tmp_path / "run" / "model.ckpt-7_temp" / "part-00000"
    part.parent.mkdir()
    part.touch()
    start_run(total=10).train()
    assert not part.parent.exists()


def test_a_checkpoint_that_cannot_be_written_is_an_error(start_run, tmp_path):
    (tmp_path / "run" / "model.ckpt-5.index").mkdir(parents=True)
    (tmp_path / "run" / "model.ckpt-5.index" / "x").touch()
    refused("-5 cannot be written.*complete", start_run(total=10, save=5).train)
    assert tf1.find_latest(str(tmp_path / "run")).endswith("model.ckpt-0")


@pytest.fixture
def command(tmp_path, vocab_file, corpus_dir):
    text = (corpus_dir / "text_0.txt").read_text()
    for name in "abcd":
        (corpus_dir / name).write_text(text * 100)
    return [
        sys.executable,
        str(ROOT / "build_pretraining_dataset.py"),
        f"--corpus-dir={corpus_dir}",
        f"--vocab-file={vocab_file}",
        "--num-processes=3",
        "--num-shards=6",
        "--max-seq-length=32",
        "--output-dir",
        str(tmp_path / "out"),
    ]


def _is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def _run(command, output):
    command[command.index("--output-dir") + 1] = str(output)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _wait_for(condition, seconds=30):
    until = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < until:
        time.sleep(0.01)
    return value


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent(command, tmp_path, number):
    _run(command, tmp_path / "undisturbed")
    command[command.index("--output-dir") + 1] = str(tmp_path / "killed")
    parent = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    written = tmp_path / "killed" / ".tmp-pretrain_data.tfrecord-5-of-6"
    assert _wait_for(written.exists)
    with open(f"/proc/{parent.pid}/task/{parent.pid}/children") as file:
        workers = [int(child) for child in file.read().split()]
    assert len(workers) == 3
    parent.send_signal(number)
    parent.wait()
    assert _wait_for(lambda: not any(map(_is_running, workers)), 20)
    _run(command, tmp_path / "killed")
    undisturbed, again = (
        {p.name: p.read_bytes() for p in (tmp_path / n).glob("*tfrecord*")}
        for n in ("undisturbed", "killed")
    )
    assert again == undisturbed
    assert not list((tmp_path / "killed").glob(".tmp-*"))


def test_a_full_disk_ends_a_build_with_a_message(command, tmp_path):
    def small_files():  # A limit on file size imitates a full disk.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    texts = {"capture_output": True, "text": True}
    failed = subprocess.run(command, preexec_fn=small_files, **texts)
    assert failed.returncode == 1
    (line,) = failed.stderr.splitlines()
    assert line.startswith(f"error: {tmp_path / 'out'}: File too large")
    assert "free space" in line
    assert not list((tmp_path / "out").glob("pretrain_data*"))
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert len(list((tmp_path / "out").glob("pretrain_data*"))) == 6
