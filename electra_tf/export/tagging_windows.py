# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Words of sentences to the windows that a tagger reads, in the graph.

The first window of a sentence is what training and evaluation read of it
(`text/alignment.py`, place_words). They cut off the rest; here the words that
are left go into further windows, as many as fit each, and are tagged, too.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from electra_tf.export.packing import Inputs


class Windows(NamedTuple):
    """The windows of a batch of sentences, one after the other.

    Every word is in exactly one window, and the words of all windows are the
    words of all sentences, in order.

    Attributes:
      inputs: int32 [W, L] each; segments are 1 at all tokens.
      positions: int32 [W, P], of each word's first wordpiece; 0 for none.
      n_words: int32 [W], words in each window.
      n_read: int32 [B], words that training and evaluation would read.
    """

    inputs: Inputs
    positions: tf.Tensor
    n_words: tf.Tensor
    n_read: tf.Tensor


def place_words(
    pieces: tf.RaggedTensor,
    n_words: tf.Tensor,
    max_length: int,
    count_words: bool,
    cls_id: int,
    sep_id: int,
) -> Windows:
    """Lays windows over sentences: `[CLS] pieces [SEP]`.

    Args:
      pieces: int32 [N, (T)], ids of the wordpieces of all words.
      n_words: int32 [B], words of each sentence.
      max_length: most ids of a row; more than 2.
      count_words: whether the task cuts as the original does; see
        `text.alignment.place_words`.
      cls_id: id of [CLS].
      sep_id: id of [SEP].

    Returns:
      The windows; none for a sentence without words.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      featurize.
    Differs: nothing is cut off but the end of a word that is longer than a
      whole window.
    """
    sizes = tf.cast(pieces.row_lengths(), tf.int32)
    ends = tf.cumsum(n_words)
    begins = ends - n_words
    n_read = _count_read(sizes, n_words, max_length, count_words)
    sizes = tf.minimum(sizes, max_length - 2)
    before = tf.concat([[0], tf.cumsum(sizes)], 0)  # [N + 1]
    first = _first_words(before, begins, ends, n_read, max_length - 2)
    last = tf.concat([first[1:], [tf.size(sizes)]], 0)
    words = last - first
    window = tf.repeat(tf.range(tf.size(first)), words)
    place = before[:-1] - tf.gather(tf.gather(before, first), window) + 1
    lengths = tf.gather(before, last) - tf.gather(before, first)  # [W]

    width = tf.reduce_max(tf.concat([lengths, [0]], 0)) + 2
    column = tf.range(width)[tf.newaxis]  # [1, L]
    # The wordpieces of a window follow each other, only its end may be cut.
    source = tf.cast(tf.gather(pieces.row_splits, first), tf.int32)
    values = tf.concat([tf.cast(pieces.values, tf.int32), [0]], 0)
    index = tf.minimum(source[:, tf.newaxis] + column - 1, tf.size(values) - 1)
    end = lengths[:, tf.newaxis] + 1
    ids = tf.gather(values, tf.maximum(index, 0))
    ids = tf.where(column == 0, cls_id, tf.where(column == end, sep_id, ids))
    mask = tf.cast(column <= end, tf.int32)
    positions = tf.RaggedTensor.from_row_lengths(place, words, validate=False)
    return Windows(
        Inputs(ids * mask, mask, mask), positions.to_tensor(), words, n_read
    )


def _count_read(
    sizes: tf.Tensor, n_words: tf.Tensor, max_length: int, count_words: bool
) -> tf.Tensor:
    """How many words of each sentence [B] training and evaluation read."""
    sentence = tf.repeat(tf.range(tf.size(n_words)), n_words)
    total = tf.cumsum(sizes)
    start = tf.cumsum(n_words, exclusive=True)
    before_all = tf.concat([[0], total], 0)
    length = total - tf.gather(tf.gather(before_all, start), sentence) + 1
    fits = length <= max_length - 1  # with [CLS]; one place is for [SEP]
    if count_words:
        reserved = tf.gather(n_words, sentence) + 2
        fits &= reserved + length - sizes + 1 <= max_length
    return tf.math.unsorted_segment_sum(
        tf.cast(fits, tf.int32), sentence, tf.size(n_words)
    )


def _first_words(
    before: tf.Tensor,
    begins: tf.Tensor,
    ends: tf.Tensor,
    n_read: tf.Tensor,
    room: int,
) -> tf.Tensor:
    """The first word of each window, counted through all sentences.

    Args:
      before: int32 [N + 1], wordpieces before each word.
      begins: int32 [B], each sentence's first word.
      ends: int32 [B], the word after its last.
      n_read: int32 [B], words of its first window.
      room: wordpieces of a window; no word has more.

    Returns:
      int32 [W], rising.
    """
    firsts = tf.TensorArray(tf.int32, 1, dynamic_size=True, infer_shape=False)
    # A sentence none of whose words is read has no first window.
    firsts = firsts.write(0, tf.boolean_mask(begins, n_read > 0))

    def unfinished(
        number: tf.Tensor, word: tf.Tensor, found: tf.TensorArray
    ) -> tf.Tensor:
        del number, found
        return tf.reduce_any(word < ends)

    def lay(
        number: tf.Tensor, word: tf.Tensor, found: tf.TensorArray
    ) -> tuple[tf.Tensor, tf.Tensor, tf.TensorArray]:
        found = found.write(number, tf.boolean_mask(word, word < ends))
        reached = tf.gather(before, word) + room
        fitting = tf.searchsorted(before, reached, side="right") - 1
        return number + 1, tf.minimum(fitting, ends), found

    _, _, firsts = tf.while_loop(
        unfinished, lay, (1, begins + n_read, firsts), parallel_iterations=1
    )
    return tf.sort(tf.reshape(firsts.concat(), [-1]))
