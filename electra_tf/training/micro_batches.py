# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Micro-batches: one after the other for memory, side by side for cores."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from electra_tf.training.replicas import BatchRows, replica_seed

Features = dict[str, tf.Tensor]
Gradients = list[Any]  # Tensors, IndexedSlices or None.
Values = dict[str, tf.Tensor]
# What draws for rows as for their whole batch: (features, rows) -> further
# arguments of `Compute`, which takes `batch_rows`, too, that all micro-batches
# have in common: by row (tensors [B, ...]), and as they are.
Prepare = Callable[[Features, BatchRows], tuple[dict[str, Any], dict[str, Any]]]


def undivided(
    prepare: Prepare | None, rows: Features, batch: BatchRows
) -> dict[str, Any]:
    """What `compute` is told beyond a replica's rows."""
    arguments = {"seed": replica_seed(batch.seed)}
    if prepare and batch.indices is not None:
        by_row, whole = prepare(rows, batch)
        arguments |= by_row | whole | {"batch_rows": batch}
    return arguments


def divided(
    prepare: Prepare | None,
    rows: Features,
    batch: BatchRows,
    count: int,
) -> Callable[[tf.Tensor], tuple[Features, dict[str, Any]]]:
    """What gives, by its index, one of `count` micro-batches to `compute`.

    Its rows and further arguments. What is drawn or added up over a whole batch
    is so before.
    """
    seed = replica_seed(batch.seed)
    by_row, whole = prepare(rows, batch) if prepare else ({}, {})
    tensors = {"rows": rows, "by_row": by_row}

    def part(index: tf.Tensor) -> tuple[Features, dict[str, Any]]:
        own = tf.random.experimental.stateless_fold_in(seed, index)
        found = micro_batch_rows(tensors, index, count)
        arguments = {"seed": own, **found["by_row"], **whole}
        if prepare:
            arguments["batch_rows"] = batch.micro_batch(index, count)
        return found["rows"], arguments

    return part


def micro_batch_rows(
    tensors: Mapping[str, Any], index: tf.Tensor, count: int
) -> dict[str, Any]:
    """Takes the rows of one of `count` micro-batches of every tensor.

    Tensors [B, ...], possibly nested; B is known when the graph is made, and a
    multiple of `count`, or refused. `index` is an int32 scalar.
    """

    def rows(tensor: tf.Tensor) -> tf.Tensor:
        size = tensor.shape[0]
        if size is None or size % count:
            raise UserError(
                f"gradient_accumulation_steps: a batch of {size or 'unknown'}"
                f" rows cannot be cut into {count} equal parts; give batches of"
                " one size (drop_remainder=True) that they divide"
            )
        size_of_one = size // count
        rest = tensor.shape.rank - 1
        # With a size that is known, which XLA asks for.
        begin = [index * size_of_one, *[0] * rest]
        return tf.slice(tensor, begin, [size_of_one, *[-1] * rest])

    return tf.nest.map_structure(rows, dict(tensors))


def sum_over_micro_batches(
    gradients_of: Callable[[tf.Tensor], tuple[Gradients, Values]],
    count: int,
    variables: Sequence[tf.Variable],
    at_once: int = 1,
) -> tuple[Gradients, Values]:
    """Adds up gradients and scalars in a loop of the graph.

    Args:
      gradients_of: takes the index of a micro-batch (int32 scalar).
      count: of micro-batches.
      at_once: how many of them are computed side by side; divides `count`.

    The sum is what the undivided batch gives, up to the rounding of a sum in
    another order. The rows of `IndexedSlices` are joined, not added, so that
    their norm is the undivided batch's, too.
    """
    # A function of its own is traced once, and tells what comes out of it
    # before the loop is made.
    spec = tf.TensorSpec([], tf.int32)
    one = tf.function(gradients_of, autograph=False).get_concrete_function(spec)
    if at_once > 1:
        one = _side_by_side(one, at_once)
        if count == at_once:
            return one(tf.constant(0))
        count //= at_once
        one = tf.function(one, autograph=False).get_concrete_function(spec)
    gradients, values = one.structured_outputs
    start = (
        [_empty(g, count) for g in gradients],
        {name: tf.zeros(v.shape, v.dtype) for name, v in values.items()},
    )

    def step(index: tf.Tensor, sums: Any) -> tuple[tf.Tensor, Any]:
        found, numbers = one(index)
        added = [_add(a, g, index) for a, g in zip(sums[0], found, strict=True)]
        numbers = {name: sums[1][name] + v for name, v in numbers.items()}
        return index + 1, (added, numbers)

    _, (total, numbers) = tf.while_loop(
        lambda index, sums: index < count,
        step,
        (tf.constant(0), start),
        parallel_iterations=1,  # Else they would run side by side.
        maximum_iterations=count,
    )
    joined = [_joined(t, v) for t, v in zip(total, variables, strict=True)]
    return joined, numbers


def _side_by_side(
    gradients_of: Callable[[tf.Tensor], tuple[Gradients, Values]], count: int
) -> Callable[[tf.Tensor], tuple[Gradients, Values]]:
    """The sums of `count` micro-batches, none of which waits for another."""

    def total(*gradients: Any) -> Any:
        first = gradients[0]
        if not isinstance(first, tf.IndexedSlices):
            return None if first is None else tf.add_n(gradients)
        return tf.IndexedSlices(
            tf.concat([g.values for g in gradients], 0),
            tf.concat([g.indices for g in gradients], 0),
            first.dense_shape,
        )

    def together(index: tf.Tensor) -> tuple[Gradients, Values]:
        found = [gradients_of(index * count + n) for n in range(count)]
        gradients, values = zip(*found, strict=True)
        return (
            [total(*of_one) for of_one in zip(*gradients, strict=True)],
            {name: tf.add_n([v[name] for v in values]) for name in values[0]},
        )

    return together


def _empty(gradient: Any, count: int) -> Any:
    """What a gradient of this kind is added to."""
    if gradient is None:
        return ()
    if not isinstance(gradient, tf.IndexedSlices):
        return tf.zeros(gradient.shape, gradient.dtype)
    return tuple(
        tf.TensorArray(tensor.dtype, count, element_shape=tensor.shape)
        for tensor in (gradient.values, gradient.indices)
    )


def _add(total: Any, gradient: Any, index: tf.Tensor) -> Any:
    if gradient is None:
        return total
    if not isinstance(gradient, tf.IndexedSlices):
        return total + gradient
    values, indices = total
    return (
        values.write(index, gradient.values),
        indices.write(index, gradient.indices),
    )


def _joined(total: Any, variable: tf.Variable) -> Any:
    if not isinstance(total, tuple):
        return total
    if not total:
        return None
    values, indices = (array.stack() for array in total)
    width = variable.shape[1:].as_list()
    return tf.IndexedSlices(
        tf.reshape(values, [-1, *width]),
        tf.reshape(indices, [-1]),
        tf.constant(variable.shape.as_list(), indices.dtype),
    )
