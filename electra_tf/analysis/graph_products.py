# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Matrix products found in a TensorFlow graph: what a count is checked with."""

import collections
import math
from typing import Any


def graph_products(
    graph: Any, lookup_rows: int | None = None
) -> collections.Counter[str]:
    """Adds up the operations of a graph's matrix products, by op type."""
    counts: collections.Counter[str] = collections.Counter()
    for op in graph.get_operations():
        if op.type == "MatMul":
            dimensions = _matmul(op, "transpose_a")
        elif op.type in ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"):
            dimensions = _matmul(op, "adj_x")
        elif op.type == "Einsum":
            dimensions = _einsum(op)
        else:
            continue
        if lookup_rows not in dimensions:
            counts[op.type] += 2 * math.prod(dimensions)
    return counts


def _matmul(op: Any, transposed: str) -> list[int]:
    """All of the output's dimensions, and the one summed over."""
    left, out = _shape(op.inputs[0], op), _shape(op.outputs[0], op)
    return [*out, left[-2] if op.get_attr(transposed) else left[-1]]


def _einsum(op: Any) -> list[int]:
    """The sizes of all the letters in an equation."""
    equation = op.get_attr("equation").decode()
    sizes: dict[str, int] = {}
    terms = equation.split("->")[0].split(",")
    for term, tensor in zip(terms, op.inputs, strict=True):
        sizes.update(zip(term, _shape(tensor, op), strict=True))
    return list(sizes.values())


def _shape(tensor: Any, op: Any) -> list[int]:
    shape = tensor.shape
    if not shape.is_fully_defined():
        raise ValueError(
            f"{op.name}: a tensor of shape {shape}; trace the graph with"
            " static shapes"
        )
    return shape.as_list()
