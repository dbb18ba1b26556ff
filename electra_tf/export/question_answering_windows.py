# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Questions and passages to the windows that a model reads, in the graph.

The same windows as `finetuning/question_answering/featurization.py` lays, for
a whole batch at once and without a loop: all windows of a passage but the
last are equally long, so place and number of each follow by arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from electra_tf.export.signatures import Inputs
from electra_tf.finetuning.question_answering.featurization import MAX_WINDOWS


class Windows(NamedTuple):
    """The windows of a batch of questions, one after the other.

    Attributes:
      inputs: int32 [W, L] each.
      question: int32 [W], the question each is of.
      number: int32 [W], its place among the question's windows.
      first: int32 [W], the passage's wordpiece it begins with.
      length: int32 [W], wordpieces of the passage in it.
      offset: int32 [W], where in the row these begin.
      stride: int32 [W], from one window of the passage to the next.
      n_windows: int32 [B], windows of each question; 0 for a passage without
        wordpieces.
    """

    inputs: Inputs
    question: tf.Tensor
    number: tf.Tensor
    first: tf.Tensor
    length: tf.Tensor
    offset: tf.Tensor
    stride: tf.Tensor
    n_windows: tf.Tensor


def cut_windows(
    query: tf.RaggedTensor,
    passage: tf.RaggedTensor,
    max_seq_length: int,
    max_query_length: int,
    doc_stride: int,
    cls_id: int,
    sep_id: int,
    shortest: int = 1,
) -> Windows:
    """Lays windows over passages: `[CLS] query [SEP] part [SEP]`.

    Args:
      query: int32 [B, (Q)], ids of the questions, not cut yet.
      passage: int32 [B, (P)], ids of the passages.
      cls_id: id of [CLS].
      sep_id: id of [SEP].

    Source: google-research/electra, finetune/qa/qa_tasks.py, featurize.
    """
    n_query = tf.minimum(_lengths(query), max_query_length)
    n_pieces = _lengths(passage)
    room = max_seq_length - n_query - 3
    stride = tf.minimum(room, doc_stride)
    beyond = tf.maximum(n_pieces - room, 0)
    n_windows = tf.minimum((beyond + stride - 1) // stride + 1, MAX_WINDOWS)
    n_windows = tf.where(n_pieces > 0, n_windows, 0)

    question = tf.repeat(tf.range(tf.size(n_windows)), n_windows)
    number = tf.ragged.range(n_windows).values
    stride = tf.gather(stride, question)
    first = number * stride
    length = tf.minimum(
        tf.gather(n_pieces, question) - first, tf.gather(room, question)
    )
    offset = tf.gather(n_query, question) + 2
    longest = tf.reduce_max(tf.concat([offset + length + 1, [shortest]], 0))

    column = tf.range(longest)[tf.newaxis]  # [1, L]
    start, end = offset[:, tf.newaxis], (offset + length)[:, tf.newaxis]
    from_query = _pick(query, question, column - 1)
    from_passage = _pick(
        passage, question, column - start + first[:, tf.newaxis]
    )
    in_passage = (column >= start) & (column < end)
    is_sep = (column == start - 1) | (column == end)
    ids = tf.where(in_passage, from_passage, from_query)
    ids = tf.where(column == 0, cls_id, tf.where(is_sep, sep_id, ids))
    mask = tf.cast(column <= end, tf.int32)
    segments = tf.cast(column >= start, tf.int32) * mask
    return Windows(
        Inputs(ids * mask, mask, segments),
        question,
        number,
        first,
        length,
        offset,
        stride,
        n_windows,
    )


def shows_most_context(
    windows: Windows, n_pieces: tf.Tensor, places: tf.Tensor
) -> tf.Tensor:
    """Whether no other window shows more around a wordpiece.

    That is the window where the smaller of its left and right context is
    largest; of equal windows the first.

    Args:
      n_pieces: int32 [B], wordpieces of each passage.
      places: int32 [W, K], wordpieces of the passage that the window holds;
        anything for others.

    Returns:
      bool [W, K].

    Source: google-research/electra, finetune/qa/qa_tasks.py,
      _check_is_max_context.
    """
    column = tf.newaxis
    stride = windows.stride[:, column, column]
    last = tf.gather(windows.n_windows, windows.question)[:, column, column] - 1
    total = tf.gather(n_pieces, windows.question)[:, column, column]
    # All windows but the last are as long as the first.
    whole = tf.math.unsorted_segment_max(
        windows.length, windows.question, tf.size(n_pieces)
    )
    whole = tf.gather(whole, windows.question)[:, column, column]
    # A window that holds a place begins at most its length before it.
    n_rivals = tf.reduce_max(
        tf.concat([(whole + stride - 1) // stride, [[[1]]]], 0)
    )
    place = places[:, :, column]  # [W, K, 1]
    number = tf.minimum(place // stride, last) - tf.range(n_rivals)
    first = number * stride  # [W, K, R]
    length = tf.minimum(total - first, whole)
    left, right = place - first, first + length - 1 - place
    holds = (number >= 0) & (left >= 0) & (right >= 0)
    # In the precision, and so with the ties, of the Python code.
    score = tf.cast(tf.minimum(left, right), tf.float64)
    score += 0.01 * tf.cast(length, tf.float64)
    score = tf.where(holds, score, tf.constant(-1.0, tf.float64))
    is_best = score == tf.reduce_max(score, -1, keepdims=True)
    best = tf.reduce_min(tf.where(is_best, number, MAX_WINDOWS), -1)
    return best == windows.number[:, column]


def _lengths(ragged: tf.RaggedTensor) -> tf.Tensor:
    return tf.cast(ragged.row_lengths(), tf.int32)


def _pick(ids: tf.RaggedTensor, row: tf.Tensor, place: tf.Tensor) -> tf.Tensor:
    """Looks up ids; any id where there is none at the place.

    Args:
      ids: int32 [B, (T)].
      row: int32 [W], row of `ids`.
      place: int32 [W or 1, L], place in the row.

    Returns:
      int32 [W, L].
    """
    starts = tf.cast(tf.gather(ids.row_starts(), row), tf.int32)
    values = tf.concat([tf.cast(ids.values, tf.int32), [0]], 0)
    index = starts[:, tf.newaxis] + place
    return tf.gather(values, tf.clip_by_value(index, 0, tf.size(values) - 1))
