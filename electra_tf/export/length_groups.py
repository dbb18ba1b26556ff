# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A batch of texts through a model, those of similar length together.

On a processor padding costs as much as text. A batch of texts of all lengths
is therefore quicker in groups, each as wide as its longest text only.
"""

from collections.abc import Callable

import tensorflow as tf

from electra_tf.export.packing import Inputs


def compute_by_length(
    compute: Callable[[Inputs], tf.Tensor],
    inputs: Inputs,
    units: int,
    rows_at_once: int,
) -> tf.Tensor:
    """Computes rows in groups, the longest rows first.

    Args:
      compute: from inputs int32 [b, l] to float32 [b, units]; what it gives
        for a row does not depend on padding or on the other rows.
      inputs: int32 [B, L] each, padding at the end; B may be 0.
      units: of the outputs.
      rows_at_once: most rows of a group.

    Returns:
      float32 [B, units], in the order of the inputs.
    """
    lengths = tf.reduce_sum(inputs.input_mask, 1)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    count = tf.shape(order)[0]
    # An empty batch is one group of nothing.
    groups = tf.maximum((count + rows_at_once - 1) // rows_at_once, 1)
    found = tf.TensorArray(
        tf.float32, groups, element_shape=[None, units], infer_shape=False
    )

    def one(group: tf.Tensor, found: tf.TensorArray):
        start = group * rows_at_once
        rows = order[start : start + rows_at_once]
        longest = tf.reduce_max(tf.gather(lengths, rows))
        longest = tf.maximum(longest, 1)  # Of nothing it is the least int32.
        part = Inputs(*(tf.gather(x, rows)[:, :longest] for x in inputs))
        return group + 1, found.write(group, compute(part))

    _, found = tf.while_loop(
        lambda group, _: group < groups,
        one,
        (tf.constant(0), found),
        parallel_iterations=1,
    )
    return tf.gather(found.concat(), tf.argsort(order))
