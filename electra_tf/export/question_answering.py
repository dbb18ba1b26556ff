# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Modules that answer questions about a text, long ones in windows.

docs/export.md says what `serve_text` gives. The signatures on ids give the
head's outputs for one window a row.

Source: google-research/electra, finetune/qa.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from electra_tf.export.passages import (
    Passages,
    Windows,
    cut_texts,
    cut_windows,
    project,
    read_passages,
    shows_most_context,
)
from electra_tf.export.signatures import (
    Inputs,
    Outputs,
    Signatures,
    TaskModule,
    compute_in_groups,
    text_function,
)
from electra_tf.finetuning.question_answering import QATask
from electra_tf.prediction.loading import FinetunedModel
from electra_tf.text.graph_normalization import GraphNormalizer

_WINDOWS_AT_ONCE = 32
# Null odds of a question without any window, as in evaluation.
_NO_WINDOW = 1000000.0
# Rank of what the head gives, by whether it predicts start and end jointly.
_OUTPUTS = {
    False: {"answerable_logit": 1, "start_logits": 2, "end_logits": 2},
    True: {
        "answerable_logit": 1,
        "start_logits": 2,
        "start_top_index": 2,
        "start_top_log_probs": 2,
        "end_top_index": 3,
        "end_top_log_probs": 3,
    },
}
# Decide which answer is given.
_HPARAMS = (
    "max_query_length",
    "doc_stride",
    "n_best_size",
    "max_answer_length",
    "joint_prediction",
    "beam_size",
    "answerable_classifier",
    "qa_na_threshold",
)
# Candidates in windows: start and end in the row, int32, and score, [W, C].
Spans = tuple[tf.Tensor, tf.Tensor, tf.Tensor]


class QuestionAnsweringModule(TaskModule):
    """Answers cut from a text."""

    KIND = "question_answering"

    def __init__(self, loaded: FinetunedModel, task: QATask) -> None:
        config = loaded.config
        self._is_joint = config.joint_prediction
        super().__init__(loaded, task)
        self._normalizer = GraphNormalizer(
            config.do_lower_case, config.strip_accents
        )

    def extra_config(self) -> dict[str, Any]:
        """Adds what decides which answer is given."""
        config = self.loaded.config
        hparams = {name: getattr(config, name) for name in _HPARAMS}
        return {"version": self.task.version, **hparams}

    def compute(self, inputs: Inputs) -> Outputs:
        """From inputs [B, L] to the head's outputs; see the module."""
        length = tf.shape(inputs.input_ids)[1]
        # A beam needs as many positions as it keeps.
        missing = tf.maximum(self.task.min_length - length, 0)
        padded = [tf.pad(part, [[0, 0], [0, missing]]) for part in inputs]
        found = self.head_outputs(Inputs(*padded))
        return {
            name: found[name][:, :length]
            if name in ("start_logits", "end_logits")
            else found[name]
            for name in _OUTPUTS[self._is_joint]
        }

    def compute_text(self, question: tf.Tensor, context: tf.Tensor) -> Outputs:
        """From strings [B] to answers; see the module."""
        config, tokenizer = self.loaded.config, self.tokenizer
        # Both need to be of the same size: say so before anything else fails.
        tf.debugging.assert_equal(
            tf.shape(question),
            tf.shape(context),
            "question and context: expected as many of the one as of the other",
        )
        query = tokenizer.encode(question)
        passages = read_passages(context, tokenizer, self._normalizer)
        windows = cut_windows(
            query,
            passages.pieces,
            config.max_seq_length,
            config.max_query_length,
            config.doc_stride,
            tokenizer.cls_id,
            tokenizer.sep_id,
            self.task.min_length,
        )
        outputs = compute_in_groups(
            lambda inputs, _: self.compute(inputs),
            windows.inputs,
            windows.question,
            {
                name: tf.TensorSpec(
                    [None] * rank,
                    tf.int32 if name.endswith("_index") else tf.float32,
                )
                for name, rank in _OUTPUTS[self._is_joint].items()
            },
            _WINDOWS_AT_ONCE,
        )
        if self._is_joint:
            spans = _joint_spans(outputs)
        else:
            spans = _independent_spans(outputs, config.n_best_size)
        found = find_answers(
            passages,
            windows,
            spans,
            config.n_best_size,
            config.max_answer_length,
        )
        return {
            **self._decide(found, windows, outputs),
            **found,
            "n_windows": windows.n_windows,
            "n_cut": _count_cut(passages, windows),
            "question_cut": query.row_lengths() > config.max_query_length,
        }

    def text_signatures(self) -> Signatures:
        """With two strings."""
        return {"serve_text": text_function(self.compute_text, 2)}

    def _decide(
        self, found: Outputs, windows: Windows, outputs: Outputs
    ) -> Outputs:
        """The one answer, or none; as `SpanScorer` decides it."""
        config = self.loaded.config
        if config.answerable_classifier:
            least = outputs["answerable_logit"]
        else:
            least = outputs["start_logits"][:, 0]
            if not self._is_joint:
                least += outputs["end_logits"][:, 0]
        null_score = tf.math.unsorted_segment_min(
            least, windows.question, tf.size(windows.n_windows)
        )
        null_score = null_odds = tf.minimum(null_score, _NO_WINDOW)
        if not config.answerable_classifier:
            null_odds = null_score - found["scores"][:, 0]
        answered = found["starts"][:, 0] >= 0
        if self.task.v2:
            answered &= null_odds <= config.qa_na_threshold
        return {
            "answer": tf.where(answered, found["answers"][:, 0], ""),
            "start": tf.where(answered, found["starts"][:, 0], -1),
            "end": tf.where(answered, found["ends"][:, 0], -1),
            "score": found["scores"][:, 0],
            "probability": found["probabilities"][:, 0],
            "null_score": null_score,
            "null_odds": null_odds,
        }


