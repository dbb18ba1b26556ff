# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two workers, or two devices of one machine, train like one device."""

import contextlib
import functools
import io
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from configure.pretraining import PretrainingConfig
from electra_tf.pretraining import runner
from electra_tf.training.console import Console
from electra_tf.training.logs import read_rows
from tests.conftest import ROOT, marked_heavy, read_json
from tests.end_to_end.conftest import TIMES, assert_same_tensors, saved_tensors
from tests.pretraining.conftest import TWO_STAGE

PROGRAM = pathlib.Path(__file__).resolve().with_name("worker.py")
SECONDS = 600
NOTICED_WITHIN = 60  # seconds after a worker ended: docs/distributed.md


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for open_socket in sockets:
            open_socket.bind(("127.0.0.1", 0))
        return [open_socket.getsockname()[1] for open_socket in sockets]


@pytest.fixture
def run_workers(data_dir, tmp_path):
    """Return a function that runs workers; it returns statuses and outputs.

    `worker_flags` are flags by worker; worker `dies[0]` kills itself at step
    `dies[1]`.
    """

    def run(
        hparams,
        *flags,
        count=2,
        worker_flags=None,
        dies=(None, 0),
        data=data_dir,
    ):
        workers = [f"127.0.0.1:{port}" for port in free_ports(count)]
        started = []
        for index in range(count):
            task = {"type": "worker", "index": index}
            cluster = {"cluster": {"worker": workers}, "task": task}
            command = [
                sys.executable,
                str(PROGRAM),
                f"--data-dir={data}",
                "--model-name=m",
                f"--hparams={json.dumps(hparams)}",
                *flags,
                *(worker_flags or {}).get(index, ()),
                "--distribution_strategy=multi_worker",
            ]
            env = {
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "TF_CONFIG": json.dumps(cluster),
                "DIES_AFTER": str(dies[1] if dies[0] == index else 0),
            }
            output = tmp_path / f"output_{index}.txt"
            with open(output, "w") as file:
                to = {"cwd": ROOT, "stdout": file, "stderr": file}
                process = subprocess.Popen(command, env=env, **to)
            started.append((process, output))
        return finish(started)

    return run


def finish(started):
    """Wait for all workers; once one failed, for at most NOTICED_WITHIN."""
    processes = [process for process, _ in started]
    deadline = time.monotonic() + SECONDS
    try:
        while any(process.poll() is None for process in processes):
            if any(process.poll() for process in processes):
                deadline = min(deadline, time.monotonic() + NOTICED_WITHIN)
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        codes = [process.poll() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    outputs = [output.read_text() for _, output in started]
    # pytest shows the outputs if an assertion about them fails.
    for number, (code, text) in enumerate(zip(codes, outputs, strict=True)):
        print(f"--- worker {number}, exit status {code}\n{text[-4000:]}")
    return codes, outputs


def tensors(directory, step=12):
    path = directory / f"model.ckpt-{step}"
    return saved_tensors(path, ("model/", "optimizer/"))


def trials(folder):
    return read_json(folder / "results" / "sst_results.json")["trials"]


def without_dropout(hparams):
    hparams["model_hparam_overrides"] |= {
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    return hparams


@pytest.fixture
def of_workers(data_dir, settings):
    """Return hparams of 20 steps, a checkpoint every 2 and two evaluations."""
    make_settings = functools.partial(
        settings,
        save_checkpoints_steps=2,
        keep_checkpoint_max=0,
        eval_every_n_steps=10,
        eval_tfrecords=f"{data_dir}/pretrain_tfrecords/*-0-of-*",
    )
    return lambda name: without_dropout(make_settings(name))


def assert_close(tensors, expected, atol=1e-5):
    assert tensors.keys() == expected.keys()
    assert any(name.startswith("optimizer/") for name in expected)
    bounds = {"rtol": 0, "atol": atol}
    for name, value in expected.items():
        np.testing.assert_allclose(tensors[name], value, **bounds, err_msg=name)


def assert_metrics(row, expected):
    """Compare metrics of 27 examples, whose last batch cannot be shared."""
    assert (expected["examples"], expected["batches"]) == (27, 7)
    expected_row = {name: expected[name] for name in row}
    assert {"examples", "loss", "disc_auc"} <= expected_row.keys()
    assert row == pytest.approx(expected_row, rel=1e-6)


@pytest.mark.slow
@pytest.mark.multi_device
@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.heavy)])
def test_one_device_and_workers_continue_each_other_after_a_lost_worker(
    data_dir, of_workers, tmp_path, run_workers, count
):
    """Train to step 4 on one device, to 13 on workers, then on one device."""
    device_run, workers_run = tmp_path / "one", tmp_path / "two"

    def run_here(name):
        settings = of_workers(name)
        config = PretrainingConfig.create("m", str(data_dir), **settings)
        return runner.run(config, Console(io.StringIO()))

    run_here("one")
    shutil.copytree(device_run, workers_run)
    # The copy looks like a run that was killed after step 4.
    for path in workers_run.glob("model.ckpt-*"):
        if int(path.stem.rpartition("-")[2]) > 4:
            path.unlink()
    (workers_run / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-4"\n'
    )
    dies = (count - 1, 13)
    codes, outputs = run_workers(of_workers("two"), count=count, dies=dies)
    assert codes == [75] * (count - 1) + [-signal.SIGKILL]
    for text in outputs[:-1]:
        assert "Continuing from" in text
        assert "error: another worker has ended or cannot be reached" in text
        assert "Traceback" not in text
    assert_same_tensors(tensors(workers_run / "worker_1"), tensors(workers_run))
    assert_close(tensors(workers_run), tensors(device_run))
    expected = read_rows(str(device_run / "eval_log.jsonl"))[0]
    for folder in (workers_run, workers_run / "worker_1"):
        assert_metrics(read_rows(str(folder / "eval_log.jsonl"))[0], expected)
    assert run_here("two")["global_step"] == 20
    assert_close(tensors(workers_run, 20), tensors(device_run, 20))


