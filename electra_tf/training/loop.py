# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inner loops: a training step, a chunk of steps, an evaluation."""

import contextlib
import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.modeling.graph_modes import inference
from electra_tf.modeling.precision import SKIPPED, LossScale
from electra_tf.optimization.optimizer import Optimizer
from electra_tf.training import replicas
from electra_tf.training.micro_batches import (
    Features,
    Gradients,
    Prepare,
    Values,
    split_batch,
    sum_over_micro_batches,
    whole_batch_arguments,
)
from electra_tf.training.workers import ALONE, Worker


class StepMetrics(tf.train.experimental.PythonState):
    """Sums of the step values since the last log row.

    Checkpoints contain these sums, so that a run that stops between two rows
    writes the same row as an uninterrupted run.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.sums: dict[str, float] = {}
        self.last: dict[str, float] = {}

    def add(self, names: list[str], values: np.ndarray) -> None:
        self.last = dict(zip(names, values.tolist(), strict=True))
        if self.sums.keys() != self.last.keys():
            # A run that continues with other settings may have other values.
            self.steps, self.sums = 0, {}
        self.steps += 1
        for name, value in self.last.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def take(self) -> "StepMetrics":
        """Return the sums, and reset them."""
        interval = StepMetrics()
        interval.steps, interval.sums = self.steps, self.sums
        interval.last = self.last
        self.steps, self.sums, self.last = 0, {}, {}
        return interval

    def mean(self, name: str) -> float:
        """Return the mean of a value over the steps."""
        return self.sums[name] / self.steps

    def update_mean(self, name: str) -> float:
        """Return the mean of a value over the updates that were not skipped."""
        updates = self.steps - self.sums.get(SKIPPED, 0.0)
        return self.sums[name] / max(updates, 1.0)

    def serialize(self) -> str:
        """Return the sums as JSON text, which preserves floats exactly."""
        return json.dumps(
            {"steps": self.steps, "sums": self.sums, "last": self.last}
        )

    def deserialize(self, string_value: str | bytes) -> None:
        values = json.loads(string_value)
        self.steps, self.sums = values["steps"], values["sums"]
        self.last = values["last"]


# Name of the step value that counts tokens without padding. The console and the
# logs report this count per second.
TOKENS = "tokens"
# Function from features, `seed` (int32 [2]) and `training` to outputs, which
# include the scalar `total_loss`.
Compute = Callable[..., dict[str, tf.Tensor]]
# Function from features and outputs to scalars that are summed over replicas.
StepValues = Callable[[Features, dict[str, tf.Tensor]], dict[str, tf.Tensor]]
Step = TypeVar("Step", bound=Callable[..., object])  # a step as a function
# Maximum number of steps in a chunk. The number is limited, because a chunk
# keeps the batches of all its steps in memory for `stop_on_non_finite`.
MAX_CHUNK_STEPS = 100


class TrainingInterruptedError(Exception):
    """Interruption by a signal, after the step in progress has finished."""


@dataclasses.dataclass
class Chunk:
    """Batches and step values of consecutive steps."""

    first_step: int  # number of updates before the chunk
    names: list[str]  # names of the columns of `values`
    values: np.ndarray  # float32 [steps, len(names)]
    batches: list[Features]  # batch of each step


class Loop(Protocol):
    """Interface of the loop that makes a run's updates."""

    def train(self, num_steps: int) -> None:
        """Make updates; see `TrainLoop.train`."""

    def take_chunk(self) -> Chunk:
        """Return the step values since the last call."""


