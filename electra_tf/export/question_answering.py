# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Modules that answer questions about a text.

`serve_text` takes `question` [B] and `context` [B], of any length, and gives,
with N = n_best_size:

  answer         string [B], "" where none is predicted; one space between
                 words, whatever stands there in the context
  start, end     int32 [B], its bytes in the context, end exclusive; -1 where
                 none is predicted
  score          float32 [B], of the best answer, predicted or not: start plus
                 end, log probabilities with joint prediction, else logits
  probability    float32 [B], its share among the N best
  null_score     float32 [B], what speaks for there being no answer: of all
                 windows' logits for that the lowest (without such a
                 classifier: the scores of [CLS] as start and end)
  null_odds      float32 [B], what is compared with `qa_na_threshold`: the
                 null score, or, without a classifier, the null score less
                 `score`. Above it `answer` is "" (only where the task knows
                 questions without an answer)
  answers, starts, ends, scores, probabilities
                 [B, N], the N best with different texts, the first being the
                 best one; after the last "", -1, -1, 0 and 0
  n_windows      int32 [B], windows that the context was read in; 0 for a
                 context without wordpieces, which has no answers
  n_cut          int32 [B], wordpieces of the context that no window holds
                 (of contexts of more than 1,000 windows)
  question_cut   bool [B], whether the question was cut to max_query_length

The signatures on ids give the head's outputs for one window a row:
`answerable_logit` [B] and `start_logits` [B, L]; `end_logits` [B, L] or, with
joint prediction and K = beam_size, `start_top_index` and
`start_top_log_probs` [B, K], `end_top_index` and `end_top_log_probs`
[B, K, K].
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from electra_tf.export.question_answering_answers import (
    Answers,
    find_answers,
    independent_spans,
    joint_spans,
    null_scores,
)
from electra_tf.export.question_answering_passages import (
    PassageReader,
    Passages,
)
from electra_tf.export.question_answering_windows import Windows, cut_windows
from electra_tf.export.signatures import Inputs, Outputs, Signatures, TaskModule
from electra_tf.export.window_batches import compute_in_batches
from electra_tf.finetuning.question_answering.task import QATask
from electra_tf.prediction.loading import FinetunedModel

# Null odds of a question without any window, as in evaluation.
_NO_WINDOW = 1000000.0
_JOINT = (
    "start_top_index",
    "start_top_log_probs",
    "end_top_index",
    "end_top_log_probs",
)
_INDEPENDENT = ("end_logits",)


class QuestionAnsweringModule(TaskModule):
    """Answers cut from a text.

    Source: google-research/electra, finetune/qa.
    """

    KIND = "question_answering"

    def __init__(self, loaded: FinetunedModel, task: QATask) -> None:
        super().__init__(loaded, task)
        config = loaded.config
        self._reader = PassageReader(
            self.tokenizer, config.do_lower_case, config.strip_accents
        )

    def extra_config(self) -> dict[str, Any]:
        """Adds what decides which answer is given."""
        config = self.loaded.config
        names = (
            "max_query_length",
            "doc_stride",
            "n_best_size",
            "max_answer_length",
            "joint_prediction",
            "beam_size",
            "answerable_classifier",
            "qa_na_threshold",
        )
        return {
            "version": self.task.version,
            **{name: getattr(config, name) for name in names},
        }

    def compute(self, inputs: Inputs) -> Outputs:
        """From inputs [B, L] to the head's outputs; see the module."""
        length = tf.shape(inputs.input_ids)[1]
        # A beam needs as many positions as it keeps.
        missing = tf.maximum(self.task.min_length - length, 0)
        padded = [tf.pad(part, [[0, 0], [0, missing]]) for part in inputs]
        found = self.head_outputs(Inputs(*padded))
        logits = {
            name: found[name][:, :length]
            for name in ("start_logits", "end_logits")
        }
        return {name: logits.get(name, found[name]) for name in self._names()}

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
        passages = self._reader.read(context)
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
        outputs = compute_in_batches(
            lambda inputs, _: self.compute(inputs),
            windows.inputs,
            windows.question,
            self._output_specs(),
        )
        answers = find_answers(
            passages,
            windows,
            joint_spans(outputs)
            if config.joint_prediction
            else independent_spans(outputs, config.n_best_size),
            config.n_best_size,
            config.max_answer_length,
        )
        return {
            **self._decide(answers, windows, outputs),
            "n_windows": windows.n_windows,
            "n_cut": _count_cut(passages, windows),
            "question_cut": query.row_lengths() > config.max_query_length,
        }

    def signatures(self) -> Signatures:
        """See the base class."""
        strings = tf.TensorSpec([None], tf.string)

        @tf.function(input_signature=[strings, strings])
        def serve_text(question: tf.Tensor, context: tf.Tensor) -> Outputs:
            return self.compute_text(question, context)

        return {
            **self.ids_signatures(self.compute),
            "serve_text": serve_text,
            **self.describe_signature(),
        }

    def _names(self) -> tuple[str, ...]:
        joint = self.loaded.config.joint_prediction
        spans = _JOINT if joint else _INDEPENDENT
        return ("answerable_logit", "start_logits", *spans)

    def _output_specs(self) -> dict[str, tf.TensorSpec]:
        """Specs of what answers are found from, for one batch of windows."""
        shapes: dict[str, list[int | None]] = {
            "answerable_logit": [None],
            "start_logits": [None, None],
            "end_logits": [None, None],
            "start_top_index": [None, None],
            "start_top_log_probs": [None, None],
            "end_top_index": [None, None, None],
            "end_top_log_probs": [None, None, None],
        }
        return {
            name: tf.TensorSpec(
                shapes[name],
                tf.int32 if name.endswith("_index") else tf.float32,
            )
            for name in self._names()
        }

    def _decide(
        self, answers: Answers, windows: Windows, outputs: Outputs
    ) -> Outputs:
        """The one answer, or none; as `SpanScorer` decides it."""
        config = self.loaded.config
        score = answers.scores[:, 0]
        if config.answerable_classifier:
            least = outputs["answerable_logit"]
        else:
            least = outputs["start_logits"][:, 0]
            if not config.joint_prediction:
                least += outputs["end_logits"][:, 0]
        null_score = null_scores(windows, least, _NO_WINDOW)
        null_odds = null_score
        if not config.answerable_classifier:
            null_odds -= score
        answered = answers.starts[:, 0] >= 0
        if self.task.v2:
            answered &= null_odds <= config.qa_na_threshold
        return {
            "answer": tf.where(answered, answers.texts[:, 0], ""),
            "start": tf.where(answered, answers.starts[:, 0], -1),
            "end": tf.where(answered, answers.ends[:, 0], -1),
            "score": score,
            "probability": answers.probabilities[:, 0],
            "null_score": null_score,
            "null_odds": null_odds,
            "answers": answers.texts,
            "starts": answers.starts,
            "ends": answers.ends,
            "scores": answers.scores,
            "probabilities": answers.probabilities,
        }


def _count_cut(passages: Passages, windows: Windows) -> tf.Tensor:
    """Wordpieces of each passage [B] behind the last window."""
    held = tf.math.unsorted_segment_max(
        windows.first + windows.length,
        windows.question,
        tf.size(windows.n_windows),
    )
    n_pieces = tf.cast(passages.pieces.row_lengths(), tf.int32)
    return n_pieces - tf.clip_by_value(held, 0, n_pieces)
