# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Passages as strings: their characters, words and wordpieces, in the graph.

Evaluation carries an answer back to the passage by looking for the answer's
text among the tokenized words (`evaluation/answer_text.py`). Here every
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

from electra_tf.text.graph_normalization import GraphNormalizer, utf8_lengths
from electra_tf.text.graph_tokenization import GraphTokenizer

# As `finetuning/question_answering/examples.py` separates words.
SEPARATORS = (" ", "\t", "\r", "\n", "\u202f")
# More than the bytes a string can have.
_ROW = 1 << 32


class Passages(NamedTuple):
    """A batch of passages.

    Attributes:
      pieces: int32 [B, (P)], ids of the wordpieces.
      piece_starts: int32 [T], the byte of its passage each begins at.
      piece_ends: int32 [T], the byte after it.
      piece_words: int32 [T], the word each belongs to, counted through all
        passages, as everything below.
      unknown_before: int32 [T + 1], how many [UNK] there are before each.
      word_starts: int32 [N], the byte of its passage each word begins at.
      word_ends: int32 [N], the byte after it.
      changed_before: int32 [N + 1], characters that tokenizing took from the
        words before each, less those it added.
      char_places: int64 [D], sorted: `_ROW` times the passage, plus the byte
        each character begins at. Of several separators the first is there.
      chars: int32 [D], code points; separators are spaces.
    """

    pieces: tf.RaggedTensor
    piece_starts: tf.Tensor
    piece_ends: tf.Tensor
    piece_words: tf.Tensor
    unknown_before: tf.Tensor
    word_starts: tf.Tensor
    word_ends: tf.Tensor
    changed_before: tf.Tensor
    char_places: tf.Tensor
    chars: tf.Tensor


class Texts(NamedTuple):
    """Places of answers in their passages.

    Attributes:
      starts: int32 [M], the first byte.
      ends: int32 [M], the byte after the last.
    """

    starts: tf.Tensor
    ends: tf.Tensor


class PassageReader(tf.Module):
    """Reads passages."""

    def __init__(
        self,
        tokenizer: GraphTokenizer,
        do_lower_case: bool,
        strip_accents: bool,
    ) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        self._normalizer = GraphNormalizer(do_lower_case, strip_accents)

    def read(self, contexts: tf.Tensor) -> Passages:
        """Splits passages into characters, words and wordpieces.

        A passage's wordpieces are those of its words one by one: tokenizing
        splits at all separators, and looks at each word alone.

        Args:
          contexts: string [B], any bytes; what is not UTF-8 is left out.
        """
        ids, starts, ends = self._tokenizer.encode_with_offsets(contexts)
        codes, offsets = tf.strings.unicode_decode_with_offsets(
            contexts, "UTF-8", errors="ignore"
        )
        rows, offsets, codes = (
            offsets.value_rowids(),
            tf.cast(offsets.values, tf.int32),
            codes.values,
        )
        apart = _is_separator(codes)
        after = tf.concat([[True], apart], 0)[:-1]
        after |= tf.concat([[True], rows[1:] != rows[:-1]], 0)[: tf.size(rows)]
        begins = ~apart & after
        words = tf.cumsum(tf.cast(begins, tf.int32)) - 1  # [D]
        inside = tf.where(~apart)[:, 0]
        in_words = tf.gather(words, inside)
        n_words = tf.reduce_sum(tf.cast(begins, tf.int32))
        byte_ends = offsets + utf8_lengths(codes)
        word_ends = tf.math.unsorted_segment_max(
            tf.gather(byte_ends, inside), in_words, n_words
        )
        word_starts = tf.boolean_mask(offsets, begins)
        word_places = _places(tf.boolean_mask(rows, begins), word_starts)
        changed = self._changed(contexts, words, in_words, n_words)
        unknown = tf.cast(ids.values == self._tokenizer.unk_id, tf.int32)
        kept = tf.where(~(apart & after))[:, 0]
        return Passages(
            pieces=ids,
            piece_starts=starts.values,
            piece_ends=ends.values,
            piece_words=_last_before(
                word_places, _places(ids.value_rowids(), starts.values)
            ),
            unknown_before=_before(unknown),
            word_starts=word_starts,
            word_ends=word_ends,
            changed_before=_before(changed),
            char_places=tf.gather(_places(rows, offsets), kept),
            chars=tf.gather(tf.where(apart, ord(" "), codes), kept),
        )

    def _changed(
        self,
        contexts: tf.Tensor,
        words: tf.Tensor,
        in_words: tf.Tensor,
        n_words: tf.Tensor,
    ) -> tf.Tensor:
        """Characters of each word, less those of what it is tokenized to.

        Args:
          contexts: string [B].
          words: int32 [D], the word of every character.
        """
        decoded = self._normalizer.decode(contexts)
        sources = self._normalizer.split(decoded).sources
        # The normalizer puts one space after each passage.
        sources -= _last_before(decoded.splits, sources)
        plain = tf.ones_like(in_words)
        made = tf.gather(words, sources)
        return tf.math.unsorted_segment_sum(
            plain, in_words, n_words
        ) - tf.math.unsorted_segment_sum(tf.ones_like(made), made, n_words)


def project(passages: Passages, first: tf.Tensor, last: tf.Tensor) -> Texts:
    """Says where answers stand in their passages; see the module.

    Args:
      first: int32 [M], the first wordpiece of each answer, counted through
        all passages.
      last: int32 [M], the last one, in the same passage.
    """
    from_word = tf.gather(passages.piece_words, first)
    to_word = tf.gather(passages.piece_words, last)

    def between(counts: tf.Tensor, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.gather(counts, b + 1) - tf.gather(counts, a)

    whole = between(passages.unknown_before, first, last) > 0
    whole |= between(passages.changed_before, from_word, to_word) != 0
    starts = tf.gather(passages.piece_starts, first)
    ends = tf.gather(passages.piece_ends, last)
    return Texts(
        tf.where(whole, tf.gather(passages.word_starts, from_word), starts),
        tf.where(whole, tf.gather(passages.word_ends, to_word), ends),
    )


def cut_texts(
    passages: Passages, question: tf.Tensor, texts: Texts
) -> tf.Tensor:
    """Cuts answers out of their passages.

    Args:
      question: int32 [M], which passage.

    Returns:
      string [M] in UTF-8; between words there is one space, whatever stands
      there in the passage.
    """
    places = passages.char_places
    first = tf.searchsorted(places, _places(question, texts.starts))
    last = _last_before(places, _places(question, texts.ends - 1))
    lengths = last - first + 1
    chars = tf.RaggedTensor.from_row_lengths(
        tf.gather(
            passages.chars,
            tf.repeat(first, lengths) + tf.ragged.range(lengths).values,
        ),
        lengths,
        validate=False,
    )
    return tf.strings.unicode_encode(chars, "UTF-8")


def _is_separator(codes: tf.Tensor) -> tf.Tensor:
    found = [codes == ord(char) for char in SEPARATORS]
    return tf.reduce_any(tf.stack(found), 0)


def _places(rows: tf.Tensor, offsets: tf.Tensor) -> tf.Tensor:
    return tf.cast(rows, tf.int64) * _ROW + tf.cast(offsets, tf.int64)


def _last_before(places: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
    """Index of the last place that is not after the wanted one."""
    return tf.searchsorted(places, wanted, side="right") - 1


def _before(counts: tf.Tensor) -> tf.Tensor:
    """Sums [N + 1] of all that is before each."""
    return tf.concat([[0], tf.cumsum(counts)], 0)
