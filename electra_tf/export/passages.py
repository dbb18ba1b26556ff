# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Passages as strings, and the windows a model reads them in, in the graph.

Evaluation carries an answer back to the passage by looking for the answer's
text among the tokenized words (`metrics/question_answering.py`). Here every
wordpiece knows its bytes, so an answer is cut out directly. Where evaluation
cannot carry it back it takes the whole words, and so does `project`:

  - one of the answer's wordpieces is [UNK],
  - tokenizing changed the number of characters of the words it stands in
    (accents written as characters of their own, no-break spaces, control
    characters, Hangul).

What differs: evaluation takes the first place in the answer's first word
where its text fits, which may be another than the one that was meant. Texts
are the same then except for case, accents and the space inside them.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from electra_tf.export.signatures import Inputs
from electra_tf.finetuning.question_answering import MAX_WINDOWS
from electra_tf.text.graph_normalization import GraphNormalizer, utf8_lengths
from electra_tf.text.graph_tokenization import GraphTokenizer

# As `finetuning/questions.py` separates words.
_SEPARATORS = (" ", "\t", "\r", "\n", "\u202f")
_SEPARATOR = r"[ \t\r\n\x{202f}]"
# More than the bytes a string can have.
_ROW = 1 << 32


class Passages(NamedTuple):
    """A batch of passages."""

    pieces: tf.RaggedTensor  # int32 [B, (P)], ids of the wordpieces
    piece_starts: tf.Tensor  # int32 [T], the byte of its passage each begins at
    piece_ends: tf.Tensor  # int32 [T], the byte after it
    # Int32 [T], the word each belongs to, counted through all passages, as
    # everything below.
    piece_words: tf.Tensor
    # Int32 [T + 1], how many [UNK] there are before each.
    unknown_before: tf.Tensor
    # Int32 [N], the byte of its passage each word begins at.
    word_starts: tf.Tensor
    word_ends: tf.Tensor  # int32 [N], the byte after it
    # Int32 [N + 1], characters that tokenizing took from the words before each,
    # less those it added.
    changed_before: tf.Tensor
    contexts: tf.Tensor  # string [B], as given


def read_passages(
    contexts: tf.Tensor, tokenizer: GraphTokenizer, normalizer: GraphNormalizer
) -> Passages:
    """Splits strings [B] into characters, words and wordpieces.

    A passage's wordpieces are those of its words one by one: tokenizing
    splits at all separators, and looks at each word alone. What is not UTF-8
    is left out.
    """
    ids, starts, ends = tokenizer.encode_with_offsets(contexts)
    codes, offsets = tf.strings.unicode_decode_with_offsets(
        contexts, "UTF-8", errors="ignore"
    )
    rows, codes = offsets.value_rowids(), codes.values
    offsets = tf.cast(offsets.values, tf.int32)
    apart = tf.reduce_any(
        tf.stack([codes == ord(char) for char in _SEPARATORS]), 0
    )
    after = tf.concat([[True], apart], 0)[:-1]
    after |= tf.concat([[True], rows[1:] != rows[:-1]], 0)[: tf.size(rows)]
    begins = ~apart & after
    words = tf.cumsum(tf.cast(begins, tf.int32)) - 1  # [D]
    n_words = tf.reduce_sum(tf.cast(begins, tf.int32))
    inside = tf.where(~apart)[:, 0]
    in_words = tf.gather(words, inside)
    word_starts = tf.boolean_mask(offsets, begins)
    # Characters of each word, less those of what it is tokenized to.
    decoded = normalizer.decode(contexts)
    sources = normalizer.split(decoded).sources
    # The normalizer puts one space after each passage.
    sources -= _last_before(decoded.splits, sources)
    changed = _counts(in_words, n_words)
    changed -= _counts(tf.gather(words, sources), n_words)
    return Passages(
        pieces=ids,
        piece_starts=starts.values,
        piece_ends=ends.values,
        piece_words=_last_before(
            _places(tf.boolean_mask(rows, begins), word_starts),
            _places(ids.value_rowids(), starts.values),
        ),
        unknown_before=_before(
            tf.cast(ids.values == tokenizer.unk_id, tf.int32)
        ),
        word_starts=word_starts,
        word_ends=tf.math.unsorted_segment_max(
            tf.gather(offsets + utf8_lengths(codes), inside), in_words, n_words
        ),
        changed_before=_before(changed),
        contexts=contexts,
    )