def _joint_spans(outputs: Mapping[str, tf.Tensor]) -> Spans:
    """The beam, [W, K * K]: each start with the ends that follow from it."""
    end = outputs["end_top_index"]
    start = outputs["start_top_index"][:, :, tf.newaxis]
    score = outputs["start_top_log_probs"][:, :, tf.newaxis]
    return (
        _flatten(tf.broadcast_to(start, tf.shape(end))),
        _flatten(end),
        _flatten(score + outputs["end_top_log_probs"]),
    )


def _independent_spans(
    outputs: Mapping[str, tf.Tensor], n_best_size: int
) -> Spans:
    """Each of the best starts with each of the best ends, [W, N * N]."""
    starts, ends = outputs["start_logits"], outputs["end_logits"]
    count = tf.minimum(n_best_size, tf.shape(starts)[1])
    start_scores, start = tf.math.top_k(starts, count)
    end_scores, end = tf.math.top_k(ends, count)
    shape = tf.stack([tf.shape(start)[0], count, count])
    return (
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
) -> Outputs:
    """The best answers with different texts, [B, N] as in the module.

    The same candidates in the same order as `metrics/question_answering.py`.

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
    start, end, score = (tf.gather_nd(part, allowed) for part in spans)
    question = tf.gather(windows.question, window)
    # Equal scores stay in the order of windows, starts and ends.
    order = tf.argsort(score, direction="DESCENDING", stable=True)
    order = tf.gather(
        order, tf.argsort(tf.gather(question, order), stable=True)
    )
    order = _first_of_each(order, tf.gather(question, order), n_best_size**2)
    question, score, window, start, end = (
        tf.gather(part, order) for part in (question, score, window, start, end)
    )
    base = tf.cast(tf.gather(passages.pieces.row_starts(), question), tf.int32)
    base += tf.gather(windows.first - windows.offset, window)
    starts, ends = project(passages, base + start, base + end)
    texts = cut_texts(passages, question, starts, ends)
    kept = _first_with_each_text(question, texts)
    kept = _first_of_each(kept, tf.gather(question, kept), n_best_size)
    rows = tf.gather(question, kept)

    def dense(values: tf.Tensor, default: str | int | float) -> tf.Tensor:
        ragged = tf.RaggedTensor.from_value_rowids(
            tf.gather(values, kept), rows, n_rows, validate=False
        )
        return ragged.to_tensor(default, shape=[None, n_best_size])

    return {
        "answers": dense(texts, ""),
        "starts": dense(starts, -1),
        "ends": dense(ends, -1),
        "scores": dense(score, 0.0),
        "probabilities": _softmax(dense(score, float("-inf"))),
    }


def _flatten(values: tf.Tensor) -> tf.Tensor:
    """From [W, K, K] to [W, K * K]; W may be 0."""
    shape = tf.shape(values)
    return tf.reshape(values, [shape[0], shape[1] * shape[2]])


def _allowed(
    passages: Passages, windows: Windows, spans: Spans, max_answer_length: int
) -> tf.Tensor:
    """Which candidates can be answers: bool [W, C]."""
    start, end, _ = spans
    column = tf.newaxis
    begin = windows.offset[:, column]
    behind = begin + windows.length[:, column]
    length = end - start + 1
    n_pieces = tf.cast(passages.pieces.row_lengths(), tf.int32)
    places = start - begin + windows.first[:, column]
    return (
        (start >= begin)
        & (start < behind)
        & (end >= begin)
        & (end < behind)
        & (length >= 1)
        & (length <= max_answer_length)
        & shows_most_context(windows, n_pieces, places)
    )


def _first_of_each(
    values: tf.Tensor, groups: tf.Tensor, count: int
) -> tf.Tensor:
    """Keeps the first `count` of each group; groups [M] are sorted."""
    place = tf.range(tf.size(groups)) - tf.searchsorted(groups, groups)
    return tf.boolean_mask(values, place < count)


def _first_with_each_text(question: tf.Tensor, texts: tf.Tensor) -> tf.Tensor:
    """Indices of the first of equal texts of a question, in order."""
    named = tf.strings.join([tf.strings.as_string(question), texts], ":")
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


def _count_cut(passages: Passages, windows: Windows) -> tf.Tensor:
    """Wordpieces of each passage [B] behind the last window."""
    held = tf.math.unsorted_segment_max(
        windows.first + windows.length,
        windows.question,
        tf.size(windows.n_windows),
    )
    n_pieces = tf.cast(passages.pieces.row_lengths(), tf.int32)
    return n_pieces - tf.clip_by_value(held, 0, n_pieces)
