# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Self-attention, and the bias that hides keys from queries."""

import math
from collections.abc import Callable

import tensorflow as tf

from electra_tf.modeling.batch_tokens import BatchTokens
from electra_tf.modeling.dropout import dropout_without_gradient
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.graph_modes import is_inference
from electra_tf.modeling.layers import (
    Dense,
    ScopedLayer,
    static_or_dynamic_shape,
)
from electra_tf.modeling.seeds import SeedStream

# Value that is added to the scores of hidden keys. The original, too, adds this
# value instead of minus infinity, so that a query without a visible key attends
# by the raw scores of all positions.
MASKED_SCORE = -10000.0


def attention_bias(
    input_mask: tf.Tensor, direction: str | None = None
) -> tf.Tensor:
    """Return the bias of attention scores, float32; -10000 hides a key.

    Source: google-research/electra, model/modeling.py,
    create_attention_mask_from_input_mask and BertModel.

    Args:
      input_mask: int32 [B, L], 1 for real tokens.
      direction: "ltr" shows the keys at or before the query, "rtl" the keys at
        or after the query; None shows all keys.

    Returns:
      [B, 1, 1, L] without a direction, otherwise [B, 1, L, L].
    """
    # LiteRT has no operation for [:, None, None, :].
    visible = tf.expand_dims(tf.cast(input_mask, tf.float32)[:, None], 1)
    if direction is not None:
        if direction not in ("ltr", "rtl"):
            raise ValueError(
                f"direction is {direction!r}; expected ltr or rtl. Pass None to"
                " show all keys"
            )
        length = tf.shape(input_mask)[1]
        band = (-1, 0) if direction == "ltr" else (0, -1)
        visible *= tf.linalg.band_part(tf.ones([length, length]), *band)
    return (1.0 - visible) * MASKED_SCORE


class SelfAttention(ScopedLayer):
    """Attention from every position to all visible positions.

    Source: google-research/electra, model/modeling.py, attention_layer.
    """

    def __init__(self, scope: str, sizes: EncoderConfig, seed: int = 0) -> None:
        super().__init__(scope, seed)
        self.sizes = sizes
        hidden, stddev = sizes.hidden_size, sizes.initializer_range
        self.query, self.key, self.value = (
            Dense(f"{scope}/{name}", hidden, hidden, stddev=stddev, seed=seed)
            for name in ("query", "key", "value")
        )

    def call(
        self,
        hidden: tf.Tensor,
        bias: tf.Tensor,
        seeds: SeedStream | None = None,
        tokens: BatchTokens | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the mixed values and the attention probabilities.

        Args:
          hidden: float32 or half precision, [B, L, H]; with `tokens` [T, H].
          bias: float32 [B, 1, 1 or L, L], from `attention_bias`.
          seeds: seeds for dropout of the probabilities; None: no dropout.
          tokens: the T tokens of the batch, if `hidden` is a matrix.

        Returns:
          Mixed values with the shape of `hidden`, and probabilities after
          dropout [B, A, L, L], both with the dtype of `hidden`. The softmax is
          computed in float32.
        """
        if tokens is None:
            batch, length = static_or_dynamic_shape(hidden)[:2]
        else:
            batch, length = tokens.batch, tokens.length
        heads, size = self.sizes.num_attention_heads, self.sizes.size_per_head

        def split_heads(tensor: tf.Tensor) -> tf.Tensor:
            if tokens is not None:
                tensor = tokens.unpack(tensor)
            # oneDNN prepares a transposition for longer than one text's
            # transposition takes. Copies of single heads need no preparation.
            if is_inference():
                return tf.stack(tf.split(tensor, heads, -1), 1)
            tensor = tf.reshape(tensor, [batch, length, heads, size])
            return tf.transpose(tensor, [0, 2, 1, 3])  # [B, A, L, D]

        def merge_heads(tensor: tf.Tensor) -> tf.Tensor:
            if is_inference():
                return tf.concat(tf.unstack(tensor, heads, 1), -1)
            tensor = tf.transpose(tensor, [0, 2, 1, 3])
            return tf.reshape(tensor, [batch, length, heads * size])

        scale = 1.0 / math.sqrt(size)
        # If the factor is a power of two (as for 64 units per head), scaling
        # the query yields the same bits as scaling the scores, which have L / D
        # times as many elements. Other factors would round differently, and
        # Electric's rows without visible keys magnify that difference 1,000
        # times. In half precision the query is always scaled, because unscaled
        # scores would overflow.
        scale_query = math.frexp(scale)[0] == 0.5 or hidden.dtype.size < 4
        query = self.query(hidden)
        query = split_heads(query * scale if scale_query else query)
        # A key bias adds the same number to all of a query's scores, which does
        # not change their softmax. The true gradient of the key bias is zero,
        # and summing in float32 would only yield rounding noise.
        key = split_heads(self.key(hidden, train_bias=False))
        value = split_heads(self.value(hidden))
        scores = tf.matmul(query, key, transpose_b=True)  # [B, A, L, L]
        if not scale_query:
            scores *= scale
        seed = seeds.seed("attention_probs") if seeds else None
        rate = self.sizes.attention_probs_dropout_prob
        probs = _attention_probs(scores, bias, rate, seed)
        mixed = merge_heads(tf.matmul(probs, value))
        return mixed if tokens is None else tokens.pack(mixed), probs


def _attention_probs(
    scores: tf.Tensor, bias: tf.Tensor, rate: float, seed: tf.Tensor | None
) -> tf.Tensor:
    """Return dropout of the softmax of `scores` + `bias` over the last axis.

    Without dropout, the gradient is that of TensorFlow's softmax. With dropout,
    the gradient is written out: with p the softmax, d the dropped p and u the
    gradient of d, the gradient of the scores is u d - p sum(u d). The dropout
    mask is therefore not kept for the backward pass.
    """

    def softmax(scores: tf.Tensor) -> tf.Tensor:
        wide = tf.nn.softmax(tf.cast(scores, bias.dtype) + bias)
        return tf.cast(wide, scores.dtype)

    if seed is None or not rate:
        return softmax(scores)

    @tf.custom_gradient
    def dropped_softmax(scores: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        probs = softmax(scores)
        dropped = dropout_without_gradient(probs, rate, seed)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            product = tf.cast(upstream, bias.dtype) * tf.cast(
                dropped, bias.dtype
            )
            total = tf.reduce_sum(product, -1, keepdims=True)
            change = product - tf.cast(probs, bias.dtype) * total
            return tf.cast(change, scores.dtype)

        return dropped, gradient

    return dropped_softmax(scores)
