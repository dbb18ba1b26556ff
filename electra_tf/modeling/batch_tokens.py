# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokens of a batch as rows of a matrix, with or without padding.

All layers but attention compute one token at a time, so that they take the
tokens of all texts as one matrix, [T, W]. Attention takes padded rows,
[B, L, W].
"""

from __future__ import annotations

import tensorflow as tf

from electra_tf.modeling.layers import static_or_dynamic_shape


class BatchTokens:
    """All B * L positions of a batch, so that T is B * L.

    The shape of the batch is read once, and not again in every layer. For a
    single text, reading it in every layer takes a tenth of the time.

    Args:
      input_mask: int32 [B, L], 1 for real tokens.
    """

    def __init__(self, input_mask: tf.Tensor) -> None:
        self.batch, self.length = static_or_dynamic_shape(input_mask)

    def pack(self, rows: tf.Tensor) -> tf.Tensor:
        """Return the tokens [T, W] of rows [B, L, W]."""
        return tf.reshape(rows, [-1, rows.shape[-1]])

    def unpack(self, tokens: tf.Tensor) -> tf.Tensor:
        """Return rows [B, L, W] of tokens [T, W]."""
        return tf.reshape(tokens, [self.batch, self.length, tokens.shape[-1]])


class RealTokens(BatchTokens):
    """The T real tokens of a batch, without its padding.

    Packing and unpacking are gathers of whole vectors, and each is the gradient
    of the other.

    Args:
      input_mask: int32 [B, L], 1 for real tokens.
    """

    def __init__(self, input_mask: tf.Tensor) -> None:
        super().__init__(input_mask)
        is_real = tf.reshape(input_mask, [-1]) > 0  # [B * L]
        # Index of each real token among the B * L positions, [T].
        self._positions = tf.where(is_real)[:, 0]
        # Number of each real token (from 1), [B * L]; 0 at padding, for which
        # `_gather_rows` inserts a vector of zeros.
        numbers = tf.cumsum(tf.cast(is_real, tf.int32))
        self._numbers = tf.where(is_real, numbers, 0)

    def pack(self, rows: tf.Tensor) -> tf.Tensor:
        """Return the real tokens [T, W] of rows [B, L, W]."""

        @tf.custom_gradient
        def pack(rows: tf.Tensor):
            return self._gather_tokens(rows), self._gather_rows

        return pack(rows)

    def unpack(self, tokens: tf.Tensor) -> tf.Tensor:
        """Return rows [B, L, W] of real tokens [T, W]; padding is 0."""

        @tf.custom_gradient
        def unpack(tokens: tf.Tensor):
            return self._gather_rows(tokens), self._gather_tokens

        return unpack(tokens)

    def _gather_tokens(self, rows: tf.Tensor) -> tf.Tensor:
        width = rows.shape[-1]
        return tf.gather(tf.reshape(rows, [-1, width]), self._positions)

    def _gather_rows(self, tokens: tf.Tensor) -> tf.Tensor:
        width = tokens.shape[-1]
        padding = tf.zeros([1, width], tokens.dtype)
        flat = tf.gather(tf.concat([padding, tokens], 0), self._numbers)
        return tf.reshape(flat, [self.batch, self.length, width])
