# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients of a batch, computed part by part in a loop of the graph.

Only one part's activations are in memory at a time: the graph holds one part
once, and its loop adds up.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

Gradients = list[Any]  # Tensors, IndexedSlices or None.
Values = dict[str, tf.Tensor]
# (index of the part, int32 scalar) -> its gradients and scalars.
Part = Callable[[tf.Tensor], tuple[Gradients, Values]]


def rows_of_part(
    tensors: Mapping[str, Any], index: tf.Tensor, parts: int
) -> dict[str, Any]:
    """Takes one part's rows of every tensor.

    Args:
      tensors: tensors [B, ...] by name, possibly nested; B is known when the
        graph is made, and a multiple of `parts`.
      index: int32 scalar in [0, parts).
      parts: how many parts of the same size there are.

    Returns:
      The same with tensors [B / parts, ...].
    """

    def rows(tensor: tf.Tensor) -> tf.Tensor:
        count = tensor.shape[0] // parts
        rest = tensor.shape.rank - 1
        # With a size that is known, which XLA asks for.
        begin, size = [index * count, *[0] * rest], [count, *[-1] * rest]
        return tf.slice(tensor, begin, size)

    return tf.nest.map_structure(rows, dict(tensors))


def sum_over_parts(
    part: Part, parts: int, variables: Sequence[tf.Variable]
) -> tuple[Gradients, Values]:
    """Adds up the gradients and scalars of all parts.

    The sum is what the undivided batch gives, up to the rounding of a sum in
    another order. The rows of `IndexedSlices` are joined, not added, so that
    their norm is the undivided batch's, too.

    Args:
      part: computes one part; its losses' denominators are the whole batch's.
      parts: how many there are.
      variables: what the gradients are of, in their order.

    Returns:
      The sums, as `part` gives them.
    """
    # A function of its own is traced once, and tells what comes out of it
    # before the loop is made.
    one = tf.function(part, autograph=False).get_concrete_function(
        tf.TensorSpec([], tf.int32)
    )
    gradients, values = one.structured_outputs
    start = (
        [_empty(g, parts) for g in gradients],
        {name: tf.zeros(v.shape, v.dtype) for name, v in values.items()},
    )

    def step(index: tf.Tensor, sums: Any) -> tuple[tf.Tensor, Any]:
        found, numbers = one(index)
        added = [_add(a, g, index) for a, g in zip(sums[0], found, strict=True)]
        numbers = {name: sums[1][name] + v for name, v in numbers.items()}
        return index + 1, (added, numbers)

    _, (total, numbers) = tf.while_loop(
        lambda index, sums: index < parts,
        step,
        (tf.constant(0), start),
        parallel_iterations=1,  # Else parts would run side by side.
        maximum_iterations=parts,
    )
    joined = [_joined(t, v) for t, v in zip(total, variables, strict=True)]
    return joined, numbers


def _empty(gradient: Any, parts: int) -> Any:
    """What a gradient of this kind is added to."""
    if gradient is None:
        return ()
    if not isinstance(gradient, tf.IndexedSlices):
        return tf.zeros(gradient.shape, gradient.dtype)
    return tuple(
        tf.TensorArray(part.dtype, parts, element_shape=part.shape)
        for part in (gradient.values, gradient.indices)
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
