# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Picking and replacing positions of sequences."""

import tensorflow as tf


def gather_positions(sequence: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Picks the values of [B, L] or [B, L, H] at positions [B, N].

    Source: google-research/electra, pretrain/pretrain_helpers.py,
    gather_positions.
    """
    if sequence.shape.rank not in (2, 3):
        raise ValueError(
            f"sequence must be of rank 2 or 3, not {sequence.shape.rank}"
        )
    return tf.gather(sequence, positions, batch_dims=1)


def scatter_update(
    sequence: tf.Tensor, updates: tf.Tensor, positions: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Replaces the ids at given positions of each sequence.

    Position 0 is never replaced, which is how unused slots (position 0) stay
    without effect. Where a position occurs more than once its updates are
    summed and floor-divided by their number: no change for equal ids, but two
    different sampled ids become their integer mean, as in the original.

    Args:
      sequence: int32 [B, L].
      updates: int32 [B, N].
      positions: int32 [B, N], each in [0, L).

    Returns:
      int32 [B, L] updated ids and int32 [B, L] with 1 where replaced.

    Source: google-research/electra, pretrain/pretrain_helpers.py,
    scatter_update.
    """
    shape = tf.shape(sequence)
    rows = tf.broadcast_to(
        tf.range(tf.shape(positions)[0])[:, None], tf.shape(positions)
    )
    index = tf.stack([rows, positions], -1)  # [B, N, 2]
    total = tf.scatter_nd(index, updates, shape)
    count = tf.scatter_nd(index, tf.ones_like(updates), shape)
    count *= tf.cast(tf.range(shape[1]) > 0, count.dtype)
    mean = tf.math.floordiv(total, tf.maximum(1, count))
    replaced = tf.minimum(count, 1)
    return tf.where(count > 0, mean, sequence), replaced
