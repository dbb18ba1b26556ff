# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Steps: micro-batches, loss scaling; runs that stop and continue."""

import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.precision import LossScale
from electra_tf.training import preemption as preemption_module
from electra_tf.training.intervals import Intervals
from electra_tf.training.loop import EvalLoop, StepMetrics, TrainLoop
from electra_tf.training.micro_batches import (
    micro_batch_rows,
    sum_over_micro_batches,
)
from electra_tf.training.non_finite_loss import NonFiniteLossError
from electra_tf.training.preemption import PreemptionHandler
from tests.conftest import refused
from tests.training.conftest import saved_steps

IDS = tf.constant([[0, 1], [1, 1], [3, 0], [2, 3]])


@pytest.fixture
def variables():
    return [
        tf.Variable(np.arange(8.0).reshape(4, 2), dtype=tf.float32),
        tf.Variable([1.0, -2.0]),
        tf.Variable(5.0),
    ]


def gradients_of(variables, count, jit_compile=False, at_once=1):
    """Return gradients of a gathered, a dense and an unused variable."""
    table, kernel, _ = variables

    def gradients_at(index):
        rows = micro_batch_rows({"nested": {"ids": IDS}}, index, count)
        with tf.GradientTape() as tape:
            picked = tf.gather(table, rows["nested"]["ids"])
            loss = tf.reduce_sum(tf.square(picked * kernel))
        gradients = tape.gradient(loss, variables)
        return gradients, {"loss": loss, "rows": tf.constant(1.0)}

    @tf.function(jit_compile=jit_compile)
    def run():
        if count == 1:
            return gradients_at(tf.constant(0))
        return sum_over_micro_batches(gradients_at, count, variables, at_once)

    return run


@pytest.mark.parametrize(
    "rows, count_text", [(6, "6 rows"), (None, "unknown size")]
)
def test_rows_that_cannot_be_cut_into_equal_parts_are_refused(rows, count_text):
    @tf.function(input_signature=[tf.TensorSpec([rows, 2])], autograph=False)
    def cut(ids):
        return micro_batch_rows({"ids": ids}, tf.constant(0), 4)

    refused(
        f"a batch of {count_text} cannot.* into 4", cut.get_concrete_function
    )


@pytest.mark.parametrize("count, at_once", [(2, 1), (4, 1), (4, 2), (4, 4)])
@pytest.mark.parametrize("jit", [False, True])
def test_micro_batches_sum_to_the_whole(variables, count, at_once, jit):
    whole, numbers = gradients_of(variables, 1)()
    actual, summed = gradients_of(variables, count, jit, at_once)()
    assert actual[2] is None
    np.testing.assert_allclose(actual[1], whole[1], rtol=1e-6)
    # Rows stay separate and in order, because the norm for clipping counts
    # each row.
    assert isinstance(actual[0], tf.IndexedSlices)
    np.testing.assert_array_equal(actual[0].indices, whole[0].indices)
    np.testing.assert_allclose(actual[0].values, whole[0].values, rtol=1e-6)
    np.testing.assert_array_equal(actual[0].dense_shape, [4, 2])
    assert summed["loss"] == numbers["loss"] and summed["rows"] == count


def test_the_graph_holds_one_micro_batch_at_any_count(variables):
    def nodes(count):
        traced = gradients_of(variables, count).get_concrete_function()
        definition = traced.graph.as_graph_def()
        inner = sum(len(f.node_def) for f in definition.library.function)
        return len(definition.node) + inner

    assert nodes(4) == nodes(2)


