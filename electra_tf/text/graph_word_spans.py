# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The words of running text in a graph, as `word_spans.py` finds them."""

import functools
import sys
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.text import characters
from electra_tf.text.graph_normalization import utf8_lengths
from electra_tf.text.word_spans import ALONE, SPACE, kind_of

# A character that does not make a word where it stands alone.
_REMOVED = 3
_PAGE_BITS = 8


class WordSpans(NamedTuple):
    """The words of a batch of texts.

    Attributes:
      words: string [B, (N)], without what is not UTF-8.
      starts: int32 [B, (N)], the byte of its text each begins at.
      ends: int32 [B, (N)], the byte after it.
    """

    words: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


class GraphWordSplitter(tf.Module):
    """Finds the words that `word_spans.split_words` finds."""

    def __init__(self) -> None:
        super().__init__()
        pages, kinds = _build_table()
        self._pages, self._kinds = tf.constant(pages), tf.constant(kinds)

    def split(self, texts: tf.Tensor) -> WordSpans:
        """Splits texts into words.

        Args:
          texts: string [B], any bytes; what is not UTF-8 is left out.
        """
        codes, offsets = tf.strings.unicode_decode_with_offsets(
            texts, "UTF-8", errors="ignore"
        )
        n_texts = codes.nrows()
        rows, codes = codes.value_rowids(), codes.values
        starts = tf.cast(offsets.values, tf.int32)
        page = tf.bitwise.right_shift(codes, _PAGE_BITS)
        place = tf.bitwise.bitwise_and(codes, (1 << _PAGE_BITS) - 1)
        kinds = tf.gather(self._kinds, tf.gather(self._pages, page) + place)

        space, alone = kinds == SPACE, kinds == ALONE
        begins_text = tf.concat([[True], rows[1:] != rows[:-1]], 0)
        after_other = tf.concat([[True], (space | alone)[:-1]], 0)
        begins_text, after_other = (
            mask[: tf.size(rows)] for mask in (begins_text, after_other)
        )
        begins = ~space & (alone | begins_text | after_other)
        words = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        n_words = tf.reduce_sum(tf.cast(begins, tf.int32))
        # Words of nothing but what tokenization removes are none.
        visible = ~space & (kinds != _REMOVED)
        is_word = (
            tf.math.unsorted_segment_sum(
                tf.cast(visible, tf.int32), words, n_words
            )
            > 0
        )
        kept = tf.where(~space & tf.gather(is_word, tf.maximum(words, 0)))[:, 0]
        of_word = tf.gather(words, kept)
        ends = tf.math.unsorted_segment_max(
            tf.gather(starts + utf8_lengths(codes), kept), of_word, n_words
        )
        sizes = tf.math.unsorted_segment_sum(
            tf.ones_like(of_word), of_word, n_words
        )
        strings = tf.strings.unicode_encode(
            tf.RaggedTensor.from_row_lengths(
                tf.gather(codes, kept),
                tf.boolean_mask(sizes, is_word),
                validate=False,
            ),
            "UTF-8",
        )
        word_rows = tf.boolean_mask(tf.boolean_mask(rows, begins), is_word)

        def by_text(values: tf.Tensor) -> tf.RaggedTensor:
            return tf.RaggedTensor.from_value_rowids(
                values, word_rows, n_texts, validate=False
            )

        word_starts = tf.boolean_mask(starts, begins)
        return WordSpans(
            by_text(strings),
            by_text(tf.boolean_mask(word_starts, is_word)),
            by_text(tf.boolean_mask(ends, is_word)),
        )


@functools.cache
def _build_table() -> tuple[np.ndarray, np.ndarray]:
    """Where each page of kinds begins, and the kinds; equal pages once."""
    kinds = np.fromiter(
        map(_row, map(chr, range(sys.maxunicode + 1))),
        np.int32,
        sys.maxunicode + 1,
    )
    blocks, places = np.unique(
        kinds.reshape(-1, 1 << _PAGE_BITS), axis=0, return_inverse=True
    )
    pages = (places.reshape(-1) << _PAGE_BITS).astype(np.int32)
    return pages, blocks.reshape(-1)


def _row(char: str) -> int:
    return _REMOVED if characters.is_removed(char) else kind_of(char)
