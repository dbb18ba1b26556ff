# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Micro-batches, computed in turn to save memory or in parallel on cores."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import tensorflow as tf

from configure.errors import UserError
from electra_tf.optimization.optimizer import Gradient
from electra_tf.training.replicas import BatchRows, replica_seed

Features = dict[str, tf.Tensor]
Gradients: TypeAlias = list[Gradient]
Values = dict[str, tf.Tensor]
# Arguments of `Compute`: tensors and nested structures of tensors.
Arguments = dict[str, object]
# Sum of a variable's gradients: a tensor, two TensorArrays (values and indices
# of `IndexedSlices`), or () for a variable without a gradient.
_Sum: TypeAlias = tf.Tensor | tuple[tf.TensorArray, ...]
# Function that makes the random draws for all rows of a replica before the rows
# are split: (features, rows) -> two dictionaries of arguments of `Compute`,
# those that are split by row (tensors [B, ...]) and those that all
# micro-batches share. `Compute` then also takes `batch_rows`.
Prepare: TypeAlias = Callable[
    [Features, BatchRows],
    tuple[Mapping[str, object], Mapping[str, object]],
]
# Function from the index of a micro-batch (int32) to its gradients and step
# values.
GradientsOf: TypeAlias = Callable[[tf.Tensor], tuple[Gradients, Values]]


def whole_batch_arguments(
    prepare: Prepare | None, rows: Features, batch: BatchRows
) -> Arguments:
    """Return the arguments of `compute`, except the rows, for a whole batch."""
    arguments: Arguments = {"seed": replica_seed(batch.seed)}
    if prepare and batch.indices is not None:
        by_row, shared = prepare(rows, batch)
        arguments |= {**by_row, **shared, "batch_rows": batch}
    return arguments


def split_batch(
    prepare: Prepare | None,
    rows: Features,
    batch: BatchRows,
    count: int,
) -> Callable[[tf.Tensor], tuple[Features, Arguments]]:
    """Return a function from an index to a micro-batch's arguments.

    The function returns the rows and the further arguments of one of `count`
    micro-batches. `prepare` runs once for all rows, before the split.
    """
    seed = replica_seed(batch.seed)
    by_row, shared = prepare(rows, batch) if prepare else ({}, {})
    tensors = {"rows": rows, "by_row": by_row}

    def micro_batch(index: tf.Tensor) -> tuple[Features, Arguments]:
        micro_seed = tf.random.experimental.stateless_fold_in(seed, index)
        slices = micro_batch_rows(tensors, index, count)
        arguments: Arguments = {"seed": micro_seed}
        arguments |= {**slices["by_row"], **shared}
        if prepare:
            arguments["batch_rows"] = batch.micro_batch(index, count)
        return slices["rows"], arguments

    return micro_batch


def micro_batch_rows(
    tensors: Mapping[str, Mapping[str, object]], index: tf.Tensor, count: int
) -> dict[str, Arguments]:
    """Return the rows of each tensor that belong to a micro-batch.

    Args:
      tensors: [B, ...], possibly nested; B must be known when the graph is
        built.
      index: int32 scalar, index of the micro-batch.
      count: number of micro-batches, a divisor of B.

    Raises:
      UserError: B is unknown, or not a multiple of `count`.
    """

    def rows(tensor: tf.Tensor) -> tf.Tensor:
        size = tensor.shape[0]
        if size is None or size % count:
            batch = "a batch of unknown size"
            if size is not None:
                batch = f"a batch of {size} rows"
            raise UserError(
                f"gradient_accumulation_steps: {batch} cannot be split into"
                f" {count} equal micro-batches. Batch the dataset with"
                " drop_remainder=True and a batch size that is a multiple of"
                f" {count}."
            )
        micro_size = size // count
        other_axes = tensor.shape.rank - 1
        # XLA requires slices of static size.
        begin = [index * micro_size] + [0] * other_axes
        return tf.slice(tensor, begin, [micro_size] + [-1] * other_axes)

    return tf.nest.map_structure(rows, dict(tensors))