def test_overflow_halves_the_scale_and_good_steps_double_it():
    scaling = LossScale(initial=8.0, growth_steps=3)
    norms = [1.0, 2.0, float("inf"), 1.0, 1.0, 1.0, 1.0, float("nan")]
    logged = [scaling.update(tf.constant(norm)) for norm in norms]
    scales = [float(values["loss_scale"]) for values in logged]
    assert scales == [8, 8, 8, 4, 4, 4, 8, 8]
    assert float(scaling.scale) == 4 and int(scaling.skipped_updates) == 2
    assert [float(v["skipped"]) for v in logged] == [0, 0, 1, 0, 0, 0, 0, 1]
    # A skipped update has no norm, which is no reason to stop.
    assert [float(v["grad_norm"]) for v in logged] == [1, 2, 0, 1, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("bound", "norm"),
    [(1.0, np.inf), (2.0**127, 1.0)],
    ids=["lowest", "highest"],
)
def test_a_scale_at_its_bound_stays_and_the_norm_is_reported(bound, norm):
    scaling = LossScale(initial=bound, growth_steps=1)
    assert scaling.update(tf.constant(norm))["grad_norm"] == norm
    assert float(scaling.scale) == bound


def test_cores_that_share_a_batch_evaluate_and_draw_like_one():
    rows = {"x": tf.random.stateless_normal([6, 3], [1, 2])}

    def normal(x, seed):
        return tf.random.stateless_normal(tf.shape(x), seed)

    def prepare(features, batch):
        noise = batch.draw(normal, features["x"])
        return {"noise": noise}, {"total": tf.reduce_sum(noise)}

    def compute(features, seed, training, noise, total, batch_rows):
        sums = tf.reduce_sum(features["x"] * noise, -1)
        return {"sums": sums, "total_loss": tf.reduce_sum(sums) / total}

    def run(cores):
        loop = EvalLoop(
            compute=compute,
            seed=3,
            strategy=tf.distribute.get_strategy(),
            outputs=lambda features, outputs: {"sums": outputs["sums"]},
            prepare=prepare,
            cores=cores,
        )
        actual = []
        dataset = tf.data.Dataset.from_tensors(rows).repeat(2)
        loop.run(dataset, lambda *taken: actual.append(taken))
        return actual

    two, three = run(2), run(3)
    for (sums, loss), (other, other_loss) in zip(two, three, strict=True):
        np.testing.assert_allclose(sums["sums"], other["sums"], rtol=1e-6)
        np.testing.assert_allclose(loss, other_loss, rtol=1e-5)
    assert two[0][1] != two[1][1]  # Each batch has draws of its own.


class Steps:
    """Plain gradient descent that can skip the update."""

    def __init__(self, weights):
        self.weights = weights

    def update(self, gradients, step):
        norm = tf.linalg.global_norm(gradients)
        rate = tf.where(tf.math.is_finite(norm), 0.1, 0.0)
        self.weights.assign_sub(tf.math.multiply_no_nan(gradients[0], rate))
        return {"learning_rate": rate, "grad_norm": norm}


def descend(scaling, dtype, steps):
    weights = tf.Variable([3.0, -2.0])

    def compute(features, seed, training):
        half = tf.cast(weights, dtype)
        return {"total_loss": tf.reduce_sum(tf.cast(half * half, tf.float32))}

    loop = TrainLoop(
        compute=compute,
        variables=[weights],
        optimizer=Steps(weights),
        iterator=iter([{"x": tf.zeros([1])}] * steps),
        step=tf.Variable(0, dtype=tf.int64),
        seed=0,
        strategy=tf.distribute.get_strategy(),
        step_values=lambda features, outputs: {},
        loss_scale=scaling,
    )
    loop.train(tf.constant(steps))
    chunk = loop.take_chunk()
    return weights.numpy(), dict(zip(chunk.names, chunk.values.T, strict=True))


def test_scaling_changes_no_bit_and_an_overflow_skips_the_update():
    plain, _ = descend(None, tf.float32, 5)
    scaled, values = descend(LossScale(), tf.float32, 5)
    np.testing.assert_array_equal(scaled, plain)
    assert not values["skipped"].any()
    scaling = LossScale(initial=2.0**16)  # float16 ends below 65,504.
    weights, values = descend(scaling, tf.float16, 4)
    skipped = values["skipped"].tolist()
    assert skipped[0] == 1 and skipped[-1] == 0
    assert values["skipped_updates"][-1] == sum(skipped)
    made = 4 - int(sum(skipped))
    np.testing.assert_allclose(weights, [3 * 0.8**made, -2 * 0.8**made], 1e-3)
    assert np.isfinite(values["grad_norm"]).all()


