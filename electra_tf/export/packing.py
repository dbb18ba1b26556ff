# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Token ids to the inputs of the encoder, in the graph.

The same cutting and joining as `TextTask.featurize`, for a whole batch at
once; rows are as long as the longest needs, not max_seq_length.
"""

from typing import NamedTuple

import tensorflow as tf


class Inputs(NamedTuple):
    """What the encoder takes; all int32 [B, L]."""

    input_ids: tf.Tensor
    input_mask: tf.Tensor
    segment_ids: tf.Tensor


def pack(
    first: tf.RaggedTensor,
    second: tf.RaggedTensor | None,
    max_length: int | tf.Tensor,
    cls_id: int,
    sep_id: int,
    width: int | tf.Tensor | None = None,
) -> tuple[Inputs, tf.Tensor]:
    """Joins texts to `[CLS] first [SEP]` or `[CLS] first [SEP] second [SEP]`.

    What does not fit is dropped from the end of the longer text, of the
    second where both are equally long. A second text without tokens is none.

    Args:
      first: int32 [B, (T)] ids.
      second: int32 [B, (T)] ids, or None for single texts.
      max_length: most ids of a row, the special ones included.
      cls_id: id of [CLS].
      sep_id: id of [SEP].
      width: L; None: the length of the longest row.

    Returns:
      The inputs, padded with 0; and
      bool [B], whether something was dropped.

    Source: google-research/electra, finetune/classification/
      classification_tasks.py, featurize.
    """
    first = tf.cast(first, tf.int32)
    rows = first.nrows(tf.int32)
    cls_column = tf.fill([rows, 1], cls_id)
    sep_column = tf.fill([rows, 1], sep_id)
    a = tf.cast(first.row_lengths(), tf.int32)
    if second is None:
        kept = tf.minimum(a, tf.maximum(max_length - 2, 0))
        ids = tf.concat([cls_column, cut(first, kept), sep_column], 1)
        head = tf.cast(ids.row_lengths(), tf.int32)
        return to_inputs(ids, head, width), kept < a
    second = tf.cast(second, tf.int32)
    b = tf.cast(second.row_lengths(), tf.int32)
    kept_a, kept_b = kept_lengths(a, b, max_length)
    # A second text of which nothing is left has no [SEP] either.
    last = cut(tf.RaggedTensor.from_tensor(sep_column), tf.minimum(kept_b, 1))
    parts = [cls_column, cut(first, kept_a), sep_column, cut(second, kept_b)]
    ids = tf.concat([*parts, last], 1)
    return to_inputs(ids, kept_a + 2, width), (kept_a < a) | (kept_b < b)


def kept_lengths(
    a: tf.Tensor, b: tf.Tensor, max_length: int | tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """How much of two texts is kept: dropping one by one, in closed form.

    Args:
      a: int32 [B], ids of the first text.
      b: int32 [B], ids of the second.
      max_length: most ids of a row, the special ones included.

    Returns:
      int32 [B] each, what is left of the first and of the second.
    """
    room = tf.maximum(max_length - 2 - tf.minimum(b, 1), 0)
    half = room // 2
    kept_a = tf.minimum(a, tf.maximum(room - b, room - half))
    kept_b = tf.minimum(b, tf.maximum(room - a, half))
    return kept_a, kept_b


def cut(ids: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Keeps the beginning of each row.

    Args:
      ids: [B, (T)].
      lengths: int32 [B], at most the rows' own.

    Returns:
      [B, (lengths)].
    """
    places = tf.ragged.range(tf.cast(lengths, ids.row_splits.dtype))
    return tf.gather(ids, places, batch_dims=1)


def to_inputs(
    ids: tf.RaggedTensor,
    head: tf.Tensor,
    width: int | tf.Tensor | None = None,
) -> Inputs:
    """Pads rows, and makes mask and segments of their lengths.

    Args:
      ids: int32 [B, (T)].
      head: int32 [B]; ids from there on are of segment 1.
      width: L; None: the length of the longest row, 1 with no row at all.

    Returns:
      The inputs.
    """
    lengths = tf.cast(ids.row_lengths(), tf.int32)
    if width is None:
        width = tf.reduce_max(tf.concat([lengths, [1]], 0))
    mask = tf.sequence_mask(lengths, width, tf.int32)
    segments = mask - tf.minimum(tf.sequence_mask(head, width, tf.int32), mask)
    dense = ids.to_tensor(0, shape=tf.stack([-1, width]))
    return Inputs(dense, mask, segments)


def complete(
    input_ids: tf.Tensor,
    input_mask: tf.Tensor | None,
    segment_ids: tf.Tensor | None,
    pad_id: int,
    sep_id: int,
) -> Inputs:
    """Fills in mask and segments that were not given.

    The ids say it all, since text never makes special tokens: padding is
    where [PAD] is, and the second segment follows the first [SEP].

    Args:
      input_ids: int32 [B, L].
      input_mask: int32 [B, L]; None or without elements: not given.
      segment_ids: int32 [B, L]; None or without elements: not given.
      pad_id: id of [PAD].
      sep_id: id of [SEP].

    Returns:
      The inputs.
    """
    real = tf.cast(input_ids != pad_id, tf.int32)
    mask = _or_else(input_mask, real)
    is_sep = tf.cast(input_ids == sep_id, tf.int32)
    after = tf.minimum(tf.cumsum(is_sep, axis=1, exclusive=True), 1)
    return Inputs(input_ids, mask, _or_else(segment_ids, after * mask))


def _or_else(given: tf.Tensor | None, derived: tf.Tensor) -> tf.Tensor:
    if given is None:
        return derived
    return tf.cond(tf.size(given) > 0, lambda: given, lambda: derived)
