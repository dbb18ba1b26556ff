# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The inner loops: a training step, a chunk of steps, an evaluation."""

import contextlib
import dataclasses
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.files.atomic import write_atomically
from electra_tf.modeling.graph_modes import inference
from electra_tf.modeling.precision import SKIPPED, LossScale
from electra_tf.optimization.optimizer import Optimizer
from electra_tf.training import replicas
from electra_tf.training.micro_batches import (
    Features,
    Gradients,
    Prepare,
    Values,
    divided,
    sum_over_micro_batches,
    undivided,
)
from electra_tf.training.workers import ALONE, Worker


class StepMetrics(tf.train.experimental.PythonState):
    """Sums over the steps since the last log row; travels in checkpoints.

    Saved with the weights so that a run that is stopped between two rows writes
    the same row after it continues as one that was never stopped.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.sums: dict[str, float] = {}
        self.last: dict[str, float] = {}

    def add(self, names: list[str], values: np.ndarray) -> None:
        self.steps += 1
        self.last = dict(zip(names, values.tolist(), strict=True))
        for name, value in self.last.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def take(self) -> "StepMetrics":
        taken = StepMetrics()
        taken.steps, taken.sums, taken.last = self.steps, self.sums, self.last
        self.__init__()
        return taken

    def mean(self, name: str) -> float:
        return self.sums[name] / self.steps

    def update_mean(self, name: str) -> float:
        """Returns the mean over the updates that were not skipped."""
        made = self.steps - self.sums.get(SKIPPED, 0.0)
        return self.sums[name] / max(made, 1.0)

    def serialize(self) -> str:
        """JSON text; Python writes floats so that they read back exactly."""
        return json.dumps(
            {"steps": self.steps, "sums": self.sums, "last": self.last}
        )

    def deserialize(self, string_value: str | bytes) -> None:
        vars(self).update(json.loads(string_value))


# Name of the step value that counts tokens without padding, for the rate.
TOKENS = "tokens"
# (features, seed int32 [2], training) -> dict with scalar `total_loss`.
Compute = Callable[..., dict[str, tf.Tensor]]
# (features, outputs) -> scalars that add up over replicas.
StepValues = Callable[[Features, dict[str, tf.Tensor]], dict[str, tf.Tensor]]
MAX_CHUNK_STEPS = 100  # Bounds the batches kept for a non-finite dump.


class TrainingInterruptedError(Exception):
    """A stop was asked for; the step in progress has been finished."""


class NonFiniteLossError(UserError):
    """A loss or gradient norm became NaN or infinite; training stopped."""


@dataclasses.dataclass
class Chunk:
    """What happened in the steps since the loop last returned."""

    first_step: int  # updates done before
    names: list[str]  # of the columns of `values`
    values: np.ndarray  # float32 [steps, len(names)]
    batches: list[Features]  # of every step


class Loop(Protocol):
    """What a run needs of the loop that makes its updates."""

    def train(self, num_steps: int) -> None:
        """Make updates; see `TrainLoop.train`."""

    def take_chunk(self) -> Chunk:
        """Return the step values since the last call."""


@dataclasses.dataclass(kw_only=True)
class TrainLoop:
    """Runs training steps and keeps their scalars until they are taken.

    Steps are dispatched one after the other without reading anything back, so
    that an accelerator never waits for the host; the numbers of a whole chunk
    are read once at its end.
    """

    compute: Compute
    variables: list[tf.Variable]
    optimizer: Optimizer
    iterator: Iterator[Features]  # tensors [B, ...]
    step: tf.Variable  # int64 scalar, updates done so far
    seed: int
    strategy: tf.distribute.Strategy
    step_values: StepValues  # further scalars to log
    # Arguments of `compute` that depend on the completed updates (int64
    # scalar) alone: scalars, logged as they are.
    scheduled: Callable[[tf.Tensor], Values] = lambda step: {}
    should_stop: Callable[[], bool] = lambda: False
    micro_batches: int = 1  # one after the other, to need less memory
    cores: int = 1  # that compute rows of a micro-batch each, side by side
    prepare: Prepare | None = None
    jit_compile: bool = False
    # For gradients in float16; an update whose gradients overflow is skipped,
    # which counts as a step all the same.
    loss_scale: LossScale | None = None
    first_step: int = 0  # from which on the optimizer counts
    # Types of a batch whose length varies, so that one graph serves all.
    element_spec: Any = None
    # w and n where `iterator` gives worker w every n-th row; else all rows.
    worker: Worker = ALONE

    def __post_init__(self) -> None:
        self._names: list[str] = []
        self._pending: list[tuple[Features, tf.Tensor]] = []
        self._first_step = 0
        self._run_step = step_function(
            self._distributed_step,
            self.jit_compile,
            None if self.element_spec is None else [self.element_spec],
        )

    def train(self, num_steps: int) -> None:
        """Runs `num_steps` updates; see `take_chunk`.

        Raises TrainingInterruptedError when `should_stop` says so after a step.
        """
        self._first_step = int(self.step.numpy())
        self._pending = []
        with _graph_as_traced(self.cores > 1):
            for _ in range(int(num_steps)):
                batch = next_batch(self.iterator, "training")
                if batch is None:
                    raise UserError(
                        "the training records do not fill a single batch;"
                        " build more records or lower train_batch_size."
                    )
                self._pending.append((batch, self._run_step(batch)))
                if self.should_stop():
                    raise TrainingInterruptedError

    def take_chunk(self) -> Chunk:
        """Reads the scalars of the pending steps; the only host sync."""
        pending, self._pending = self._pending, []
        return Chunk(
            first_step=self._first_step,
            names=self._names,
            values=np.array([values.numpy() for _, values in pending]),
            batches=[batch for batch, _ in pending],
        )

    def _distributed_step(self, features: Features) -> tf.Tensor:
        values = self.strategy.run(self._replica_step, args=(features,))
        return self.strategy.experimental_local_results(values)[0]

    def _replica_step(self, features: Features) -> tf.Tensor:
        rows = replicas.replica_rows(features, self.worker)
        logged = self.update(rows)
        self._names = list(logged)
        return tf.stack([tf.cast(v, tf.float32) for v in logged.values()])

    def update(self, rows: Features) -> Values:
        """Makes one update from a replica's rows; the scalars to log.

        To be called on every replica; the scalars are of all of them.
        """
        step = self.step.read_value()
        seed = draws_seed(self.seed, step)
        batch = replicas.batch_rows(rows, seed, self.worker)
        scheduled = self.scheduled(step)
        gradients, values = self._gradients(rows, batch, scheduled)
        gradients = replicas.sum_over_replicas(gradients)
        if self.loss_scale is not None:
            gradients = self.loss_scale.unscaled(gradients)
        update = self.optimizer.update(gradients, step - self.first_step)
        summed = replicas.sum_over_replicas(list(values.values()))
        logged = dict(zip(values, summed, strict=True)) | scheduled | update
        if self.loss_scale is not None:
            scaled = self.loss_scale.update(update["grad_norm"])
            for name in update.keys() - {"learning_rate"}:
                # Norms of the networks overflow with that of all.
                excused = tf.math.is_finite(scaled["grad_norm"])
                excused &= ~tf.math.is_finite(update["grad_norm"])
                logged[name] = tf.where(excused, 0.0, update[name])
            logged |= scaled
        self.step.assign_add(1)
        return logged

    def _gradients(
        self, rows: Features, batch: replicas.BatchRows, scheduled: Values
    ) -> tuple[Gradients, Values]:
        """Gradients of a replica's rows, and the scalars to log of them."""
        at_once = 1
        if self.cores > 1 and (size := _rows(rows)):
            at_once = math.gcd(self.cores, size // self.micro_batches)
        count = self.micro_batches * at_once
        if count == 1:
            arguments = undivided(self.prepare, rows, batch)
            return self._gradients_at_once(rows, arguments | scheduled)
        part = divided(self.prepare, rows, batch, count)

        def gradients_of(index: tf.Tensor) -> tuple[Gradients, Values]:
            own_rows, arguments = part(index)
            return self._gradients_at_once(own_rows, arguments | scheduled)

        return sum_over_micro_batches(
            gradients_of,
            count,
            self.variables,
            at_once,
        )

    def _gradients_at_once(
        self, rows: Features, arguments: dict[str, Any]
    ) -> tuple[Gradients, Values]:
        with tf.GradientTape() as tape:
            outputs = self.compute(rows, training=True, **arguments)
            loss = outputs["total_loss"]
            if self.loss_scale is not None:
                loss *= self.loss_scale.scale
        gradients = tape.gradient(loss, self.variables)
        values = {"total_loss": outputs["total_loss"]}
        return gradients, values | self.step_values(rows, outputs)


@dataclasses.dataclass(kw_only=True)
class EvalLoop:
    """Runs the objective over held-out batches, always with the same draws."""

    compute: Compute
    seed: int
    strategy: tf.distribute.Strategy
    # Picks the tensors to hand over, each [B, ...].
    outputs: Callable[[Features, dict[str, tf.Tensor]], Features]
    prepare: Prepare | None = None
    should_stop: Callable[[], bool] = lambda: False
    jit_compile: bool = False
    batch_size: int | None = None  # given, one graph serves all lengths
    cores: int = 1  # that compute rows of a batch each, side by side
    _run_step: Callable[..., Any] | None = None

    def run(
        self,
        dataset: Iterable[Features],
        take: Callable[[dict[str, np.ndarray], float], None],
        limit: int = -1,
    ) -> dict[str, int]:
        """Hands `take` the outputs and the loss of every batch; counts them.

        At most `limit` batches; -1 means all. Raises TrainingInterruptedError
        when `should_stop` says so.
        """
        if self._run_step is None:
            signature = None
            if size := self.batch_size:
                rows = {
                    name: tf.TensorSpec([size, *x.shape[1:]], x.dtype)
                    for name, x in dataset.element_spec.items()
                }
                signature = [rows, tf.TensorSpec([], tf.int32)]
            self._run_step = step_function(
                self._distributed_step, self.jit_compile, signature
            )
        batches = examples = 0
        iterator = iter(dataset)
        while batches != limit:
            features = next_batch(iterator, "evaluation")
            if features is None:
                break
            outputs, loss = self._run_step(
                features, tf.constant(batches, tf.int32)
            )
            arrays = {name: value.numpy() for name, value in outputs.items()}
            take(arrays, float(loss))
            batches += 1
            examples += _rows(features)
            if self.should_stop():
                raise TrainingInterruptedError
        if not batches:
            raise UserError(
                "the evaluation records do not fill a single batch; build more"
                " held-out records or lower eval_batch_size."
            )
        return {"examples": examples, "batches": batches}

    def _distributed_step(self, features: Features, index: tf.Tensor):
        outputs, loss = self.strategy.run(
            self._replica_step, args=(features, index)
        )
        loss = self.strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None)
        # Of all replicas on all workers, in the order of the batch's rows.
        rows = _rows(features)
        joined = {
            name: self.strategy.gather(value, axis=0)[:rows]
            for name, value in outputs.items()
        }
        return joined, loss

    def _replica_step(self, features: Features, index: tf.Tensor):
        seed = draws_seed(self.seed, -1 - index)
        rows = _rows(features)
        # A last batch that the replicas cannot share is run whole by each.
        batch = replicas.BatchRows(seed, tf.range(rows), rows)
        if not rows % self.strategy.num_replicas_in_sync:
            features = replicas.replica_rows(features)
            batch = replicas.batch_rows(features, seed)

        def outputs_of(rows: Features, arguments: dict[str, Any]):
            with inference():
                outputs = self.compute(rows, training=False, **arguments)
            return self.outputs(rows, outputs), outputs["total_loss"]

        count = math.gcd(self.cores, _rows(features))
        if count == 1:
            arguments = undivided(self.prepare, features, batch)
            return outputs_of(features, arguments)
        part = divided(self.prepare, features, batch, count)
        one = tf.function(
            lambda index: outputs_of(*part(index)), autograph=False
        )
        found = [one(tf.constant(n)) for n in range(count)]
        outputs, losses = zip(*found, strict=True)
        joined = {
            name: tf.concat([own[name] for own in outputs], 0)
            for name in outputs[0]
        }
        return joined, tf.add_n(losses)