@pytest.mark.parametrize("had_it", [False, True])
def test_a_factor_is_continued_or_fresh(start_run, had_it, monkeypatch):
    start_run(total=4, mixed_precision="fp16" if had_it else "").train()
    scaling = LossScale(initial=2.0)
    monkeypatch.setattr(LossScale, "of", lambda precision: scaling)
    second = start_run(total=4, mixed_precision="fp16")
    second.train()
    assert second.global_step == 4
    assert float(scaling.scale) == (2.0**15 if had_it else 2.0)


def test_evaluations_come_at_intervals_and_change_nothing(start_run, tmp_path):
    plain = start_run(total=25)
    result = plain.train()
    assert plain.evaluations == []
    assert "loss" not in result and "train_loss" in result
    os.rename(tmp_path / "run", tmp_path / "plain")
    run = start_run(total=25, evaluate=10, keep_checkpoint_max=0)
    result = run.train()
    assert saved_steps(tmp_path / "run") == [0, 10, 20, 25]
    assert [step for step, _ in run.evaluations] == [10, 20, 25]
    assert result["loss"] == run.evaluations[-1][1]["loss"]
    assert result["batches"] == 3
    weights = [made.model.weights.numpy() for made in (plain, run)]
    np.testing.assert_array_equal(*weights)


def test_a_stop_in_an_evaluation_saves_the_steps(start_run, tmp_path):
    run = start_run(total=20, evaluate=5, stop_at="evaluation")
    assert run.train()["interrupted"] == signal.SIGTERM
    assert saved_steps(tmp_path / "run")[-1] == 5
    assert run.evaluations == []


def test_a_non_finite_loss_stops_and_saves_the_batch(start_run, tmp_path):
    run = start_run(total=20, save=2, log=20, nan_at=3)
    with pytest.raises(NonFiniteLossError, match="step 3 .*total_loss nan"):
        run.train()
    dump = np.load(tmp_path / "run" / "non_finite_step_3.npz")
    assert dump["batch/x"].shape == (4, 2) and int(dump["step"]) == 3
    assert dump["seed"].tolist() == [7, 2]
    assert np.isnan(dump["total_loss"]) and np.isnan(dump["grad_norm"])
    assert dump["learning_rate"] == pytest.approx(0.1 / 3)
    assert saved_steps(tmp_path / "run") == [0, 2]
    assert np.isfinite(run.model.weights.numpy()).all()


def test_a_chunk_ends_wherever_the_host_has_something_to_do():
    intervals = Intervals(100, log_every=10, save_every=25, eval_every=40)
    stops, step = [], 0
    while step < 100:
        step += intervals.steps_to_next_stop(step)
        stops.append(step)
    assert stops == sorted({*range(10, 101, 10), 25, 50, 75, 40, 80})
    # Chunks are bounded when nothing is logged.
    intervals = Intervals(10_000, 0, 0, 0, max_chunk_steps=7)
    assert intervals.steps_to_next_stop(0) == 7
    assert Intervals(10_000, 0, 0, 0).steps_to_next_stop(0) == 100


def test_steps_with_other_values_are_not_averaged():
    """A continued run may clip the networks apart, or stop doing so."""
    metrics = StepMetrics()
    metrics.add(["loss"], np.array([8.0]))
    continued = StepMetrics()
    continued.deserialize(metrics.serialize())
    for value in (1.0, 3.0):
        continued.add(["loss", "generator_grad_norm"], np.array([value, 6.0]))
    assert continued.mean("loss") == 2.0
    assert continued.update_mean("generator_grad_norm") == 6.0
    continued.add(["loss"], np.array([5.0]))
    assert (continued.steps, continued.sums) == (1, {"loss": 5.0})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_for_a_stop_and_a_second_one_stops_at_once(
    number, monkeypatch
):
    monkeypatch.setattr(preemption_module, "_SAME_REQUEST_SECONDS", 0.0)
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), PreemptionHandler() as preemption:
        os.kill(os.getpid(), number)
        assert preemption.requested() and preemption.signal_number == number
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before