@dataclasses.dataclass(kw_only=True)
class TrainLoop:
    """A training loop that reads the scalars of its steps in chunks.

    Steps are dispatched one after the other, so that an accelerator never waits
    for the host. The numbers of a whole chunk are read once at its end.
    """

    compute: Compute
    variables: list[tf.Variable]
    optimizer: Optimizer
    iterator: Iterator[Features]  # tensors [B, ...]
    step: tf.Variable  # int64 scalar, completed updates
    seed: int
    strategy: tf.distribute.Strategy
    # Function that returns further scalars to log.
    step_values: StepValues
    # Function from completed updates (int64 scalar) to further arguments of
    # `compute`, which are scalars and are logged.
    scheduled: Callable[[tf.Tensor], Values] = lambda step: {}
    should_stop: Callable[[], bool] = lambda: False
    # Number of micro-batches per update, which are computed in turn to save
    # memory.
    micro_batches: int = 1
    cores: int = 1  # number of cores that share a micro-batch, in parallel
    prepare: Prepare | None = None
    jit_compile: bool = False
    # Scale of the loss for training in float16. An update whose gradients
    # overflow is skipped, but still counts as a step.
    loss_scale: LossScale | None = None
    first_step: int = 0  # step of the run at the optimizer's step 0
    # Types of the tensors of a batch, if the lengths of batches vary: one graph
    # then processes batches of all lengths.
    element_spec: Mapping[str, tf.TensorSpec] | None = None
    # Worker whose rows `iterator` yields; ALONE: all rows.
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
        """Make `num_steps` updates, whose scalars `take_chunk` returns.

        Raises:
          TrainingInterruptedError: `should_stop` returned true after a step.
          UserError: the records end too early.
        """
        self._first_step = int(self.step.numpy())
        self._pending = []
        with _graph_as_traced(self.cores > 1):
            for _ in range(int(num_steps)):
                batch = next_batch(self.iterator, "training")
                if batch is None:
                    raise UserError(
                        "the training records do not fill a single batch. Build"
                        " more records, or lower --train_batch_size."
                    )
                self._pending.append((batch, self._run_step(batch)))
                if self.should_stop():
                    raise TrainingInterruptedError

    def take_chunk(self) -> Chunk:
        """Return the scalars of `train`, read in one transfer to the host."""
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
        """Make one update from a replica's rows; return the scalars to log.

        All replicas must call this method; the scalars are sums over all
        replicas.
        """
        step = self.step.read_value()
        seed = draws_seed(self.seed, step)
        batch = replicas.batch_rows(rows, seed, self.worker)
        scheduled = self.scheduled(step)
        gradients, values = self._gradients(rows, batch, scheduled)
        gradients = list(replicas.sum_over_replicas(gradients))
        if self.loss_scale is not None:
            gradients = self.loss_scale.unscaled(gradients)
        update = self.optimizer.update(gradients, step - self.first_step)
        summed = replicas.sum_over_replicas(list(values.values()))
        logged = dict(zip(values, summed, strict=True)) | scheduled | update
        if self.loss_scale is not None:
            scaled = self.loss_scale.update(update["grad_norm"])
            for name in update.keys() - {"learning_rate"}:
                # `scaled` has 0 for a global norm that overflowed. The norms of
                # the single networks are then logged as 0, too.
                overflowed = tf.math.is_finite(scaled["grad_norm"])
                overflowed &= ~tf.math.is_finite(update["grad_norm"])
                logged[name] = tf.where(overflowed, 0.0, update[name])
            logged |= scaled
        self.step.assign_add(1)
        return logged

    def _gradients(
        self, rows: Features, batch: replicas.BatchRows, scheduled: Values
    ) -> tuple[Gradients, Values]:
        """Return the gradients and the step values of a replica's rows."""
        parallel = 1
        if self.cores > 1 and (size := _count_rows(rows)):
            parallel = math.gcd(self.cores, size // self.micro_batches)
        count = self.micro_batches * parallel
        if count == 1:
            arguments = whole_batch_arguments(self.prepare, rows, batch)
            return self._gradients_at_once(rows, arguments | scheduled)
        micro_batch = split_batch(self.prepare, rows, batch, count)

        def gradients_of(index: tf.Tensor) -> tuple[Gradients, Values]:
            micro_rows, arguments = micro_batch(index)
            return self._gradients_at_once(micro_rows, arguments | scheduled)

        return sum_over_micro_batches(
            gradients_of, count, self.variables, parallel
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
    """An evaluation of held-out batches, with the same draws each time."""

    compute: Compute
    seed: int
    strategy: tf.distribute.Strategy
    # Function that selects the tensors to return, each [B, ...].
    outputs: Callable[[Features, dict[str, tf.Tensor]], Features]
    prepare: Prepare | None = None
    should_stop: Callable[[], bool] = lambda: False
    jit_compile: bool = False
    # Number of rows in every batch; if this number is set, one graph processes
    # batches of all lengths.
    batch_size: int | None = None
    cores: int = 1  # number of cores that share a batch, in parallel
    _run_step: Callable[..., Any] | None = None

    def run(
        self,
        dataset: tf.data.Dataset,
        take: Callable[[dict[str, np.ndarray], float], None],
        limit: int = -1,
    ) -> dict[str, int]:
        """Evaluate batches; return the numbers of `examples` and `batches`.

        Args:
          dataset: dataset of batches, tensors [B, ...] by name.
          take: function of the outputs and the loss of each batch.
          limit: maximum number of batches; -1: all.

        Raises:
          TrainingInterruptedError: `should_stop` returned true after a batch.
          UserError: the dataset contains no batch.
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
            examples += _count_rows(features) or 0
            if self.should_stop():
                raise TrainingInterruptedError
        if not batches:
            raise UserError(
                "the evaluation records do not fill a single batch. Build more"
                " held-out records, or lower --eval_batch_size."
            )
        return {"examples": examples, "batches": batches}

    def _distributed_step(self, features: Features, index: tf.Tensor):
        outputs, loss = self.strategy.run(
            self._replica_step, args=(features, index)
        )
        loss = self.strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None)
        # The first rows of the joined values are the batch's rows in order,
        # whether each replica computed all rows or its share of the rows.
        rows = _count_rows(features)
        joined = {
            name: self.strategy.gather(value, axis=0)[:rows]
            for name, value in outputs.items()
        }
        return joined, loss

    def _replica_step(self, features: Features, index: tf.Tensor):
        seed = draws_seed(self.seed, -1 - index)
        rows = _count_rows(features)
        # All replicas compute all rows of a last batch that they cannot share
        # evenly.
        batch = replicas.BatchRows(seed, tf.range(rows), rows)
        if rows is not None and not rows % self.strategy.num_replicas_in_sync:
            features = replicas.replica_rows(features)
            batch = replicas.batch_rows(features, seed)

        def outputs_of(rows: Features, arguments: Mapping[str, object]):
            with inference():
                outputs = self.compute(rows, training=False, **arguments)
            return self.outputs(rows, outputs), outputs["total_loss"]

        count = math.gcd(self.cores, _count_rows(features) or 1)
        if count == 1:
            arguments = whole_batch_arguments(self.prepare, features, batch)
            return outputs_of(features, arguments)
        micro_batch = split_batch(self.prepare, features, batch, count)
        evaluate = tf.function(
            lambda index: outputs_of(*micro_batch(index)), autograph=False
        )
        results = [evaluate(tf.constant(index)) for index in range(count)]
        outputs, losses = zip(*results, strict=True)
        joined = {
            name: tf.concat([output[name] for output in outputs], 0)
            for name in outputs[0]
        }
        return joined, tf.add_n(losses)


@contextlib.contextmanager
def _graph_as_traced(enabled: bool) -> Iterator[None]:
    """Prevent TensorFlow from rewriting the graphs that the block runs.

    Rewriting the graph of a training step takes seconds, and makes no step
    faster if cores share a batch. Graphs for inference become faster; see
    `inference`.
    """
    optimizer, name = tf.config.optimizer, "disable_meta_optimizer"
    before = optimizer.get_experimental_options().get(name, False)
    optimizer.set_experimental_options({name: before or enabled})
    try:
        yield
    finally:
        optimizer.set_experimental_options({name: before})


def step_function(
    step: Step,
    jit_compile: bool,
    signature: Sequence[object] | None = None,
) -> Step:
    """Return a function that runs a step as a graph."""
    return tf.function(
        step,
        autograph=False,  # Steps contain no Python control flow to convert.
        input_signature=signature,
        # With None, TensorFlow compiles the step on TPUs only.
        jit_compile=jit_compile or None,
    )


def draws_seed(seed: int, word: tf.Tensor) -> tf.Tensor:
    """Return the seed of a training step or evaluation batch, int32 [2].

    Args:
      seed: seed of the run.
      word: step, or -1 minus the index of an evaluation's batch. Negative words
        never equal a step, and are the same in each evaluation, so that all
        evaluations mask the same positions.
    """
    run = tf.constant(np.uint32(seed & 0xFFFFFFFF).astype(np.int32))
    return tf.stack([run, tf.cast(word, tf.int32)])


def next_batch(iterator: Iterator[Features], purpose: str) -> Features | None:
    """Return the next batch; None at the end of the records."""
    try:
        return next(iterator, None)
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        raise UserError(
            f"a record for {purpose} cannot be read: the file is corrupt, or"
            " the length of its examples differs from max_seq_length. Build the"
            " records again, or set max_seq_length to the length of the"
            f" examples ({error.message})"
        ) from error


def _count_rows(features: Features) -> int | None:
    """Return a batch's number of rows, or None if the number is not static."""
    return next(iter(features.values())).shape[0]