def project(
    passages: Passages, first: tf.Tensor, last: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Says where answers stand in their passages; see the module.

    Args:
      first: int32 [M], the first wordpiece of each answer, counted through
        all passages.
      last: int32 [M], the last one, in the same passage.

    Returns:
      int32 [M] each, the first byte and the byte after the last.
    """
    from_word = tf.gather(passages.piece_words, first)
    to_word = tf.gather(passages.piece_words, last)

    def between(counts: tf.Tensor, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.gather(counts, b + 1) - tf.gather(counts, a)

    whole = between(passages.unknown_before, first, last) > 0
    whole |= between(passages.changed_before, from_word, to_word) != 0
    starts = tf.gather(passages.piece_starts, first)
    ends = tf.gather(passages.piece_ends, last)
    return (
        tf.where(whole, tf.gather(passages.word_starts, from_word), starts),
        tf.where(whole, tf.gather(passages.word_ends, to_word), ends),
    )


def cut_texts(
    passages: Passages, question: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tf.Tensor:
    """Cuts answers [M] out of their passages, as strings [M].

    Between words there is one space, whatever stands there in the passage.
    """
    contexts = tf.gather(passages.contexts, question)
    texts = tf.strings.substr(contexts, starts, ends - starts)
    texts = tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="ignore"
    )
    return tf.strings.regex_replace(texts, _SEPARATOR + "+", " ")


class Windows(NamedTuple):
    """The windows of a batch of questions, one after the other."""

    inputs: Inputs  # int32 [W, L] each
    question: tf.Tensor  # int32 [W], the question each is of
    number: tf.Tensor  # int32 [W], its place among the question's windows
    first: tf.Tensor  # int32 [W], the passage's wordpiece it begins with
    length: tf.Tensor  # int32 [W], wordpieces of the passage in it
    offset: tf.Tensor  # int32 [W], where in the row these begin
    stride: tf.Tensor  # int32 [W], from one window of the passage to the next
    # Int32 [B], windows of each question; 0 for a passage without wordpieces.
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

    The same windows as `finetuning/question_answering.py` lays,
    without a loop: all windows of a passage but the last are equally long, so
    place and number of each follow by arithmetic.

    Args:
      query: int32 [B, (Q)], ids of the questions, not cut yet.
      passage: int32 [B, (P)], ids of the passages.
      shortest: least L.

    Source: google-research/electra, finetune/qa/qa_tasks.py, featurize.
    """
    n_query = tf.cast(query.row_lengths(), tf.int32)
    n_query = tf.minimum(n_query, max_query_length)
    n_pieces = tf.cast(passage.row_lengths(), tf.int32)
    most = max_seq_length - n_query - 3
    stride = tf.minimum(most, doc_stride)
    beyond = tf.maximum(n_pieces - most, 0)
    n_windows = tf.minimum((beyond + stride - 1) // stride + 1, MAX_WINDOWS)
    n_windows = tf.where(n_pieces > 0, n_windows, 0)

    question = tf.repeat(tf.range(tf.size(n_windows)), n_windows)
    number = tf.ragged.range(n_windows).values
    stride = tf.gather(stride, question)
    first = number * stride
    length = tf.minimum(
        tf.gather(n_pieces, question) - first, tf.gather(most, question)
    )
    offset = tf.gather(n_query, question) + 2
    longest = tf.reduce_max(tf.concat([offset + length + 1, [shortest]], 0))

    column = tf.range(longest)[tf.newaxis]  # [1, L]
    start, end = offset[:, tf.newaxis], (offset + length)[:, tf.newaxis]
    ids = tf.where(
        (column >= start) & (column < end),
        _pick(passage, question, column - start + first[:, tf.newaxis]),
        _pick(query, question, column - 1),
    )
    is_sep = (column == start - 1) | (column == end)
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
    """Whether no other window shows more around a wordpiece: bool [W, K].

    That is the window where the smaller of its left and right context is
    largest; of equal windows the first.

    Args:
      n_pieces: int32 [B], wordpieces of each passage.
      places: int32 [W, K], wordpieces of the passage that the window holds;
        anything for others.

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


def _pick(ids: tf.RaggedTensor, row: tf.Tensor, place: tf.Tensor) -> tf.Tensor:
    """Looks up ids [B, (T)] at row [W] and place [W or 1, L]: int32 [W, L].

    Where there is none at the place it is any id.
    """
    starts = tf.cast(tf.gather(ids.row_starts(), row), tf.int32)
    values = tf.concat([tf.cast(ids.values, tf.int32), [0]], 0)
    index = starts[:, tf.newaxis] + place
    return tf.gather(values, tf.clip_by_value(index, 0, tf.size(values) - 1))


def _places(rows: tf.Tensor, offsets: tf.Tensor) -> tf.Tensor:
    return tf.cast(rows, tf.int64) * _ROW + tf.cast(offsets, tf.int64)


def _last_before(places: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
    """Index of the last place that is not after the wanted one."""
    return tf.searchsorted(places, wanted, side="right") - 1


def _counts(groups: tf.Tensor, n_groups: tf.Tensor) -> tf.Tensor:
    return tf.math.unsorted_segment_sum(tf.ones_like(groups), groups, n_groups)


def _before(counts: tf.Tensor) -> tf.Tensor:
    """Sums [N + 1] of all that is before each."""
    return tf.concat([[0], tf.cumsum(counts)], 0)
