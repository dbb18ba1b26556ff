# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of features -> outputs of a head, in batches of similar length.

The graph is traced once, for any batch size and length.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.modeling.layers import inference

Row = Mapping[str, Any]
_CALL_COST = 64.0  # In tokens; see `call_cost`.
# On a processor: the threads of one batch's short operations wait for each
# other, those of two have always something to do.
_BATCHES_AT_ONCE = 2


class PackedFunction:
    """A graph over int32 features of shape [B, L] that come as one tensor.

    One tensor to convert and one function that needs no look-up: a call costs
    little beside what it computes, even with one short row.

    `compute`: from features [B, L] by name to tensors whose first axis is B.
    """

    def __init__(
        self,
        names: Sequence[str],
        compute: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]],
    ) -> None:
        self.names = tuple(names)
        packed = tf.TensorSpec([len(names), None, None], tf.int32)

        @tf.function(input_signature=[packed], autograph=False)
        def run(features: tf.Tensor) -> dict[str, tf.Tensor]:
            parts = tf.unstack(features, len(self.names))
            with inference():
                return compute(dict(zip(self.names, parts, strict=True)))

        self._run = run.get_concrete_function()

    def __call__(
        self, rows: Sequence[Row], length: int
    ) -> dict[str, np.ndarray]:
        packed = np.zeros([len(self.names), len(rows), length], np.int32)
        for i, name in enumerate(self.names):
            for j, row in enumerate(rows):
                values = row[name][:length]
                packed[i, j, : len(values)] = values
        outputs = self._run(tf.constant(packed))
        return {name: tensor.numpy() for name, tensor in outputs.items()}


def run_in_batches(
    function: PackedFunction,
    rows: Sequence[Row],
    lengths: Sequence[int],
    batch_size: int,
    longest: int,
) -> list[dict[str, np.ndarray]]:
    """Outputs of each row, in order, made in batches of similar length."""
    order = sorted(range(len(rows)), key=lambda i: -lengths[i])
    cost = call_cost()
    sizes = batch_sizes([lengths[i] for i in order], batch_size, cost)
    ends = itertools.accumulate(sizes)
    batches = [order[end - n : end] for n, end in zip(sizes, ends, strict=True)]
    found: list[dict[str, np.ndarray]] = [{}] * len(rows)

    def run(chosen: Sequence[int]) -> None:
        length = min(lengths[chosen[0]], longest)
        outputs = function([rows[i] for i in chosen], length)
        for place, i in enumerate(chosen):
            found[i] = {name: a[place] for name, a in outputs.items()}

    if len(batches) < 2 or math.isinf(cost):
        list(map(run, batches))
    else:
        with ThreadPoolExecutor(_BATCHES_AT_ONCE) as pool:
            list(pool.map(run, batches))  # Raises what they raise.
    return found


def call_cost() -> float:
    """Returns what a call costs besides its tokens, in tokens.

    On a processor padding costs as much as text, and a call little: the time
    of about 64 tokens in ELECTRA-Small. An accelerator is idle with short
    batches; there calls are what costs.
    """
    kinds = {device.device_type for device in tf.config.list_logical_devices()}
    return _CALL_COST if kinds == {"CPU"} else math.inf


def batch_sizes(
    lengths: Sequence[int], most: int, call_cost: float
) -> list[int]:
    """Cuts sorted rows into batches that cost least in all.

    A batch costs its rows times its longest, and `call_cost`.
    """
    count = len(lengths)
    if math.isinf(call_cost):
        return [min(most, count - i) for i in range(0, count, most)]
    # best[i]: least cost of the rows from i on, and the first batch's size.
    best: list[tuple[float, int]] = [(0.0, 0)] * (count + 1)
    for i in reversed(range(count)):
        best[i] = min(
            (size * lengths[i] + call_cost + best[i + size][0], -size)
            for size in range(1, min(most, count - i) + 1)
        )
    sizes, start = [], 0
    while start < count:
        sizes.append(-best[start][1])
        start += sizes[-1]
    return sizes
