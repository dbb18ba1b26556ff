# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replicas: their rows of a batch, their draws, sums and variables."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import tensorflow as tf

from electra_tf.training.workers import ALONE, Worker, current_worker

Nested = TypeVar("Nested")  # tensors, possibly in dictionaries


class BatchRows(NamedTuple):
    """The rows of a global batch that a replica or a micro-batch has."""

    seed: tf.Tensor  # int32 [2], of the draws of the whole batch
    indices: tf.Tensor | None  # int32 [B], of the rows; None: all, in order
    # Of the whole batch; a tensor where Keras leaves it unknown.
    size: int | tf.Tensor | None

    def micro_batch(self, index: tf.Tensor, count: int) -> "BatchRows":
        """Return the rows of one of `count` micro-batches."""
        indices: tf.Tensor = self.indices
        if indices is None:
            indices = tf.range(self.size)
        rows = indices.shape[0] // count
        return self._replace(indices=tf.slice(indices, [index * rows], [rows]))

    def draw(
        self, function: Callable[[Nested, tf.Tensor], Nested], rows: Nested
    ) -> Nested:
        """Return what `function(rows, seed)` draws for these rows.

        One device draws for the whole batch at once, and a row's draws follow
        from its index. So `function` is called with the rows at their indices
        of a whole batch, and their draws are returned.

        Args:
          function: takes tensors [B, ...] of a whole batch and its seed.
          rows: tensors [B, ...], possibly nested, of these rows.
        """
        if self.indices is None:
            return function(rows, self.seed)
        indices: tf.Tensor = self.indices

        def whole(tensor: tf.Tensor) -> tf.Tensor:
            shape = [self.size, *tensor.shape[1:]]
            return tf.scatter_nd(indices[:, None], tensor, shape)

        drawn = function(tf.nest.map_structure(whole, rows), self.seed)
        return tf.nest.map_structure(
            lambda tensor: tf.gather(tensor, indices), drawn
        )


def batch_rows(
    rows: dict[str, tf.Tensor],
    seed: tf.Tensor,
    worker: Worker = ALONE,
) -> BatchRows:
    """Return the indices that this replica's rows have in the global batch.

    Args:
      rows: the replica's rows, tensors [B, ...].
      seed: int32 [2], of the draws of the whole batch.
      worker: its replicas share every `worker.total`-th row.
    """
    replica, replicas = _replica_of(worker)
    tensor = next(iter(rows.values()))
    count = tensor.shape[0] or tf.shape(tensor)[0]
    if replicas * worker.total == 1:
        return BatchRows(seed, None, count)
    indices = tf.range(count) + replica * count
    indices = indices * worker.total + worker.rank
    return BatchRows(seed, indices, count * replicas * worker.total)


def _replica_of(worker: Worker) -> tuple[Any, int]:
    """Return this replica's index among its worker's, and their number."""
    context = tf.distribute.get_replica_context()
    replicas = context.num_replicas_in_sync // worker.total
    index = context.replica_id_in_sync_group - worker.rank * replicas
    return index, replicas


def replica_rows(
    features: dict[str, tf.Tensor],
    worker: Worker = ALONE,
) -> dict[str, tf.Tensor]:
    """Return the rows of a worker's batch [B, ...] that this replica computes.

    Every replica gets the whole batch and takes its slice. So the iterator
    stays a plain one, which a checkpoint can hold (an iterator of
    `experimental_distribute_dataset` cannot be saved).
    """
    index, replicas = _replica_of(worker)
    if replicas == 1:
        return features

    def rows(batch: tf.Tensor) -> tf.Tensor:
        count = (batch.shape[0] or tf.shape(batch)[0]) // replicas
        return batch[index * count : (index + 1) * count]

    return {name: rows(batch) for name, batch in features.items()}


def worker_rows(
    batches: Iterator[dict[str, tf.Tensor]],
    strategy: tf.distribute.Strategy,
    batch_size: int,
) -> Iterator[dict[str, tf.Tensor]]:
    """Yield a worker's rows of batches, some of which hold the rows of all.

    The chief's batches do. Other workers' batches do if they were read ahead
    when the checkpoint was written that the run continues from.
    """
    worker = current_worker(strategy)
    for batch in batches:
        is_whole = next(iter(batch.values())).shape[0] == batch_size
        if worker.total > 1 and is_whole:
            batch = {
                name: rows[worker.rank :: worker.total]
                for name, rows in batch.items()
            }
        yield batch


def rows_per_machine(batch_size: int) -> int:
    """Return the number of a batch's rows that one machine computes."""
    strategy = tf.distribute.get_strategy()
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return batch_size  # All devices of a machine share its memory.
    return -(-batch_size // strategy.num_replicas_in_sync)


def replica_seed(seed: tf.Tensor) -> tf.Tensor:
    """Return a seed, int32 [2], that no other replica has (for dropout)."""
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync == 1:
        return seed
    replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
    return tf.random.experimental.stateless_fold_in(seed, replica)


def sum_over_replicas(
    values: Sequence[tf.Tensor | tf.IndexedSlices | None],
) -> Sequence[tf.Tensor | tf.IndexedSlices | None]:
    """Add tensors or IndexedSlices over all replicas; None stays None."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return values
    present = [value for value in values if value is not None]
    sums = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, present))
    return [None if value is None else next(sums) for value in values]


@contextlib.contextmanager
def creation_scope(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Create variables of which all replicas keep the first one's values.

    All replicas compute the same update from summed gradients, so a plain
    `assign` inside a step needs no reduction of its own.
    """

    def first_replica_writes(
        next_creator: Callable[..., tf.Variable], **kwargs: Any
    ) -> tf.Variable:
        if kwargs.get("aggregation") in (None, tf.VariableAggregation.NONE):
            kwargs["aggregation"] = tf.VariableAggregation.ONLY_FIRST_REPLICA
        return next_creator(**kwargs)

    with strategy.scope():
        if strategy.num_replicas_in_sync == 1:
            yield
            return
        with tf.variable_creator_scope(first_replica_writes):
            yield