@contextlib.contextmanager
def _graph_as_traced(wanted: bool) -> Iterator[None]:
    """Keeps TensorFlow from rewriting graphs that are called.

    Of a training step that takes seconds, and makes no later step faster where
    cores take rows each. (What is not trained gains: see `inference`.)
    """
    optimizer, name = tf.config.optimizer, "disable_meta_optimizer"
    before = optimizer.get_experimental_options().get(name, False)
    optimizer.set_experimental_options({name: before or wanted})
    try:
        yield
    finally:
        optimizer.set_experimental_options({name: before})


def step_function(
    step: Callable[..., Any], jit_compile: bool, signature: Any = None
) -> Callable[..., Any]:
    """Makes a graph of a step."""
    return tf.function(
        step,
        autograph=False,  # Converting would only take time.
        input_signature=signature,
        # None leaves the choice to where it is called from (a TPU).
        jit_compile=jit_compile or None,
    )


def draws_seed(seed: int, word: tf.Tensor) -> tf.Tensor:
    """Seed of the draws of a training step or an evaluation batch, int32 [2].

    The word is the step, or -1 less the batch's number: negative, so it never
    meets a step's, and the same at every evaluation, so that all mask the same
    positions.
    """
    run = tf.constant(np.uint32(seed & 0xFFFFFFFF).astype(np.int32))
    return tf.stack([run, tf.cast(word, tf.int32)])


