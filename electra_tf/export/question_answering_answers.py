# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The best answers that a model's scores for windows allow, in the graph.

The same candidates in the same order as `evaluation/answer_spans.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from electra_tf.export.question_answering_passages import (
    Passages,
    cut_texts,
    project,
)
from electra_tf.export.question_answering_windows import (
    Windows,
    shows_most_context,
)


class Answers(NamedTuple):
    """The best answers to each question, with different texts, best first.

    Attributes:
      texts: string [B, N]; "" where there are fewer.
      starts: int32 [B, N], first byte in the passage; -1 for none.
      ends: int32 [B, N], the byte after the last; -1 for none.
      scores: float32 [B, N], sum of the start's and the end's; 0 for none.
      probabilities: float32 [B, N], softmax of the scores; 0 for none.
    """

    texts: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    scores: tf.Tensor
    probabilities: tf.Tensor


class Spans(NamedTuple):
    """Candidates in windows.

    Attributes:
      start: int32 [W, C], position in the row.
      end: int32 [W, C].
      score: float32 [W, C].
    """

    start: tf.Tensor
    end: tf.Tensor
    score: tf.Tensor


def joint_spans(outputs: Mapping[str, tf.Tensor]) -> Spans:
    """The beam: each start with the ends that follow from it.

    Args:
      outputs: of the head: `start_top_index`, `start_top_log_probs` [W, K];
        `end_top_index`, `end_top_log_probs` [W, K, K].

    Returns:
      Candidates [W, K * K].
    """
    end = outputs["end_top_index"]
    start = outputs["start_top_index"][:, :, tf.newaxis]
    score = outputs["start_top_log_probs"][:, :, tf.newaxis]
    return Spans(
        *map(
            _flatten,
            (
                tf.broadcast_to(start, tf.shape(end)),
                end,
                score + outputs["end_top_log_probs"],
            ),
        )
    )


def independent_spans(
    outputs: Mapping[str, tf.Tensor], n_best_size: int
) -> Spans:
    """Each of the best starts with each of the best ends.

    Args:
      outputs: of the head: `start_logits` and `end_logits` [W, L].

    Returns:
      Candidates [W, N * N], of fewer where L is less than N.
    """
    starts, ends = outputs["start_logits"], outputs["end_logits"]
    count = tf.minimum(n_best_size, tf.shape(starts)[1])
    start_scores, start = tf.math.top_k(starts, count)
    end_scores, end = tf.math.top_k(ends, count)
    shape = tf.stack([tf.shape(start)[0], count, count])
    return Spans(
        _flatten(tf.broadcast_to(start[:, :, tf.newaxis], shape)),
        _flatten(tf.broadcast_to(end[:, tf.newaxis], shape)),
        _flatten(start_scores[:, :, tf.newaxis] + end_scores[:, tf.newaxis]),
    )


def find_answers(
    passages: Passages,
    windows: Windows,
    spans: Spans,
    n_best_size: int,
    max_answer_length: int,
) -> Answers:
    """Returns the best answers with different texts.

    Source: google-research/electra, finetune/qa/qa_metrics.py,
      write_predictions.
    Differs: of each question the `n_best_size` squared best candidates are
      looked at; so a long list of best answers can be shorter than it might
      be. The best answer is the same. Without any allowed span there is no
      answer, where evaluation says "empty".
    """
    n_rows = tf.size(windows.n_windows)
    allowed = tf.where(_allowed(passages, windows, spans, max_answer_length))
    window = tf.cast(allowed[:, 0], tf.int32)
    score = tf.gather_nd(spans.score, allowed)
    question = tf.gather(windows.question, window)
    # Equal scores stay in the order of windows, starts and ends.
    order = tf.argsort(score, direction="DESCENDING", stable=True)
    order = tf.gather(
        order, tf.argsort(tf.gather(question, order), stable=True)
    )
    order = _first_of_each(order, tf.gather(question, order), n_best_size**2)
    question, score = tf.gather(question, order), tf.gather(score, order)
    window, allowed = tf.gather(window, order), tf.gather(allowed, order)
    base = tf.cast(tf.gather(passages.pieces.row_starts(), question), tf.int32)
    base += tf.gather(windows.first - windows.offset, window)
    texts = project(
        passages,
        base + tf.gather_nd(spans.start, allowed),
        base + tf.gather_nd(spans.end, allowed),
    )
    strings = cut_texts(passages, question, texts)
    kept = _first_with_each_text(question, strings)
    kept = _first_of_each(kept, tf.gather(question, kept), n_best_size)
    rows = tf.gather(question, kept)

    def dense(values: tf.Tensor, default: str | int | float) -> tf.Tensor:
        ragged = tf.RaggedTensor.from_value_rowids(
            tf.gather(values, kept), rows, n_rows, validate=False
        )
        return ragged.to_tensor(default, shape=[None, n_best_size])

    scores = dense(score, float("-inf"))
    return Answers(
        dense(strings, ""),
        dense(texts.starts, -1),
        dense(texts.ends, -1),
        dense(score, 0.0),
        _softmax(scores),
    )


def null_scores(
    windows: Windows, scores: tf.Tensor, without: float
) -> tf.Tensor:
    """What speaks for there being no answer: the least of all windows.

    Args:
      scores: float32 [W], each window's.

    Returns:
      float32 [B].
    """
    n_rows = tf.size(windows.n_windows)
    least = tf.math.unsorted_segment_min(scores, windows.question, n_rows)
    return tf.minimum(least, without)


def _flatten(values: tf.Tensor) -> tf.Tensor:
    shape = tf.shape(values)
    return tf.reshape(values, [shape[0], shape[1] * shape[2]])


def _allowed(
    passages: Passages,
    windows: Windows,
    spans: Spans,
    max_answer_length: int,
) -> tf.Tensor:
    """Which candidates can be answers: bool [W, C]."""
    column = tf.newaxis
    begin = windows.offset[:, column]
    end = begin + windows.length[:, column]
    length = spans.end - spans.start + 1
    n_pieces = tf.cast(passages.pieces.row_lengths(), tf.int32)
    places = spans.start - begin + windows.first[:, column]
    return (
        (spans.start >= begin)
        & (spans.start < end)
        & (spans.end >= begin)
        & (spans.end < end)
        & (length >= 1)
        & (length <= max_answer_length)
        & shows_most_context(windows, n_pieces, places)
    )


def _first_of_each(
    values: tf.Tensor, groups: tf.Tensor, count: int
) -> tf.Tensor:
    """Keeps the first `count` of each group; groups [M] are sorted."""
    place = tf.range(tf.size(groups))
    place -= tf.searchsorted(groups, groups)
    return tf.boolean_mask(values, place < count)


def _first_with_each_text(question: tf.Tensor, strings: tf.Tensor) -> tf.Tensor:
    """Indices of the first of equal texts of a question, in order."""
    named = tf.strings.join([tf.strings.as_string(question), strings], ":")
    different, group = tf.unique(named)
    return tf.math.unsorted_segment_min(
        tf.range(tf.size(group)), group, tf.size(different)
    )


def _softmax(scores: tf.Tensor) -> tf.Tensor:
    """Softmax in float64 of rows padded with -inf; zeros for empty rows."""
    scores = tf.cast(scores, tf.float64)
    most = tf.reduce_max(scores, -1, keepdims=True)
    most = tf.where(tf.math.is_inf(most), tf.zeros_like(most), most)
    odds = tf.exp(scores - most)
    total = tf.reduce_sum(odds, -1, keepdims=True)
    return tf.cast(tf.math.divide_no_nan(odds, total), tf.float32)
