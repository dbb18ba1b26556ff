# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two workers, or two devices of one, train one model as one device does."""

import io
import json
import os
import pathlib
import runpy
import shutil
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from configure.pretraining import PretrainingConfig
from electra_tf.pretraining import runner
from electra_tf.training.summaries import TIMING_FIELDS, Console
from tests.end_to_end.conftest import TWO_STAGE, saved_tensors

PROGRAM = pathlib.Path(__file__).resolve().with_name("fixed_draws.py")
ROOT = PROGRAM.parents[2]
SECONDS = 600


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start_workers(data_dir, hparams, folder, *flags):
    """Two processes; both outputs of each go to a file of its own."""
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    started = []
    for index in range(2):
        task = {"type": "worker", "index": index}
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TF_NUM_INTRAOP_THREADS": "1",
            "TF_CONFIG": json.dumps(
                {"cluster": {"worker": workers}, "task": task}
            ),
        }
        command = [
            sys.executable,
            str(PROGRAM),
            *("--data-dir", str(data_dir), "--model-name", "m"),
            *("--hparams", json.dumps(hparams)),
            *flags,
            "--distribution_strategy=multi_worker",
        ]
        output = folder / f"output_{index}.txt"
        with open(output, "w") as file:
            process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdout=file, stderr=file
            )
        started.append((process, output))
    return started


def finish(started):
    """Waits for all; a hang or a failure shows what each has printed."""
    processes = [process for process, _ in started]
    deadline = time.monotonic() + SECONDS
    try:
        while any(process.poll() is None for process in processes):
            if any(process.poll() for process in processes):
                deadline = min(deadline, time.monotonic() + 10)
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        codes = [process.poll() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    shown = "\n".join(
        f"--- {output.name}, exit status {code} (None: still running)\n"
        f"{output.read_text()[-4000:]}"
        for (_, output), code in zip(started, codes, strict=True)
    )
    assert codes == [0] * len(codes), shown


def tensors(directory, step=12):
    path = directory / f"model.ckpt-{step}"
    return saved_tensors(path, ("model/", "optimizer/"))


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def without_dropout(hparams):
    hparams["model_hparam_overrides"] |= {
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    return hparams


@pytest.mark.slow
@pytest.mark.multi_device
@pytest.mark.parametrize(
    "again",
    [False, pytest.param(True, marks=pytest.mark.heavy)],
    ids=["once", "evaluated_again"],
)
def test_two_workers_train_and_evaluate_as_one_device_does(
    data_dir, settings, tmp_path, monkeypatch, again
):
    """27 examples are evaluated; two workers cannot share the last batch."""

    def hparams(name):
        return without_dropout(
            settings(
                name,
                num_train_steps=12,
                save_checkpoints_steps=12,
                eval_every_n_steps=12,
                eval_tfrecords=f"{data_dir}/pretrain_tfrecords/*-0-of-*",
            )
        )

    one, two = tmp_path / "one", tmp_path / "two"
    finish(start_workers(data_dir, hparams("two"), tmp_path))
    results = two / "results"
    metrics = [json.loads((results / "r.json").read_text())["metrics"]]
    if again:
        shutil.rmtree(results)
        flags = ("--do_train=false", "--do_eval")
        finish(start_workers(data_dir, hparams("two"), tmp_path, *flags))
        metrics.append(json.loads((results / "r.json").read_text())["metrics"])
    runpy.run_path(str(PROGRAM))["fix"](monkeypatch.setattr)
    alone = PretrainingConfig.create("m", str(data_dir), **hparams("one"))
    runner.run(alone, Console(io.StringIO()))

    alone, chief, other = map(tensors, (one, two, two / "worker_1"))
    assert alone.keys() == chief.keys() == other.keys()
    assert any(name.startswith("optimizer/") for name in alone)
    for name, expected in alone.items():
        np.testing.assert_array_equal(chief[name], other[name], name)
        np.testing.assert_allclose(
            chief[name], expected, rtol=0, atol=1e-5, err_msg=name
        )

    (expected,) = rows(one / "eval_log.jsonl")
    assert (expected["examples"], expected["batches"]) == (27, 7)
    assert all(found.pop("global_step") == 12 for found in metrics)
    for found in (
        *rows(two / "eval_log.jsonl"),
        *rows(two / "worker_1" / "eval_log.jsonl"),
        *metrics,
    ):
        wanted = {name: expected[name] for name in found}
        assert {"examples", "loss", "disc_auc"} <= wanted.keys()
        assert found == pytest.approx(wanted, rel=1e-6)


@pytest.fixture
def run_ways(run_python):
    """Runs with one device, with two, and ("cut") two and two micro-batches."""

    def run(data_dir, hparams, *ways):
        run_python(PROGRAM, data_dir, json.dumps(hparams), *ways)
        return [data_dir / "models" / name for name in ways]

    return run


@pytest.mark.multi_device
@pytest.mark.parametrize(
    "different",
    [
        {},
        {"uniform_generator": True},
        *(
            pytest.param(hparams, marks=pytest.mark.heavy)
            for hparams in (
                {"uniform_generator": True, "optimizer": "adamw"},
                {"optimizer": "lamb"},
                {"embedding_sharing": "gradient_disentangled"},
                {"objective": "all_tokens_mlm"},
                {"objective": "electra_15", "generator": "unigram"},
            )
        ),
        pytest.param(
            {"training_schedule": "adversarial"}, marks=pytest.mark.heavy
        ),
        {**TWO_STAGE, "two_stage_steps": 1},
    ],
    ids=[
        *("dense", "sparse", "adamw", "lamb", "disentangled"),
        *("all_tokens_mlm", "electra_15", "adversarial", "two_stage"),
    ],
)
def test_two_devices_train_as_one_does(
    data_dir, settings, tmp_path, run_ways, different
):
    """`sparse`: a uniform generator leaves row-wise embedding gradients."""
    hparams = settings(
        **different,
        num_train_steps=3,
        num_warmup_steps=1,
        eval_every_n_steps=3,
        export_at_end=False,
        pretrain_tfrecords=f"{data_dir}/pretrain_tfrecords/pretrain*",
        eval_tfrecords=f"{data_dir}/pretrain_tfrecords/eval*",
    )
    places = ("model_dir", "results_txt", "results_pkl", "results_json")
    hparams = {n: v for n, v in hparams.items() if n not in places}
    ways = ("one", "cut") if different else ("one", "two", "cut")
    one, *others = run_ways(tmp_path, without_dropout(hparams), *ways)
    for two in others:
        expected = tensors(one, 3)
        for name, found in tensors(two, 3).items():
            np.testing.assert_allclose(
                found, expected[name], rtol=0, atol=1e-6, err_msg=name
            )
        for log in ("train_log.jsonl", "eval_log.jsonl"):
            for a, b in zip(rows(one / log), rows(two / log), strict=True):
                a = {n: v for n, v in a.items() if n not in TIMING_FIELDS}
                # Where all chosen tokens are replaced there is no AUC.
                a = {n: v for n, v in a.items() if v is not None}
                b = {n: b[n] for n in a}
                assert b == pytest.approx(a, rel=1e-5, abs=1e-6), log


@pytest.mark.multi_device
def test_two_devices_give_the_scores_of_one(task_dir, hparams, run_ways):
    hparams = {**hparams, "num_train_epochs": 1.0}
    one, two = (
        json.loads((folder / "results" / "sst_results.json").read_text())
        for folder in run_ways(task_dir, hparams, "one", "cut")
    )
    expected, found = (r["trials"][0]["results"]["sst"] for r in (one, two))
    assert found == pytest.approx(expected, abs=1e-4)
