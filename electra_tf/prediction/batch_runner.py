# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The batch runner: it groups rows by length and computes the batches.

The graph is traced once, for any batch size and length.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.metrics.finite_outputs import check_finite
from electra_tf.modeling.graph_modes import inference

Row = Mapping[str, Any]
_CALL_COST = 64.0  # tokens; see `call_cost`
# On a CPU, the short operations of one batch leave threads idle; two parallel
# batches keep all threads busy.
_BATCHES_AT_ONCE = 2


class PackedFunction:
    """A graph over int32 features [B, L] that are passed as one tensor.

    A call converts one tensor and looks up no function, so that its overhead is
    small even for one short row.
    """

    def __init__(
        self,
        names: Sequence[str],
        compute: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]],
    ) -> None:
        """Trace the graph.

        Args:
          names: the features.
          compute: a function from features [B, L] to tensors [B, ...].
        """
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
        """Return the outputs of rows, which are padded or cut to `length`."""
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
    describe: Callable[[int], str],
) -> list[dict[str, np.ndarray]]:
    """Return the outputs of each row; rows of similar length share a batch.

    Args:
      function: the graph.
      rows: the features.
      lengths: the number of columns that each row needs.
      batch_size: the maximum number of rows of a batch.
      longest: the maximum number of columns of a batch.
      describe: function from the index of a row to words that name its text.

    Raises:
      UserError: an output is infinite or NaN.
    """
    order = sorted(range(len(rows)), key=lambda i: -lengths[i])
    cost = call_cost()
    sizes = batch_sizes([lengths[i] for i in order], batch_size, cost)
    ends = itertools.accumulate(sizes)
    batches = [order[end - n : end] for n, end in zip(sizes, ends, strict=True)]
    row_outputs: list[dict[str, np.ndarray]] = [{}] * len(rows)

    def run(indices: Sequence[int]) -> None:
        length = min(lengths[indices[0]], longest)
        outputs = function([rows[i] for i in indices], length)
        check_finite(outputs, lambda position: describe(indices[position]))
        for position, i in enumerate(indices):
            row_outputs[i] = {
                name: array[position] for name, array in outputs.items()
            }

    if len(batches) < 2 or math.isinf(cost):
        list(map(run, batches))
    else:
        with ThreadPoolExecutor(_BATCHES_AT_ONCE) as pool:
            # Results are read here, because reading raises the errors of the
            # threads.
            list(pool.map(run, batches))
    return row_outputs


def call_cost() -> float:
    """Return the overhead of a call, in tokens.

    On a CPU padding takes as long as text, and the overhead is the time of
    about 64 tokens of ELECTRA-Small. Short batches leave an accelerator idle,
    so only the number of calls counts there (infinity).
    """
    kinds = {device.device_type for device in tf.config.list_logical_devices()}
    return _CALL_COST if kinds == {"CPU"} else math.inf


def batch_sizes(
    lengths: Sequence[int], most: int, call_cost: float
) -> list[int]:
    """Return the batch sizes that minimize the total cost of sorted rows.

    A batch costs its number of rows times the longest row, plus `call_cost`.

    Args:
      lengths: the lengths of the rows, longest first.
      most: the maximum number of rows of a batch.
      call_cost: the result of the function `call_cost`.
    """
    count = len(lengths)
    if math.isinf(call_cost):
        return [min(most, count - i) for i in range(0, count, most)]
    # best[i]: the least cost of the rows from i on, and the negated size of
    # their first batch. The size is negated, so that larger batches win ties.
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
