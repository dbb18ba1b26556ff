# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers questions about a text, long ones in windows.

docs/export.md says what `serve_text` gives. The signatures on ids give the
head's outputs for one window a row.

Source: google-research/electra, finetune/qa.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from configure.finetuning import FinetuningConfig
from electra_tf.export import signatures
from electra_tf.export.tagging import WINDOWS_AT_ONCE
from electra_tf.finetuning.question_answering import MAX_WINDOWS, QATask
from electra_tf.metrics.question_answering import NO_WINDOW
from electra_tf.prediction.loading import FinetunedModel
from electra_tf.text.graph_normalization import GraphNormalizer, utf8_lengths
from electra_tf.text.graph_tokenization import GraphTokenizer

# Rank of what the head gives, by whether it predicts start and end jointly.
_OUTPUTS = {
    False: {"answerable_logit": 1, "start_logits": 2, "end_logits": 2},
    True: {"answerable_logit": 1, "start_logits": 2}
    | dict.fromkeys(["start_top_index", "start_top_log_probs"], 2)
    | dict.fromkeys(["end_top_index", "end_top_log_probs"], 3),
}
# Decide which answer is given.
_HPARAMS = tuple(
    """
    max_query_length doc_stride n_best_size max_answer_length joint_prediction
    beam_size answerable_classifier qa_na_threshold
    """.split()
)
# As `finetuning/questions.py` separates words.
_SEPARATORS = (" ", "\t", "\r", "\n", "\u202f")
_SEPARATOR = r"[ \t\r\n\x{202f}]"


