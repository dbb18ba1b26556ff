# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model of two numbers, for tests of the loop around it."""

import io
import types

import pytest
import tensorflow as tf

from electra_tf.training.console import Console, ShownValue
from electra_tf.training.loop import EvalLoop, TrainLoop
from electra_tf.training.preemption import PreemptionHandler
from electra_tf.training.run import Run
from electra_tf.training.run_files import RunFiles


class Line(tf.Module):
    """A line that is fitted, with noise that depends on the seed."""

    def __init__(self, nan_at):
        super().__init__(name="line")
        self.weights = tf.Variable(tf.zeros([2]), name="line/kernel")
        self.nan_at = nan_at

    def compute(self, features, seed, training):
        noise = tf.random.stateless_normal([2], seed) if training else 0.0
        loss = tf.reduce_mean((features["x"] + noise - self.weights) ** 2)
        if self.nan_at is not None:
            loss *= tf.where(seed[1] == self.nan_at - 1, float("nan"), 1.0)
        return {"total_loss": loss}


class Descent(tf.Module):
    """Gradient descent with a momentum slot; the second moment is not used."""

    kind = "original"

    def __init__(self, variables):
        super().__init__(name="descent")
        self.targets = list(variables)
        self.m, self.v = (
            {v.name[:-2]: tf.Variable(tf.zeros_like(v)) for v in variables}
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


def dataset():
    values = tf.random.stateless_normal([64, 4, 2], [1, 2])
    data = tf.data.Dataset.from_tensor_slices({"x": values})
    return data.repeat().shuffle(20, seed=3)


class LineRun(Run):
    """A run of `Line`, which continues from a checkpoint; see `start_run`."""

    title = "line"
    files = RunFiles("line")
    shown = (ShownValue("loss", "loss"),)

    def __init__(self, config, nan_at, stop_at):
        self._nan_at, self._stop_at = nan_at, stop_at
        self.evaluations, self.stream = [], io.StringIO()
        super().__init__(
            config,
            tf.distribute.OneDeviceStrategy("/cpu:0"),
            Console(self.stream),
            PreemptionHandler(),
        )

    def build_model(self):
        return Line(nan_at=self._nan_at)

    def prepare_training(self):
        return dataset(), self.config.total

    def build_optimizer(self):
        return Descent(self.model.trainable_variables)

    def nothing(self, *_):
        """Do nothing, in place of methods that real runs have."""

    start_fresh = write_settings = is_finished = announce = nothing

    def stops(self, loop):
        if isinstance(self._stop_at, int):
            return loop == "training" and self.global_step >= self._stop_at
        return loop == self._stop_at

    def _should_stop(self, loop):
        if self.stops(loop):
            self.preemption.signal_number = 15
        return self.preemption.requested()

    def build_loop(self):
        return TrainLoop(
            compute=self.model.compute,
            variables=self.model.trainable_variables,
            optimizer=self.optimizer,
            iterator=self.iterator,
            step=self.step,
            seed=7,
            strategy=self.strategy,
            step_values=lambda features, outputs: {"tokens": tf.constant(4.0)},
            should_stop=lambda: self._should_stop("training"),
        )

    def losses(self, taken):
        return {"loss": taken.mean("total_loss"), "steps": taken.steps}

    def evaluate(self):
        loop = EvalLoop(
            compute=self.model.compute,
            seed=7,
            strategy=self.strategy,
            outputs=lambda features, outputs: {"x": features["x"]},
            should_stop=lambda: self._should_stop("evaluation"),
        )
        losses = []
        counts = loop.run(dataset(), lambda _, loss: losses.append(loss), 3)
        return {"loss": sum(losses) / len(losses), **counts}

    def record_evaluation(self, step, result):
        self.evaluations.append((step, result))
        self.eval_log.write(step, result)
        self.keep_if_best(step, result)

    def panels(self):
        return ()


def saved_steps(directory):
    """Return the steps of a folder's checkpoints."""
    paths = directory.glob("model.ckpt-*.index")
    return sorted(int(path.stem.rpartition("-")[2]) for path in paths)


def shown(directory, tag="loss"):
    """Return the (step, value) points of a number in TensorBoard."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.plugin_event_accumulator"
    )
    reader = accumulator.EventAccumulator(str(directory)).Reload()
    return [
        (event.step, float(tf.make_ndarray(event.tensor_proto)))
        for event in reader.Tensors(tag)
    ]


@pytest.fixture
def start_run(tmp_path):
    """Return a function that makes a run, stopped at a step or "evaluation"."""

    def start(
        total=20, save=10, evaluate=0, log=5, nan_at=None, stop_at=None, **more
    ):
        config = types.SimpleNamespace(
            model_dir=str(tmp_path / "run"),
            overwrite=False,
            init_checkpoint=None,
            vocab_file=None,
            total=total,
            seed=7,
            log_every_n_steps=log,
            save_checkpoints_steps=save,
            eval_every_n_steps=evaluate,
            iterations_per_loop=100,
            keep_checkpoint_max=5,
            keep_best=None,
            on_nonfinite="stop",
            mixed_precision="",
        )
        vars(config).update(more)
        return LineRun(config, nan_at, stop_at)

    return start
