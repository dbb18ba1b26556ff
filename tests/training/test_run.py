# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import os
import signal

import numpy as np
import pytest

from electra_tf.training.loop import NonFiniteLossError
from electra_tf.training.run import PreemptionHandler, Schedule
from electra_tf.training.summaries import TIMING_FIELDS


def untimed(rows):
    return [
        {k: v for k, v in row.items() if k not in TIMING_FIELDS} for row in rows
    ]


def checkpoint_steps(directory):
    return sorted(
        int(path.name.removesuffix(".index").split("-")[1])
        for path in directory.glob("model.ckpt-*.index")
    )


def test_rows_come_after_the_first_step_and_then_at_intervals(start_run):
    run = start_run(total=12, log=5)
    run.train()
    rows = run.train_log.rows
    assert [row["step"] for row in rows] == [1, 5, 10, 12]
    assert [row["steps"] for row in rows] == [1, 4, 5, 2]
    lines = run.stream.getvalue().splitlines()
    assert lines[0].startswith("1/12 = 8.3%, SPS: ")
    assert lines[-1].startswith("12/12 = 100.0%, SPS: ")
    assert len(lines) == 4


def test_checkpoints_and_evaluations_come_at_intervals(start_run, tmp_path):
    run = start_run(total=25, save=10, keep=0, evaluate=10)
    result = run.train()
    assert checkpoint_steps(tmp_path / "run") == [0, 10, 20, 25]
    assert [step for step, _ in run.evaluations] == [10, 20, 25]
    assert result["loss"] == run.evaluations[-1][1]["loss"]
    assert result["batches"] == 3


def test_evaluating_changes_nothing_in_training(start_run, tmp_path):
    plain = start_run(total=20, evaluate=0)
    result = plain.train()
    assert plain.evaluations == []
    assert "loss" not in result and "train_loss" in result
    os.rename(tmp_path / "run", tmp_path / "plain")
    evaluated = start_run(total=20, evaluate=5)
    evaluated.train()
    weights = [run.model.weights.numpy() for run in (plain, evaluated)]
    np.testing.assert_array_equal(*weights)


@pytest.mark.parametrize("stop_at", [3, 10, 13])
def test_a_stopped_run_continues_to_the_same_end(start_run, tmp_path, stop_at):
    whole = start_run(total=20)
    whole.train()
    os.rename(tmp_path / "run", tmp_path / "whole")

    first = start_run(total=20, stop_at=stop_at)
    assert first.train()["interrupted"] == signal.SIGTERM
    assert checkpoint_steps(tmp_path / "run")[-1] == stop_at
    second = start_run(total=20)
    second.train()
    assert f"(step {stop_at})" in second.stream.getvalue()

    assert (whole.model.weights.numpy() == second.model.weights.numpy()).all()
    for slot, other in zip(
        whole.optimizer.m.values(),
        second.optimizer.m.values(),
        strict=True,
    ):
        assert (slot.numpy() == other.numpy()).all()
    assert untimed(second.train_log.rows) == untimed(whole.train_log.rows)


def test_a_stop_in_an_evaluation_saves_the_steps(start_run, tmp_path):
    run = start_run(total=20, evaluate=5, stop_in_evaluation=True)
    assert run.train()["interrupted"] == signal.SIGTERM
    assert checkpoint_steps(tmp_path / "run")[-1] == 5
    assert run.evaluations == []


def test_a_non_finite_loss_stops_and_leaves_evidence(start_run, tmp_path):
    run = start_run(total=20, save=2, log=20, nan_at=3)
    with pytest.raises(NonFiniteLossError, match="step 3 .*total_loss nan"):
        run.train()
    dump = np.load(tmp_path / "run" / "non_finite_step_3.npz")
    assert dump["batch/x"].shape == (4, 2)
    assert int(dump["step"]) == 3
    assert dump["seed"].tolist() == [7, 2]
    assert np.isnan(dump["total_loss"]) and np.isnan(dump["grad_norm"])
    assert dump["learning_rate"] == pytest.approx(0.1 / 3)
    assert checkpoint_steps(tmp_path / "run") == [0, 2]
    assert np.isfinite(run.model.weights.numpy()).all()


def test_the_schedule_stops_wherever_the_host_has_something_to_do():
    schedule = Schedule(100, log_every=10, save_every=25, eval_every=40)
    stops, step = [], 0
    while step < 100:
        step += schedule.steps_to_next_stop(step)
        stops.append(step)
    assert stops == sorted({*range(10, 101, 10), 25, 50, 75, 40, 80})
    # Chunks are bounded when nothing is logged.
    schedule = Schedule(10_000, 0, 0, 0, most_per_chunk=7)
    assert schedule.steps_to_next_stop(0) == 7
    assert Schedule(10_000, 0, 0, 0).steps_to_next_stop(0) == 100


def test_a_signal_asks_for_a_stop_and_a_second_one_stops_at_once():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), PreemptionHandler() as preemption:
        os.kill(os.getpid(), signal.SIGTERM)
        assert preemption.requested()
        assert preemption.signal_number == signal.SIGTERM
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