class QuestionAnsweringModule(signatures.TaskModule):
    """Answers cut from a text."""

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
        """From inputs [B, L] to the head's outputs."""
        length = tf.shape(inputs.input_ids)[1]
        # A beam needs as many positions as it keeps.
        missing = tf.maximum(self.task.min_length - length, 0)
        padded = [tf.pad(part, [[0, 0], [0, missing]]) for part in inputs]
        found = self.head_outputs(signatures.Inputs(*padded))
        for name in {"start_logits", "end_logits"} & found.keys():
            found[name] = found[name][:, :length]
        return {name: found[name] for name in _OUTPUTS[self._is_joint]}

    def compute_text(
        self, question: tf.Tensor, context: tf.Tensor
    ) -> signatures.Outputs:
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
            query, passages.pieces, config, tokenizer, self.task.min_length
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
        found = self._find_answers(passages, windows, outputs)
        return {
            **self._decide(found, windows, outputs),
            **found,
            "n_windows": windows.n_windows,
            "n_cut": windows.n_cut,
            "question_cut": query.row_lengths() > config.max_query_length,
        }

    def text_signatures(self) -> signatures.Signatures:
        return {"serve_text": signatures.text_function(self.compute_text, 2)}

    def _find_answers(
        self, passages: Passages, windows: Windows, outputs: signatures.Outputs
    ) -> signatures.Outputs:
        """The best answers with different texts, [B, N].

        The same candidates in the same order as
        `metrics/question_answering.py`.

        Source: google-research/electra, finetune/qa/qa_metrics.py,
          write_predictions.
        Differs: of each question the `n_best_size` squared best candidates
          are looked at; so a long list of best answers can be shorter than it
          might be. The best answer is the same. Without any allowed span
          there is no answer, where evaluation says "empty".
        """
        config = self.loaded.config
        n_best, n_pieces = config.n_best_size, tf.size(passages.pieces.values)

        def each(values: tf.Tensor) -> tf.Tensor:
            return values[:, tf.newaxis, tf.newaxis]

        start, end, score = self._spans(outputs)
        # From places in rows to wordpieces, counted through all passages.
        first = each(windows.first)
        start += first - each(windows.offset)
        end += first - each(windows.offset)
        shown_best = tf.gather(
            best_windows(windows, n_pieces),
            tf.clip_by_value(start, 0, n_pieces - 1),
        )
        allowed = (
            (start >= first)
            & (end < first + each(windows.length))
            & (end >= start)
            & (end < start + config.max_answer_length)
            & (shown_best == each(tf.range(tf.size(windows.question))))
        )
        found = (
            tf.gather(windows.question, tf.where(allowed)[:, 0]),
            *(tf.boolean_mask(part, allowed) for part in (score, start, end)),
        )
        order = tf.argsort(found[1], direction="DESCENDING", stable=True)
        of_order = tf.gather(found[0], order)
        order = tf.gather(order, tf.argsort(of_order, stable=True))
        order = _first_of_each(order, tf.gather(found[0], order), n_best**2)
        question, score, start, end = (tf.gather(x, order) for x in found)
        cut = cut_answers if self.task.answer_offsets else search_answers
        texts, starts, ends = cut(passages, question, start, end)
        named = tf.strings.join([tf.strings.as_string(question), texts], ":")
        different, group = tf.unique(named)
        kept = tf.math.unsorted_segment_min(
            tf.range(tf.size(group)), group, tf.size(different)
        )
        kept = _first_of_each(kept, tf.gather(question, kept), n_best)

        def dense(values: tf.Tensor, default: str | int | float) -> tf.Tensor:
            ragged = tf.RaggedTensor.from_value_rowids(
                tf.gather(values, kept),
                tf.gather(question, kept),
                tf.size(windows.n_windows),
                validate=False,
            )
            return ragged.to_tensor(default, shape=[None, n_best])

        # Of no answers at all there are no shares.
        shares = tf.cast(dense(score, float("-inf")), tf.float64)
        shares = tf.cast(tf.nn.softmax(shares), tf.float32)
        return {
            "answers": dense(texts, ""),
            "starts": dense(starts, -1),
            "ends": dense(ends, -1),
            "scores": dense(score, 0.0),
            "probabilities": tf.where(dense(starts, -1) < 0, 0.0, shares),
        }

    def _spans(
        self, outputs: signatures.Outputs
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Candidates [W, K, K]: start and end in the row, and score."""
        if self._is_joint:
            # Each start of the beam with the ends that follow from it.
            start, end = outputs["start_top_index"], outputs["end_top_index"]
            of_start = outputs["start_top_log_probs"]
            of_end = outputs["end_top_log_probs"]
        else:
            # Each of the best starts with each of the best ends.
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
        found: signatures.Outputs,
        windows: Windows,
        outputs: signatures.Outputs,
    ) -> signatures.Outputs:
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
        null_score = null_odds = tf.minimum(null_score, NO_WINDOW)
        best = {name: values[:, 0] for name, values in found.items()}
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
    """Keeps the first `count` of each group; groups [M] are sorted."""
    place = tf.range(tf.size(groups)) - tf.searchsorted(groups, groups)
    return tf.boolean_mask(values, place < count)


# Passages as strings.


class Passages(NamedTuple):
    """A batch of passages; pieces and words are counted through all of them.

    Places are bytes of the own passage; ends are exclusive.
    """

    contexts: tf.Tensor  # string [B], as given
    pieces: tf.RaggedTensor  # int32 [B, (P)], ids of the wordpieces
    piece_starts: tf.Tensor  # int32 [T]
    piece_ends: tf.Tensor  # int32 [T]
    piece_words: tf.Tensor  # int32 [T], the word each belongs to
    # Int32 [T + 1], how many [UNK] there are before each.
    unknown_before: tf.Tensor
    word_starts: tf.Tensor  # int32 [N]
    word_ends: tf.Tensor  # int32 [N]
    # Int32 [N + 1], characters that tokenizing took from the words before each,
    # less those it added.
    changed_before: tf.Tensor


def read_passages(
    contexts: tf.Tensor, tokenizer: GraphTokenizer, normalizer: GraphNormalizer
) -> Passages:
    """Splits strings [B] into characters, words and wordpieces.

    A passage's wordpieces are those of its words one by one: tokenizing
    splits at all separators, and looks at each word alone. What is not UTF-8
    is left out.
    """
    ids, starts, ends = tokenizer.encode_with_offsets(contexts)
    # With a space after each passage, which parts the words of two.
    decoded = normalizer.decode(contexts)
    apart = tf.reduce_any(
        [decoded.codes == ord(char) for char in _SEPARATORS], 0
    )
    begins = ~apart & tf.concat([[True], apart], 0)[:-1]
    finishes = ~apart & tf.concat([apart, [True]], 0)[1:]
    words = tf.cumsum(tf.cast(begins, tf.int32)) - 1  # of each character
    word_starts = tf.boolean_mask(decoded.starts, begins)
    n_words = tf.size(word_starts)

    def places(rows: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
        # No string has as many bytes.
        return tf.cast(rows, tf.int64) * 2**32 + tf.cast(starts, tf.int64)

    rows = tf.ragged.row_splits_to_segment_ids(decoded.splits)
    word_places = places(tf.boolean_mask(rows, begins), word_starts)
    piece_places = places(ids.value_rowids(), starts.values)

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
        piece_words=tf.searchsorted(word_places, piece_places, "right") - 1,
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
    """Cuts the bytes under their wordpieces out of the passages.

    Args:
      question: int32 [M], the passage of each answer.
      first: int32 [M], the first wordpiece.
      last: int32 [M], the last one.

    Returns:
      string [M], as the passage has them, without what is not UTF-8; int32 [M]
      each, the first byte and the byte after the last.
    """
    pieces = tf.ragged.range(first, last + 1)
    starts, ends = (
        pieces.with_values(tf.gather(places, pieces.values))
        for places in (passages.piece_starts, passages.piece_ends)
    )
    starts, ends = tf.reduce_min(starts, 1), tf.reduce_max(ends, 1)
    return _between(passages, question, starts, ends), starts, ends


def _between(
    passages: Passages, question: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tf.Tensor:
    """Returns the texts between bytes of passages: string [M]."""
    contexts = tf.gather(passages.contexts, question)
    texts = tf.strings.substr(contexts, starts, ends - starts)
    return tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="ignore"
    )


def search_answers(
    passages: Passages, question: tf.Tensor, first: tf.Tensor, last: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Cuts answers out of their passages as the original's search does.

    Evaluation carries an answer back to the passage by looking for the
    answer's text among the tokenized words (`metrics/question_answering.py`).
    Here every wordpiece knows its bytes. Where evaluation cannot carry it back
    it takes the whole words, and so do we: where one of the answer's
    wordpieces is [UNK], and where tokenizing changed the number of characters
    of the words it stands in (accents written as characters of their own,
    no-break spaces, control characters, Hangul).

    Args:
      question: int32 [M], the passage of each answer.
      first: int32 [M], the first wordpiece.
      last: int32 [M], the last one.

    Returns:
      string [M], with one space between words, whatever stands there in the
      passage; int32 [M] each, the first byte and the byte after the last.

    Differs: evaluation takes the first place in the answer's first word where
      its text fits, which may be another than the one that was meant. Texts
      are the same then except for case, accents and the space inside them.
    """
    from_word = tf.gather(passages.piece_words, first)
    to_word = tf.gather(passages.piece_words, last)

    def between(counts: tf.Tensor, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.gather(counts, b + 1) - tf.gather(counts, a)

    whole = between(passages.unknown_before, first, last) > 0
    whole |= between(passages.changed_before, from_word, to_word) != 0
    starts = tf.gather(passages.piece_starts, first)
    ends = tf.gather(passages.piece_ends, last)
    starts = tf.where(whole, tf.gather(passages.word_starts, from_word), starts)
    ends = tf.where(whole, tf.gather(passages.word_ends, to_word), ends)
    texts = _between(passages, question, starts, ends)
    texts = tf.strings.regex_replace(texts, _SEPARATOR + "+", " ")
    return texts, starts, ends


# Passages in windows.


class Windows(NamedTuple):
    """The windows of a batch of questions, one after the other."""

    inputs: signatures.Inputs  # int32 [W, L] each
    question: tf.Tensor  # int32 [W], the question each is of
    # Int32 [W], the wordpiece each begins with, counted through all passages.
    first: tf.Tensor
    length: tf.Tensor  # int32 [W], wordpieces of the passage in it
    offset: tf.Tensor  # int32 [W], where in the row these begin
    # Int32 [B], windows of each question; 0 for a passage without wordpieces.
    n_windows: tf.Tensor
    n_cut: tf.Tensor  # int32 [B], wordpieces behind the last window


def cut_windows(
    query: tf.RaggedTensor,
    passage: tf.RaggedTensor,
    config: FinetuningConfig,
    tokenizer: GraphTokenizer,
    shortest: int,
) -> Windows:
    """Lays windows over passages: `[CLS] query [SEP] part [SEP]`.

    The same windows as `finetuning/question_answering.py` lays,
    without a loop: all windows of a passage but the last are equally long, so
    the place of each follows by arithmetic.

    Args:
      query: int32 [B, (Q)], ids of the questions, not cut yet.
      passage: int32 [B, (P)], ids of the passages.
      shortest: least L.

    Source: google-research/electra, finetune/qa/qa_tasks.py, featurize.
    """
    n_query = tf.cast(query.row_lengths(), tf.int32)
    n_query = tf.minimum(n_query, config.max_query_length)
    n_pieces = tf.cast(passage.row_lengths(), tf.int32)
    most = config.max_seq_length - n_query - 3
    stride = tf.minimum(most, config.doc_stride)
    beyond = tf.maximum(n_pieces - most, 0)
    n_windows = tf.minimum((beyond + stride - 1) // stride + 1, MAX_WINDOWS)
    n_windows = tf.where(n_pieces > 0, n_windows, 0)
    n_cut = tf.maximum(beyond - tf.maximum(n_windows - 1, 0) * stride, 0)

    question = tf.repeat(tf.range(tf.size(n_windows)), n_windows)
    first = tf.ragged.range(n_windows).values * tf.gather(stride, question)
    length = tf.minimum(
        tf.gather(n_pieces, question) - first, tf.gather(most, question)
    )
    offset = tf.gather(n_query, question) + 2
    width = tf.reduce_max(tf.concat([offset + length + 1, [shortest]], 0))
    first += tf.gather(tf.cast(passage.row_starts(), tf.int32), question)
    parts = tf.ragged.range(first, first + length)
    inputs, _ = signatures.pack(
        tf.gather(signatures.cut(query, n_query), question),
        parts.with_values(tf.gather(passage.values, parts.values)),
        config.max_seq_length,
        tokenizer,
        width,
    )
    return Windows(inputs, question, first, length, offset, n_windows, n_cut)


def best_windows(windows: Windows, n_pieces: tf.Tensor) -> tf.Tensor:
    """The window that shows most around each wordpiece of all passages: [T].

    That is the one where the smaller of its left and right context is
    largest; of equal windows the first.

    Source: google-research/electra, finetune/qa/qa_tasks.py,
      _check_is_max_context.
    """
    places = tf.ragged.range(windows.length)
    window = tf.cast(places.value_rowids(), tf.int32)
    length = tf.gather(windows.length, window)
    piece = tf.gather(windows.first, window) + places.values
    context = tf.minimum(places.values, length - 1 - places.values)
    # In the precision, and so with the ties, of the Python code.
    score = tf.cast(context, tf.float64) + 0.01 * tf.cast(length, tf.float64)
    best = tf.math.unsorted_segment_max(score, piece, n_pieces)
    is_best = score == tf.gather(best, piece)
    return tf.math.unsorted_segment_min(
        tf.boolean_mask(window, is_best),
        tf.boolean_mask(piece, is_best),
        n_pieces,
    )