def sum_over_micro_batches(
    gradients_of: GradientsOf,
    count: int,
    variables: Sequence[tf.Variable],
    parallel: int = 1,
) -> tuple[Gradients, Values]:
    """Sum gradients and scalars over micro-batches, in a loop of the graph.

    The sum is that of the whole batch, up to the rounding of a sum in a
    different order. Rows of `IndexedSlices` are concatenated, not added, so
    that their norm is that of the whole batch, too.

    Args:
      gradients_of: function that computes the gradients of a micro-batch.
      count: number of micro-batches.
      variables: variables of the gradients.
      parallel: number of micro-batches computed in parallel, a divisor of
        `count`.
    """
    # A concrete function is traced only once, and its outputs are known before
    # the loop is built.
    spec = tf.TensorSpec([], tf.int32)
    compute = tf.function(gradients_of, autograph=False)
    compute = compute.get_concrete_function(spec)
    if parallel > 1:
        compute = _in_parallel(compute, parallel)
        if count == parallel:
            return compute(tf.constant(0))
        count //= parallel
        compute = tf.function(compute, autograph=False)
        compute = compute.get_concrete_function(spec)
    gradients, values = compute.structured_outputs
    start = (
        [_zero_sum(gradient, count) for gradient in gradients],
        {name: tf.zeros(v.shape, v.dtype) for name, v in values.items()},
    )

    def step(
        index: tf.Tensor, sums: tuple[list[_Sum], Values]
    ) -> tuple[tf.Tensor, tuple[list[_Sum], Values]]:
        gradients, values = compute(index)
        gradient_sums = [
            _add(gradient_sum, gradient, index)
            for gradient_sum, gradient in zip(sums[0], gradients, strict=True)
        ]
        value_sums = {name: sums[1][name] + v for name, v in values.items()}
        return index + 1, (gradient_sums, value_sums)

    _, (gradient_sums, value_sums) = tf.while_loop(
        lambda index, sums: index < count,
        step,
        (tf.constant(0), start),
        # More parallel iterations would need memory for several micro-batches.
        parallel_iterations=1,
        maximum_iterations=count,
    )
    totals = [
        _total(gradient_sum, variable)
        for gradient_sum, variable in zip(gradient_sums, variables, strict=True)
    ]
    return totals, value_sums


def _in_parallel(gradients_of: GradientsOf, count: int) -> GradientsOf:
    """Return a function that sums `count` micro-batches in parallel."""

    def add(gradients: Sequence[Gradient]) -> Gradient:
        # A variable has a gradient in all micro-batches or in none.
        present = [g for g in gradients if g is not None]
        if not present:
            return None
        if not isinstance(present[0], tf.IndexedSlices):
            return tf.add_n(present)
        return tf.IndexedSlices(
            tf.concat([g.values for g in present], 0),
            tf.concat([g.indices for g in present], 0),
            present[0].dense_shape,
        )

    def compute(index: tf.Tensor) -> tuple[Gradients, Values]:
        results = [gradients_of(index * count + n) for n in range(count)]
        gradients, values = zip(*results, strict=True)
        return (
            [add(of_variable) for of_variable in zip(*gradients, strict=True)],
            {name: tf.add_n([v[name] for v in values]) for name in values[0]},
        )

    return compute


def _zero_sum(gradient: Gradient, count: int) -> _Sum:
    """Return the initial sum of gradients, to which `_add` adds."""
    if gradient is None:
        return ()
    if not isinstance(gradient, tf.IndexedSlices):
        return tf.zeros(gradient.shape, gradient.dtype)
    return tuple(
        tf.TensorArray(tensor.dtype, count, element_shape=tensor.shape)
        for tensor in (gradient.values, gradient.indices)
    )


def _add(gradient_sum: _Sum, gradient: Gradient, index: tf.Tensor) -> _Sum:
    if gradient is None:
        return gradient_sum
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient_sum + gradient
    values, indices = gradient_sum
    return (
        values.write(index, gradient.values),
        indices.write(index, gradient.indices),
    )


def _total(gradient_sum: _Sum, variable: tf.Variable) -> Gradient:
    """Convert a sum to a gradient; TensorArrays become one `IndexedSlices`."""
    if not isinstance(gradient_sum, tuple):
        return gradient_sum
    if not gradient_sum:
        return None
    values, indices = (array.stack() for array in gradient_sum)
    width = variable.shape[1:].as_list()
    return tf.IndexedSlices(
        tf.reshape(values, [-1, *width]),
        tf.reshape(indices, [-1]),
        tf.constant(variable.shape.as_list(), indices.dtype),
    )
