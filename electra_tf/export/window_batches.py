# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Any number of windows through a model, in bounded memory.

A long text makes many windows. They are computed in batches one after the
other, so that a request may be long without taking memory in proportion.
"""

from collections.abc import Callable, Mapping

import tensorflow as tf

from electra_tf.export.signatures import Inputs

# Windows computed at once.
WINDOWS_AT_ONCE = 32


def compute_in_batches(
    compute: Callable[[Inputs, tf.Tensor], dict[str, tf.Tensor]],
    inputs: Inputs,
    extra: tf.Tensor,
    outputs: Mapping[str, tf.TensorSpec],
    at_once: int = WINDOWS_AT_ONCE,
) -> dict[str, tf.Tensor]:
    """Computes windows in batches of nearly equal size.

    Args:
      compute: from inputs int32 [b, L] and rows of `extra` [b, ...] to named
        outputs [b, ...], whose other axes are the same for every b.
      inputs: int32 [W, L] each; W may be 0.
      extra: int32 [W, ...], whatever else `compute` needs.
      outputs: the spec [b, ...] of each output, with b None.

    Returns:
      The outputs, [W, ...].
    """
    count = tf.shape(inputs.input_ids)[0]
    n_batches = tf.maximum((count + at_once - 1) // at_once, 1)
    size = tf.maximum((count + n_batches - 1) // n_batches, 1)
    # Rows of zeros fill the last batch; without any window there is one.
    missing = n_batches * size - count
    parts = [_in_batches(part, missing, size) for part in (*inputs, extra)]

    def one(batch: tuple[tf.Tensor, ...]) -> dict[str, tf.Tensor]:
        found = compute(Inputs(*batch[:3]), batch[3])
        return {name: found[name] for name in outputs}

    stacked = tf.map_fn(
        one,
        tuple(parts),
        fn_output_signature=dict(outputs),
        parallel_iterations=1,
    )
    return {
        name: tf.reshape(
            found, tf.concat([[n_batches * size], tf.shape(found)[2:]], 0)
        )[:count]
        for name, found in stacked.items()
    }


def _in_batches(
    rows: tf.Tensor, missing: tf.Tensor, size: tf.Tensor
) -> tf.Tensor:
    """Fills up rows [W, ...] with zeros; returns [batches, size, ...]."""
    rank = rows.shape.rank
    rows = tf.pad(rows, [[0, missing]] + [[0, 0]] * (rank - 1))
    shape = tf.concat([[-1, size], tf.shape(rows)[1:]], 0)
    # A -1 cannot be worked out where the other axes are empty.
    if rank > 1:
        batches = tf.shape(rows)[0] // size
        shape = tf.concat([[batches, size], tf.shape(rows)[1:]], 0)
    return tf.reshape(rows, shape)
