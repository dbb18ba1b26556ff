# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model of two numbers, for tests of the loop around it."""

import dataclasses
import io

import pytest
import tensorflow as tf

from electra_tf.training import summaries
from electra_tf.training.checkpointing import Checkpoints
from electra_tf.training.loop import EvalLoop, StepMetrics, TrainLoop
from electra_tf.training.session import (
    PreemptionHandler,
    Reporting,
    Schedule,
    TrainingSession,
)
from electra_tf.training.summaries import Console


class Line(tf.Module):
    """Fits a line, with noise that depends on the seed."""

    def __init__(self, width=2, nan_at=None):
        super().__init__(name="line")
        self.weights = tf.Variable(tf.zeros([width]), name="line/kernel")
        self.nan_at = nan_at

    def compute(self, features, seed, training):
        noise = tf.random.stateless_normal([2], seed) if training else 0.0
        loss = tf.reduce_mean((features["x"] + noise - self.weights) ** 2)
        if self.nan_at is not None:
            loss *= tf.where(seed[1] == self.nan_at - 1, float("nan"), 1.0)
        return {"total_loss": loss}


class Descent(tf.Module):
    """Gradient descent with a momentum slot; the second moment is not used."""

    def __init__(self, variables):
        super().__init__(name="descent")
        self.targets = list(variables)
        self.m, self.v = (
            {
                v.name.split(":")[0]: tf.Variable(tf.zeros_like(v))
                for v in variables
            }
            for _ in range(2)
        )

    def update(self, gradients, step):
        norm = tf.linalg.global_norm(gradients)
        rate = 0.1 / tf.cast(step + 1, tf.float32)
        slots = self.m.values()
        for v, m, g in zip(self.targets, slots, gradients, strict=True):
            m.assign(tf.where(tf.math.is_finite(norm), 0.9 * m + g, m))
            v.assign_sub(rate * m)
        return {"learning_rate": rate, "grad_norm": norm}


class MeanLoss:
    def __init__(self):
        self.losses = []

    def update(self, arrays, total_loss):
        self.losses.append(total_loss)

    def result(self):
        return {"loss": sum(self.losses) / len(self.losses)}


@dataclasses.dataclass
class Run:
    session: TrainingSession
    model: Line
    optimizer: Descent
    step: tf.Variable
    log: summaries.JsonLines
    evaluations: list
    output: io.StringIO
    interruption: PreemptionHandler


def dataset():
    values = tf.random.stateless_normal([64, 4, 2], [1, 2])
    data = tf.data.Dataset.from_tensor_slices({"x": values})
    return data.repeat().shuffle(20, seed=3)


@pytest.fixture
def start_run(tmp_path):
    """Makes a run in `tmp_path/run`, restored from there if possible."""

    def start(
        total=20,
        save=10,
        evaluate=0,
        log=5,
        keep=5,
        nan_at=None,
        stop_at=None,
        stop_in_evaluation=False,
        extras=None,
    ):
        directory = str(tmp_path / "run")
        tf.io.gfile.makedirs(directory)
        strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
        model = Line(nan_at=nan_at)
        optimizer = Descent(model.trainable_variables)
        step = tf.Variable(0, dtype=tf.int64, name="global_step")
        iterator, interval = iter(dataset()), StepMetrics()
        checkpoints = Checkpoints(
            directory,
            model=model,
            optimizer=optimizer,
            step=step,
            position={"iterator": iterator, "interval": interval},
            keep=keep,
            extras=extras,
        )
        if checkpoints.latest:
            checkpoints.restore(checkpoints.latest)
        interruption = PreemptionHandler()

        def should_stop():
            if stop_at is not None and int(step.numpy()) >= stop_at:
                interruption.signal_number = 15
            return interruption.requested()

        def should_stop_evaluating():
            if stop_in_evaluation:
                interruption.signal_number = 15
            return interruption.requested()

        trainer = TrainLoop(
            compute=model.compute,
            variables=model.trainable_variables,
            optimizer=optimizer,
            iterator=iterator,
            step=step,
            seed=7,
            strategy=strategy,
            step_values=lambda features, outputs: {"tokens": tf.constant(4.0)},
            should_stop=should_stop,
        )
        evaluator = EvalLoop(
            compute=model.compute,
            create_dataset=dataset,
            seed=7,
            strategy=strategy,
            outputs=lambda features, outputs: {"x": features["x"]},
            create_metrics=MeanLoss,
            should_stop=should_stop_evaluating,
        )
        rows = summaries.JsonLines(
            str(tmp_path / "run" / summaries.TRAIN_LOG), int(step.numpy())
        )
        evaluations, output = [], io.StringIO()
        session = TrainingSession(
            schedule=Schedule(total, log, save, evaluate, eval_steps=3),
            trainer=trainer,
            evaluator=evaluator,
            checkpoints=checkpoints,
            interval=interval,
            interruption=interruption,
            reporting=Reporting(
                row=lambda taken: {
                    "loss": taken.mean("total_loss"),
                    "steps": taken.steps,
                },
                shown=lambda row: {"loss": f"{row['loss']:.4f}"},
                tokens="tokens",
                train_sinks=[rows],
                evaluated=lambda s, result: evaluations.append((s, result)),
            ),
            console=Console(output),
            step=step,
            seed=7,
            directory=directory,
            strategy=strategy,
        )
        return Run(
            session,
            model,
            optimizer,
            step,
            rows,
            evaluations,
            output,
            interruption,
        )

    return start
