# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The exported module that answers questions about a text.

Long texts are read in windows. docs/export.md lists the outputs of
`serve_text`. The signatures that take ids treat each row as one window,
and return the head's outputs.

Source: google-research/electra, finetune/qa.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from electra_tf.export import signatures
from electra_tf.export.tagging import WINDOWS_AT_ONCE
from electra_tf.finetuning.question_answering import MAX_WINDOWS, QATask
from electra_tf.metrics.answer_selection import NO_WINDOW
from electra_tf.prediction.loading import FinetunedModel
from electra_tf.text.graph_normalization import GraphNormalizer, utf8_lengths
from electra_tf.text.graph_tokenization import GraphTokenizer

# The ranks of the head's outputs, keyed by whether start and end are predicted
# jointly.
_OUTPUTS = {
    False: {"answerable_logit": 1, "start_logits": 2, "end_logits": 2},
    True: {"answerable_logit": 1, "start_logits": 2}
    | dict.fromkeys(["start_top_index", "start_top_log_probs"], 2)
    | dict.fromkeys(["end_top_index", "end_top_log_probs"], 3),
}
# Hparams that influence the answer.
_HPARAMS = tuple(
    """
    max_query_length doc_stride n_best_size max_answer_length joint_prediction
    beam_size answerable_classifier qa_na_threshold
    """.split()
)
# The separators of words in `finetuning/questions.py`.
_SEPARATORS = (" ", "\t", "\r", "\n", "\u202f")
_SEPARATOR = r"[ \t\r\n\x{202f}]"


