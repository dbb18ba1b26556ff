# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The replicas' rows of a batch, random draws, sums and variables."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import tensorflow as tf

from electra_tf.training.workers import ALONE, Worker, current_worker

Nested = TypeVar("Nested")  # tensors, possibly nested in dictionaries


class BatchRows(NamedTuple):
    """Rows of a global batch that belong to a replica or a micro-batch."""

    seed: tf.Tensor  # int32 [2], seed of the draws of the whole batch
    # int32 [B], indices of the rows; None: all rows, in order
    indices: tf.Tensor | None
    # Number of rows in the whole batch; a tensor if the number is not static.
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
        """Return the draws of `function(rows, seed)` for these rows.

        A single device draws for the whole batch at once, and a row's draws
        therefore depend on the row's index. To return equal draws, `function`
        is called with a whole batch that contains these rows at their indices.

        Args:
          function: function of tensors [B, ...] of a whole batch and its seed.
          rows: tensors [B, ...] of these rows, possibly nested.
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
    """Return the indices of this replica's rows in the global batch.

    Args:
      rows: rows of the replica, tensors [B, ...].
      seed: int32 [2], seed of the draws of the whole batch.
      worker: worker whose replicas share each `worker.total`-th row.
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
    """Return a replica's index in its worker, and a worker's replica count."""
    context = tf.distribute.get_replica_context()
    replicas = context.num_replicas_in_sync // worker.total
    index = context.replica_id_in_sync_group - worker.rank * replicas
    return index, replicas


def replica_rows(
    features: dict[str, tf.Tensor],
    worker: Worker = ALONE,
) -> dict[str, tf.Tensor]:
    """Return the rows of a worker's batch [B, ...] that this replica computes.

    Each replica gets the whole batch and takes its slice, so that a plain
    iterator suffices. Checkpoints can contain a plain iterator, but not an
    iterator of `experimental_distribute_dataset`.
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
    """Yield the rows of each batch that this worker computes.

    The chief's batches contain all rows. Other workers' batches contain all
    rows if they were prefetched in the checkpoint from which the run continues.
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
    """Return a seed, int32 [2], that differs between replicas (for dropout)."""
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync == 1:
        return seed
    replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
    return tf.random.experimental.stateless_fold_in(seed, replica)


def sum_over_replicas(
    values: Sequence[tf.Tensor | tf.IndexedSlices | None],
) -> Sequence[tf.Tensor | tf.IndexedSlices | None]:
    """Sum tensors or IndexedSlices over all replicas; None stays None."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return values
    present = [value for value in values if value is not None]
    sums = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, present))
    return [None if value is None else next(sums) for value in values]


@contextlib.contextmanager
def creation_scope(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Give the block's variables on all replicas the first replica's values.

    All replicas compute the same update from summed gradients. A plain `assign`
    inside a step therefore needs no additional reduction.
    """

    def first_replica_writes(
        next_creator: Callable[..., tf.Variable], **kwargs: object
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