@pytest.mark.heavy
@pytest.mark.multi_device
@pytest.mark.parametrize("victim", [0, 1])
def test_killed_workers_continue_to_the_same_weights(
    of_workers, tmp_path, run_workers, victim
):
    assert run_workers(of_workers("whole"))[0] == [0, 0]
    hparams = of_workers("cut")
    codes, _ = run_workers(hparams, dies=(victim, 7))
    assert codes[victim] == -signal.SIGKILL
    assert codes[1 - victim] in (75, -signal.SIGABRT)
    assert run_workers(hparams)[0] == [0, 0]
    whole, cut = (tensors(tmp_path / name, 20) for name in ("whole", "cut"))
    assert_same_tensors(cut, whole)
    # A separate evaluation gives the same metrics.
    result = tmp_path / "cut" / "results" / "r.json"
    before = read_json(result)["metrics"]
    result.unlink()
    assert run_workers(hparams, "--do_train=false", "--do_eval")[0] == [0, 0]
    assert read_json(result)["metrics"] == pytest.approx(before, rel=1e-6)


@pytest.mark.slow
@pytest.mark.multi_device
def test_a_worker_ends_soon_after_its_partner_ended_before_the_meeting(
    data_dir, of_workers, tmp_path
):
    workers = [f"127.0.0.1:{port}" for port in free_ports(3)]
    task = {"type": "worker", "index": 0}
    cluster = {"cluster": {"worker": workers}, "task": task}
    process = subprocess.Popen(
        [
            sys.executable,
            str(ROOT / "run_pretraining.py"),
            f"--data-dir={data_dir}",
            "--model-name=m",
            f"--hparams={json.dumps(of_workers('met'))}",
            "--distribution_strategy=multi_worker",
        ],
        env={**os.environ, "TF_CONFIG": json.dumps(cluster)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        for line in process.stdout:
            if line.startswith("Waiting for worker 1"):
                break
        host, port = workers[0].split(":")
        with socket.create_connection((host, int(port))) as partner:
            partner.sendall(b'{"electra_tf_worker": 2, "of": 3}\n')
            assert partner.recv(1000)
        output, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 75
    assert f"error: worker 2 ({workers[2]}) ended before all" in output


@pytest.mark.slow
@pytest.mark.multi_device
def test_differences_between_workers_are_named(
    data_dir, of_workers, tmp_path, run_workers
):
    records = data_dir / "pretrain_tfrecords" / "pretrain_data.tfrecord-0-of-3"
    flags = {1: ["--learning_rate=0.002", f"--pretrain_tfrecords={records}"]}
    codes, outputs = run_workers(of_workers("two"), worker_flags=flags)
    assert codes == [1, 1]
    rate = "hparam learning_rate is 0.0005 on worker 0, but 0.002 on"
    assert all(rate in text for text in outputs)
    assert all("path of pretrain_tfrecords is '/" in text for text in outputs)
    files = "pretrain_tfrecords is '3 files, .* 0, but '1 files, .* worker 1"
    assert all(re.search(files, text) for text in outputs)
    assert not list((tmp_path / "two").glob("model.ckpt*"))


@pytest.mark.heavy
@pytest.mark.multi_device
def test_killed_workers_fine_tune_like_one_device(
    task_dir, hparams, tmp_path, run_workers, run_python
):
    every = ("num_trials", "save_checkpoints_steps", "eval_every_n_steps")
    hparams |= dict.fromkeys([*every, "n_writes_test"], 2)
    hparams |= dict.fromkeys(["keep_all_models", "write_test_outputs"], True)
    hparams |= {"num_train_epochs": 3.0, "early_stopping_patience": 3}
    hparams["keep_best"] = "loss"
    run_python(PROGRAM, task_dir, json.dumps(hparams), "one")
    codes, outputs = run_workers(hparams, dies=(1, 4), data=task_dir)
    assert codes == [75, -signal.SIGKILL]
    assert "error: another worker has ended or cannot be reached" in outputs[0]
    codes, outputs = run_workers(hparams, data=task_dir)
    assert codes == [0, 0]
    assert all("Continuing from" in text for text in outputs)
    device_run, workers_run = (
        task_dir / "models" / name for name in ("one", "m")
    )
    for a, b in zip(trials(device_run), trials(workers_run), strict=True):
        assert b["global_step"] == a["global_step"]
        metrics = a["results"]["sst"] | a["details"]["sst"]
        worker_metrics = b["results"]["sst"] | b["details"]["sst"]
        assert worker_metrics == pytest.approx(metrics, rel=1e-5)
    for trial in ("sst_model_1", "sst_model_2"):
        a, b = (
            folder / "finetuning_models" / trial
            for folder in (device_run, workers_run)
        )
        last = max(int(p.stem.rpartition("-")[2]) for p in a.glob("*.index"))
        assert_close(tensors(b, last), tensors(a, last))
        names = {path.name for path in b.iterdir()} - {"worker_1"}
        assert names == {path.name for path in a.iterdir()}


@pytest.mark.heavy
@pytest.mark.multi_device
def test_a_worker_with_different_task_files_is_refused(
    task_dir, hparams, tmp_path_factory, run_workers
):
    other = tmp_path_factory.mktemp("other")
    shutil.copytree(task_dir / "finetuning_data", other / "finetuning_data")
    with open(other / "finetuning_data/sst/train.tsv", "a") as file:
        file.write("the cat\t0\n")
    flags = {1: [f"--data-dir={other}"]}
    codes, outputs = run_workers(hparams, worker_flags=flags, data=task_dir)
    assert codes == [1, 1]
    files = "sst, train is '1 files, .* 0, but '1 files, .* on"
    assert all(re.search(files, text) for text in outputs)
    assert not (task_dir / "models/m/finetuning_models").exists()


@pytest.fixture
def run_ways(run_python):
    """Return a function that runs on devices: see WAYS in worker.py."""

    def run(data_dir, hparams, *ways):
        run_python(PROGRAM, data_dir, json.dumps(hparams), *ways)
        return [data_dir / "models" / name for name in ways]

    return run


@pytest.mark.multi_device
@pytest.mark.parametrize(
    "different",
    [
        {
            "unigram_steps": 2,
            "unigram_floor": 0.2,
            "clip_networks_apart": True,
            "generator_learning_rate": 1e-4,
            "correction_weight": 5.0,
        },
        *marked_heavy(
            {},
            {"uniform_generator": True},  # row-wise gradients of embeddings
            {**TWO_STAGE, "two_stage_steps": 1},
            {"uniform_generator": True, "optimizer": "adamw"},
            {"optimizer": "lamb"},
            {"embedding_sharing": "gradient_disentangled"},
            {"objective": "all_tokens_mlm"},
            {"objective": "electra_15", "generator": "unigram"},
            {"training_schedule": "adversarial"},
        ),
    ],
    ids=lambda hparams: "-".join(hparams) or "plain",
)
def test_two_devices_train_like_one_device(
    data_dir, settings, tmp_path, run_ways, different
):
    hparams = settings(
        **different,
        num_train_steps=3,
        num_warmup_steps=1,
        eval_every_n_steps=3,
        export_at_end=False,
        pretrain_tfrecords=f"{data_dir}/pretrain_tfrecords/pretrain*",
        eval_tfrecords=f"{data_dir}/pretrain_tfrecords/eval*",
    )
    for path_hparam in (
        "model_dir",
        "results_txt",
        "results_pkl",
        "results_json",
    ):
        del hparams[path_hparam]
    ways = ("one", "two") if different else ("one", "cut")
    single, *others = run_ways(tmp_path, without_dropout(hparams), *ways)
    for replicated in others:
        assert_close(tensors(replicated, 3), tensors(single, 3), atol=1e-6)
        for log in ("train_log.jsonl", "eval_log.jsonl"):
            rows = (
                read_rows(str(folder / log)) for folder in (single, replicated)
            )
            for a, b in zip(*rows, strict=True):
                a = {n: v for n, v in a.items() if n not in TIMES}
                # The AUC is None if all chosen tokens are replaced.
                a = {n: v for n, v in a.items() if v is not None}
                b = {n: b[n] for n in a}
                assert b == pytest.approx(a, rel=1e-5, abs=1e-6), log


@pytest.mark.multi_device
def test_two_devices_give_the_scores_of_one(task_dir, hparams, run_ways):
    hparams = {**hparams, "num_train_epochs": 1.0}
    ((single,), (replicated,)) = map(
        trials, run_ways(task_dir, hparams, "one", "cut")
    )
    expected, scores = (
        trial["results"]["sst"] for trial in (single, replicated)
    )
    assert scores == pytest.approx(expected, abs=1e-4)
