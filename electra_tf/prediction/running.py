# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of features -> outputs of a head, in batches of similar length.

The graph is traced once, for any batch size and length.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.finetuning.batches import BUCKET_WIDTH
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.task import Task

INPUTS = ("input_ids", "input_mask", "segment_ids")
Row = Mapping[str, Any]


class PackedFunction:
    """A graph over int32 features of shape [B, L] that come as one tensor.

    One tensor to convert and one function that needs no look-up: a call costs
    little beside what it computes, even with one short row.

    Args:
      names: of the features.
      compute: from features [B, L] by name to tensors whose first axis is B.
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
            return compute(dict(zip(self.names, parts, strict=True)))

        self._run = run.get_concrete_function()

    def __call__(
        self, rows: Sequence[Row], length: int
    ) -> dict[str, np.ndarray]:
        """Runs a batch.

        Args:
          rows: sequences of int by name, longer than `length` only where the
            rest is padding.
          length: L.
        """
        packed = np.zeros([len(self.names), len(rows), length], np.int32)
        for i, name in enumerate(self.names):
            for j, row in enumerate(rows):
                values = row[name][:length]
                packed[i, j, : len(values)] = values
        outputs = self._run(tf.constant(packed))
        return {name: tensor.numpy() for name, tensor in outputs.items()}


def head_function(
    model: FinetuningModel,
    index: int,
    task: Task,
    fed: Sequence[str],
    outputs: Sequence[str],
) -> PackedFunction:
    """Returns the graph from features to chosen outputs of one task's head.

    Args:
      model: the model.
      index: place of the task's head.
      task: the task.
      fed: the task's own features that matter, int32 [B, L]; all others are
        for losses and are given as zeros.
      outputs: the names wanted.
    """
    specs = [s for s in task.get_feature_specs() if s.name not in fed]
    whole = task.config.max_seq_length

    def compute(features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        batch, length = tf.unstack(tf.shape(features["input_ids"]))
        encoded = model.encoder(*(features[name] for name in INPUTS))
        features = dict(features)
        for spec in specs:
            shape = list(spec.shape)
            # As `Batches` tells which features follow the batch's length.
            follows = spec.per_token
            if follows is None:
                follows = shape[:1] == [whole]
            shape[:1] = [length] if follows else shape[:1]
            dtype = tf.int32 if spec.is_int_feature else tf.float32
            features[spec.name] = tf.zeros([batch, *shape], dtype)
        _, found = model.heads[index].compute(
            encoded, features, False, None, None
        )
        return {name: found[name] for name in outputs}

    return PackedFunction([*INPUTS, *fed], compute)


def run_in_batches(
    function: PackedFunction,
    rows: Sequence[Row],
    lengths: Sequence[int],
    batch_size: int,
    longest: int,
) -> list[dict[str, np.ndarray]]:
    """Runs rows in batches of similar length.

    Args:
      function: the graph.
      rows: features by name.
      lengths: of each row, without padding.
      batch_size: rows of a batch, at most.
      longest: no batch is padded beyond it.

    Returns:
      The outputs of each row, in the order of the rows.
    """
    order = sorted(range(len(rows)), key=lambda i: -lengths[i])
    found: list[dict[str, np.ndarray]] = [{}] * len(rows)
    for start in range(0, len(rows), batch_size):
        chosen = order[start : start + batch_size]
        length = -(-lengths[chosen[0]] // BUCKET_WIDTH) * BUCKET_WIDTH
        outputs = function([rows[i] for i in chosen], min(length, longest))
        for place, i in enumerate(chosen):
            found[i] = {name: a[place] for name, a in outputs.items()}
    return found
