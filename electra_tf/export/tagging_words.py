# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wordpieces of words by themselves, in the graph."""

from __future__ import annotations

import tensorflow as tf

from electra_tf.text.graph_normalization import GraphNormalizer
from electra_tf.text.graph_wordpiece import GraphWordpiece
from electra_tf.text.vocab import load_vocab


class LowercaseWordEncoder(tf.Module):
    """Gives the ids that `text.alignment.WordAligner` gives by default.

    It always lower-cases and drops accents, whatever the model, and leaves
    Chinese characters together. The tokenizer itself gives the ids that it
    gives `as_elsewhere`.

    Args:
      vocab_file: path of the vocabulary.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      tokenize_and_align.
    """

    def __init__(self, vocab_file: str) -> None:
        super().__init__()
        self._normalizer = GraphNormalizer(ideographs_apart=False)
        self._wordpiece = GraphWordpiece(load_vocab(vocab_file))

    def encode(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of words' pieces.

        Args:
          words: string [N], of any bytes; what is not UTF-8 is left out.

        Returns:
          int32 [N, (T)]; none where cleaning leaves nothing of a word.
        """
        tokens = self._normalizer.split(self._normalizer.decode(words))
        lengths = tokens.splits[1:] - tokens.splits[:-1]
        pieces = self._wordpiece.split_words(tokens.values, lengths)
        return tf.RaggedTensor.from_row_splits(
            pieces.ids,
            tf.gather(pieces.splits, tokens.string_splits),
            validate=False,
        )