class QuestionAnsweringModule(signatures.TaskModule):
    """A module that answers questions with spans of a text."""

    KIND = "question_answering"

    def __init__(self, loaded: FinetunedModel, task: QATask) -> None:
        config = loaded.config
        self._is_joint = config.joint_prediction
        super().__init__(loaded, task)
        self._normalizer = self.tokenizer.normalizer

    def extra_config(self) -> dict[str, Any]:
        hparams = {name: getattr(self.loaded.config, name) for name in _HPARAMS}
        return {
            "version": self.task.version,
            "answer_offsets": self.task.answer_offsets,
            **hparams,
        }

    def compute(self, inputs: signatures.Inputs) -> signatures.Outputs:
        """Return the head's outputs for inputs [B, L]."""
        length = tf.shape(inputs.input_ids)[1]
        # A beam needs at least as many positions as it has entries.
        missing = tf.maximum(self.task.min_length - length, 0)
        padded = [tf.pad(part, [[0, 0], [0, missing]]) for part in inputs]
        outputs = self.head_outputs(signatures.Inputs(*padded))
        for name in {"start_logits", "end_logits"} & outputs.keys():
            outputs[name] = outputs[name][:, :length]
        return {name: outputs[name] for name in _OUTPUTS[self._is_joint]}

    def scored_outputs(
        self, outputs: signatures.Outputs, features: Mapping[str, tf.Tensor]
    ) -> signatures.Outputs:
        # The scorer requires logits of ends, which joint prediction does not
        # return. With joint prediction, the head, too, sets these logits to
        # zero.
        ends = tf.zeros_like(outputs["start_logits"])
        return {"end_logits": ends, **outputs}

    def compute_text(
        self, question: tf.Tensor, context: tf.Tensor
    ) -> signatures.Outputs:
        config, tokenizer = self.loaded.config, self.tokenizer
        # Without this check, a later operation would fail with an unclear
        # message.
        tf.debugging.assert_equal(
            tf.shape(question),
            tf.shape(context),
            "question and context have different lengths; expected a"
            " context for each question. Pass equally many questions and"
            " contexts",
        )
        query = tokenizer.encode(question)
        passages = read_passages(context, tokenizer, self._normalizer)
        windows = cut_windows(
            query,
            passages.pieces,
            tokenizer,
            config.max_query_length,
            config.max_seq_length,
            config.doc_stride,
            min_length=self.task.min_length,
        )
        specs = {}
        for name, rank in _OUTPUTS[self._is_joint].items():
            dtype = tf.int32 if name.endswith("_index") else tf.float32
            specs[name] = tf.TensorSpec([None] * rank, dtype)
        outputs = signatures.compute_in_groups(
            lambda inputs, _: self.compute(inputs),
            windows.inputs,
            windows.question,
            specs,
            WINDOWS_AT_ONCE,
        )
        answers = self._find_answers(passages, windows, outputs)
        return {
            **self._decide(answers, windows, outputs),
            **answers,
            "n_windows": windows.n_windows,
            "n_cut": windows.n_cut,
            "question_cut": query.row_lengths() > config.max_query_length,
        }

    def text_signatures(self) -> signatures.Signatures:
        return {"serve_text": signatures.text_function(self.compute_text, 2)}

    def _find_answers(
        self, passages: Passages, windows: Windows, outputs: signatures.Outputs
    ) -> signatures.Outputs:
        """Return each question's N best answers [B, N] with different texts.

        Candidates and their order are those of
        `metrics/question_answering.py`.

        Source: google-research/electra, finetune/qa/qa_metrics.py,
          write_predictions.
        Differs: only the best `n_best_size` squared candidates of a question
          are compared, so that a long list of best answers may be shorter. The
          best answer is the same. If no span is allowed, the answer is "",
          while evaluation writes "empty".
        """
        n_best = self.loaded.config.n_best_size
        question, score, start, end = self._candidates(
            windows, outputs, tf.size(passages.pieces.values)
        )
        cut = cut_answers if self.task.answer_offsets else search_answers
        texts, starts, ends = cut(passages, question, start, end)
        # Of a question's candidates with equal texts, only the best remains.
        named = tf.strings.join([tf.strings.as_string(question), texts], ":")
        different, group = tf.unique(named)
        chosen = tf.math.unsorted_segment_min(
            tf.range(tf.size(group)), group, tf.size(different)
        )
        chosen = _first_of_each(chosen, tf.gather(question, chosen), n_best)

        def dense(values: tf.Tensor, default: str | int | float) -> tf.Tensor:
            ragged = tf.RaggedTensor.from_value_rowids(
                tf.gather(values, chosen),
                tf.gather(question, chosen),
                tf.size(windows.n_windows),
                validate=False,
            )
            return ragged.to_tensor(default, shape=[None, n_best])

        # The softmax of a question without answers is NaN; 0 replaces NaN.
        shares = tf.cast(dense(score, float("-inf")), tf.float64)
        shares = tf.cast(tf.nn.softmax(shares), tf.float32)
        return {
            "answers": dense(texts, ""),
            "starts": dense(starts, -1),
            "ends": dense(ends, -1),
            "scores": dense(score, 0.0),
            "probabilities": tf.where(dense(starts, -1) < 0, 0.0, shares),
        }

    def _candidates(
        self,
        windows: Windows,
        outputs: signatures.Outputs,
        n_pieces: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return the best allowed spans: questions, scores, starts and ends.

        All four are [M], sorted by question and then by decreasing score;
        starts and ends are wordpiece indices over all passages.
        """
        config = self.loaded.config

        def each(values: tf.Tensor) -> tf.Tensor:
            return values[:, tf.newaxis, tf.newaxis]

        start, end, score = self._spans(outputs)
        # Positions in windows become indices of wordpieces over all passages.
        first = each(windows.first)
        start += first - each(windows.offset)
        end += first - each(windows.offset)
        best_window = tf.gather(
            best_windows(windows, n_pieces),
            tf.clip_by_value(start, 0, n_pieces - 1),
        )
        allowed = (
            (start >= first)
            & (end < first + each(windows.length))
            & (end >= start)
            & (end < start + config.max_answer_length)
            & (best_window == each(tf.range(tf.size(windows.question))))
        )
        question = tf.gather(windows.question, tf.where(allowed)[:, 0])
        score = tf.boolean_mask(score, allowed)
        order = tf.argsort(score, direction="DESCENDING", stable=True)
        by_question = tf.argsort(tf.gather(question, order), stable=True)
        order = tf.gather(order, by_question)
        order = _first_of_each(
            order, tf.gather(question, order), config.n_best_size**2
        )
        start, end = (tf.boolean_mask(x, allowed) for x in (start, end))
        question, score, start, end = (
            tf.gather(x, order) for x in (question, score, start, end)
        )
        return question, score, start, end

    def _spans(
        self, outputs: signatures.Outputs
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return candidates [W, K, K]: start and end in the window, score."""
        if self._is_joint:
            # Each start of the beam is paired with the ends that were predicted
            # for this start.
            start, end = outputs["start_top_index"], outputs["end_top_index"]
            of_start = outputs["start_top_log_probs"]
            of_end = outputs["end_top_log_probs"]
        else:
            # Each of the best starts is paired with each of the best ends.
            starts, ends = outputs["start_logits"], outputs["end_logits"]
            n_best = self.loaded.config.n_best_size
            count = tf.minimum(n_best, tf.shape(starts)[1])
            of_start, start = tf.math.top_k(starts, count)
            of_end, end = (x[:, tf.newaxis] for x in tf.math.top_k(ends, count))
        score = of_start[:, :, tf.newaxis] + of_end
        shape = tf.shape(score)
        start = tf.broadcast_to(start[:, :, tf.newaxis], shape)
        return start, tf.broadcast_to(end, shape), score

    def _decide(
        self,
        answers: signatures.Outputs,
        windows: Windows,
        outputs: signatures.Outputs,
    ) -> signatures.Outputs:
        """Choose between each question's best answer and an empty answer."""
        config = self.loaded.config
        if config.answerable_classifier:
            of_windows = outputs["answerable_logit"]
        else:
            of_windows = outputs["start_logits"][:, 0]
            if not self._is_joint:
                of_windows += outputs["end_logits"][:, 0]
        null_score = tf.math.unsorted_segment_min(
            of_windows, windows.question, tf.size(windows.n_windows)
        )
        null_score = null_odds = tf.minimum(null_score, NO_WINDOW)
        best = {name: values[:, 0] for name, values in answers.items()}
        if not config.answerable_classifier:
            null_odds = null_score - best["scores"]
        answered = best["starts"] >= 0
        if self.task.v2:
            answered &= null_odds <= config.qa_na_threshold
        return {
            "answer": tf.where(answered, best["answers"], ""),
            "start": tf.where(answered, best["starts"], -1),
            "end": tf.where(answered, best["ends"], -1),
            "score": best["scores"],
            "probability": best["probabilities"],
            "null_score": null_score,
            "null_odds": null_odds,
        }


def _first_of_each(
    values: tf.Tensor, groups: tf.Tensor, count: int
) -> tf.Tensor:
    """Return the first `count` items of each group; groups [M] are sorted."""
    rank = tf.range(tf.size(groups)) - tf.searchsorted(groups, groups)
    return tf.boolean_mask(values, rank < count)


# Passages as strings.


class Passages(NamedTuple):
    """A batch of passages, split into words and wordpieces.

    Wordpieces and words are numbered over all passages. Starts and ends are
    byte offsets in a passage; ends are exclusive.
    """

    contexts: tf.Tensor  # string [B], as passed in
    pieces: tf.RaggedTensor  # int32 [B, (P)], ids of the wordpieces
    piece_starts: tf.Tensor  # int32 [T], start of each wordpiece
    piece_ends: tf.Tensor  # int32 [T], end of each wordpiece
    piece_words: tf.Tensor  # int32 [T], the word of each wordpiece
    # int32 [T + 1], the number of [UNK] before each wordpiece
    unknown_before: tf.Tensor
    word_starts: tf.Tensor  # int32 [N], start of each word
    word_ends: tf.Tensor  # int32 [N], end of each word
    # int32 [N + 1], the number of characters that tokenizing removed from the
    # words before each word, minus the number of added characters
    changed_before: tf.Tensor


def read_passages(
    contexts: tf.Tensor, tokenizer: GraphTokenizer, normalizer: GraphNormalizer
) -> Passages:
    """Split strings [B] into characters, words and wordpieces.

    A passage's wordpieces are the wordpieces of its words, because tokenizing
    splits at all separators and splits each word independently. Invalid UTF-8
    is left out.
    """
    ids, starts, ends = tokenizer.encode_with_offsets(contexts)
    # `decode` adds a space after each passage, so no word spans two passages.
    decoded = normalizer.decode(contexts)
    apart = tf.reduce_any(
        [decoded.codes == ord(char) for char in _SEPARATORS], 0
    )
    begins = ~apart & tf.concat([[True], apart], 0)[:-1]
    finishes = ~apart & tf.concat([apart, [True]], 0)[1:]
    words = tf.cumsum(tf.cast(begins, tf.int32)) - 1  # word of each character
    word_starts = tf.boolean_mask(decoded.starts, begins)
    n_words = tf.size(word_starts)

    def offsets(rows: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
        # The factor is larger than any offset, since strings are shorter than
        # 2**32 bytes.
        return tf.cast(rows, tf.int64) * 2**32 + tf.cast(starts, tf.int64)

    rows = tf.ragged.row_splits_to_segment_ids(decoded.splits)
    word_offsets = offsets(tf.boolean_mask(rows, begins), word_starts)
    piece_offsets = offsets(ids.value_rowids(), starts.values)

    def before(counts: tf.Tensor) -> tf.Tensor:
        return tf.concat([[0], tf.cumsum(counts)], 0)

    def count(words: tf.Tensor) -> tf.Tensor:
        return tf.math.unsorted_segment_sum(tf.ones_like(words), words, n_words)

    sources = normalizer.split(decoded).sources
    changed = count(tf.boolean_mask(words, ~apart))
    changed -= count(tf.gather(words, sources))
    is_unknown = tf.cast(ids.values == tokenizer.unk_id, tf.int32)
    return Passages(
        contexts=contexts,
        pieces=ids,
        piece_starts=starts.values,
        piece_ends=ends.values,
        piece_words=tf.searchsorted(word_offsets, piece_offsets, "right") - 1,
        unknown_before=before(is_unknown),
        word_starts=word_starts,
        word_ends=tf.boolean_mask(
            decoded.starts + utf8_lengths(decoded.codes), finishes
        ),
        changed_before=before(changed),
    )


def cut_answers(
    passages: Passages, question: tf.Tensor, first: tf.Tensor, last: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Cut answers out of passages: the bytes that the wordpieces cover.

    Args:
      question: int32 [M], the passage of each answer.
      first: int32 [M], the first wordpiece.
      last: int32 [M], the last wordpiece.

    Returns:
      string [M], the text of the passage without invalid UTF-8; int32 [M] each,
      the start and end in bytes.
    """
    pieces = tf.ragged.range(first, last + 1)
    starts, ends = (
        pieces.with_values(tf.gather(offsets, pieces.values))
        for offsets in (passages.piece_starts, passages.piece_ends)
    )
    starts, ends = tf.reduce_min(starts, 1), tf.reduce_max(ends, 1)
    return _between(passages, question, starts, ends), starts, ends


def _between(
    passages: Passages, question: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tf.Tensor:
    """Return the texts between byte offsets of passages: string [M]."""
    contexts = tf.gather(passages.contexts, question)
    texts = tf.strings.substr(contexts, starts, ends - starts)
    return tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="ignore"
    )


def search_answers(
    passages: Passages, question: tf.Tensor, first: tf.Tensor, last: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Cut answers out of passages as the original's search does.

    Evaluation searches the passage for the text of the answer's wordpieces
    (`metrics/question_answering.py`). Here the byte offsets of every wordpiece
    are known. The search fails if a wordpiece of the answer is [UNK], or if
    tokenizing changed the number of characters of its words (accents as
    separate characters, no-break spaces, control characters, Hangul). If the
    search would fail, the answer consists of whole words, as in evaluation.

    Args:
      question: int32 [M], the passage of each answer.
      first: int32 [M], the first wordpiece.
      last: int32 [M], the last wordpiece.

    Returns:
      string [M], with one space between words in place of all separators; int32
      [M] each, the start and end in bytes.

    Differs: evaluation finds the first match in the answer's first word, which
      may not be the predicted match. The texts then differ only in case,
      accents and inner space.
    """
    from_word = tf.gather(passages.piece_words, first)
    to_word = tf.gather(passages.piece_words, last)

    def between(counts: tf.Tensor, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.gather(counts, b + 1) - tf.gather(counts, a)

    is_whole = between(passages.unknown_before, first, last) > 0
    is_whole |= between(passages.changed_before, from_word, to_word) != 0
    starts = tf.gather(passages.piece_starts, first)
    ends = tf.gather(passages.piece_ends, last)
    word_starts = tf.gather(passages.word_starts, from_word)
    word_ends = tf.gather(passages.word_ends, to_word)
    starts = tf.where(is_whole, word_starts, starts)
    ends = tf.where(is_whole, word_ends, ends)
    texts = _between(passages, question, starts, ends)
    texts = tf.strings.regex_replace(texts, _SEPARATOR + "+", " ")
    return texts, starts, ends


# Passages in windows.


class Windows(NamedTuple):
    """The windows of all questions in a batch, in the questions' order."""

    inputs: signatures.Inputs  # int32 [W, L] each
    question: tf.Tensor  # int32 [W], the question of each window
    # int32 [W], the first wordpiece of each window, as an index over all
    # passages
    first: tf.Tensor
    # int32 [W], the number of passage wordpieces in the window
    length: tf.Tensor
    # int32 [W], the position of the first passage wordpiece in the row
    offset: tf.Tensor
    # int32 [B], the number of windows of each question; 0 for a passage without
    # wordpieces
    n_windows: tf.Tensor
    # int32 [B], the number of wordpieces after the last window
    n_cut: tf.Tensor


def cut_windows(
    query: tf.RaggedTensor,
    passage: tf.RaggedTensor,
    tokenizer: GraphTokenizer,
    max_query_length: int,
    max_seq_length: int,
    doc_stride: int,
    min_length: int,
) -> Windows:
    """Divide passages into windows: `[CLS] query [SEP] part [SEP]`.

    The windows are those of `finetuning/question_answering.py`, computed
    without a loop: all windows of a passage except the last have the same
    length, which determines their starts.

    Args:
      query: int32 [B, (Q)], ids of the questions before cutting.
      passage: int32 [B, (P)], ids of the passages.
      tokenizer: the tokenizer, for the ids of special tokens.
      max_query_length: the maximum number of a question's wordpieces.
      max_seq_length: the maximum number of wordpieces of a window.
      doc_stride: the maximum distance of windows, in wordpieces.
      min_length: the minimum width L of the inputs.

    Source: google-research/electra, finetune/qa/qa_tasks.py, featurize.
    """
    n_query = tf.cast(query.row_lengths(), tf.int32)
    n_query = tf.minimum(n_query, max_query_length)
    n_pieces = tf.cast(passage.row_lengths(), tf.int32)
    capacity = max_seq_length - n_query - 3
    stride = tf.minimum(capacity, doc_stride)
    beyond = tf.maximum(n_pieces - capacity, 0)
    n_windows = tf.minimum((beyond + stride - 1) // stride + 1, MAX_WINDOWS)
    n_windows = tf.where(n_pieces > 0, n_windows, 0)
    n_cut = tf.maximum(beyond - tf.maximum(n_windows - 1, 0) * stride, 0)

    question = tf.repeat(tf.range(tf.size(n_windows)), n_windows)
    first = tf.ragged.range(n_windows).values * tf.gather(stride, question)
    length = tf.minimum(
        tf.gather(n_pieces, question) - first, tf.gather(capacity, question)
    )
    offset = tf.gather(n_query, question) + 2
    width = tf.reduce_max(tf.concat([offset + length + 1, [min_length]], 0))
    first += tf.gather(tf.cast(passage.row_starts(), tf.int32), question)
    parts = tf.ragged.range(first, first + length)
    inputs, _ = signatures.pack(
        tf.gather(signatures.cut(query, n_query), question),
        parts.with_values(tf.gather(passage.values, parts.values)),
        max_seq_length,
        tokenizer,
        width,
    )
    return Windows(inputs, question, first, length, offset, n_windows, n_cut)


def best_windows(windows: Windows, n_pieces: tf.Tensor) -> tf.Tensor:
    """Return, for each wordpiece, the window where its context is largest: [T].

    The smaller of the left and the right context counts; among equal windows
    the first is chosen. Wordpieces are counted over all passages.

    Source: google-research/electra, finetune/qa/qa_tasks.py,
      _check_is_max_context.
    """
    positions = tf.ragged.range(windows.length)
    window = tf.cast(positions.value_rowids(), tf.int32)
    length = tf.gather(windows.length, window)
    piece = tf.gather(windows.first, window) + positions.values
    context = tf.minimum(positions.values, length - 1 - positions.values)
    # float64 gives the same ties as `finetuning/question_answering.py`.
    score = tf.cast(context, tf.float64) + 0.01 * tf.cast(length, tf.float64)
    best = tf.math.unsorted_segment_max(score, piece, n_pieces)
    is_best = score == tf.gather(best, piece)
    return tf.math.unsorted_segment_min(
        tf.boolean_mask(window, is_best),
        tf.boolean_mask(piece, is_best),
        n_pieces,
    )