def stop_on_non_finite(chunk: Chunk, seed: int, directory: str) -> None:
    """Stops the run when a step of the chunk has a NaN or infinite number."""
    bad = np.flatnonzero(~np.isfinite(chunk.values).all(axis=1))
    if not bad.size:
        return
    index = int(bad[0])
    step = chunk.first_step + index + 1
    numbers = dict(zip(chunk.names, chunk.values[index], strict=True))
    path = os.path.join(directory, f"non_finite_step_{step}.npz")
    arrays = {f"batch/{k}": v.numpy() for k, v in chunk.batches[index].items()}
    packed = io.BytesIO()
    np.savez(
        packed, step=step, seed=np.array([seed, step - 1]), **numbers, **arrays
    )
    write_atomically(path, packed.getvalue())
    listed = ", ".join(f"{name} {value:g}" for name, value in numbers.items())
    raise NonFiniteLossError(
        f"step {step} has a number that is not finite: {listed}. Training"
        " stopped and no checkpoint was written after it. The batch and these"
        f" numbers are in {path}. Running the same command again continues from"
        " the last checkpoint and would meet the same batch; lower"
        " learning_rate, raise num_warmup_steps, change seed, or go on with"
        " other batches: --on_nonfinite=rewind."
    )


def next_batch(iterator: Iterator[Features], purpose: str) -> Features | None:
    """The next batch; None at the end of the records."""
    try:
        return next(iterator, None)
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        raise UserError(
            f"a record for {purpose} cannot be read: its file is damaged or"
            " its examples have another length than max_seq_length. TensorFlow"
            f" says: {error.message}"
        ) from error


def _rows(features: Features) -> int | None:
    """Rows of a batch; None where Keras gives what nobody has counted."""
    return next(iter(features.values())).shape[0]
