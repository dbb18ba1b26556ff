# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Self-attention, and the bias that hides keys from it."""

import math
from collections.abc import Callable

import tensorflow as tf

from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.layers import (
    Dense,
    ScopedLayer,
    SeedStream,
    dropout_alone,
    static_or_dynamic_shape,
)

# The original adds this instead of minus infinity. A query that may see no key
# at all then falls back to the raw scores over all positions; keep it so.
MASKED_SCORE = -10000.0


def attention_bias(
    input_mask: tf.Tensor, direction: str | None = None
) -> tf.Tensor:
    """What is added to attention scores: float32, -10000 to hide keys, else 0.

    Of an int32 [B, L] mask, 1 for real tokens. [B, 1, 1, L] shows all of them,
    [B, 1, L, L] those at or before the query for the direction "ltr", those at
    or after it for "rtl".

    Source: google-research/electra, model/modeling.py,
    create_attention_mask_from_input_mask and BertModel.
    """
    # Not [:, None, None, :], which LiteRT has no operation for.
    visible = tf.expand_dims(tf.cast(input_mask, tf.float32)[:, None], 1)
    if direction is not None:
        if direction not in ("ltr", "rtl"):
            raise ValueError(f"direction must be ltr or rtl, not {direction!r}")
        length = tf.shape(input_mask)[1]
        band = (-1, 0) if direction == "ltr" else (0, -1)
        visible *= tf.linalg.band_part(tf.ones([length, length]), *band)
    return (1.0 - visible) * MASKED_SCORE


class SelfAttention(ScopedLayer):
    """Projects to queries, keys and values and mixes the values.

    Source: google-research/electra, model/modeling.py, attention_layer.
    """

    def __init__(
        self, scope: str, config: EncoderConfig, seed: int = 0
    ) -> None:
        super().__init__(scope, seed)
        self.config = config
        hidden, stddev = config.hidden_size, config.initializer_range
        self.query, self.key, self.value = (
            Dense(f"{scope}/{name}", hidden, hidden, stddev=stddev, seed=seed)
            for name in ("query", "key", "value")
        )

    def call(
        self,
        hidden: tf.Tensor,
        bias: tf.Tensor,
        seeds: SeedStream | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Attends from every position to every visible position.

        `hidden` is float32 or half precision [B, L, H]; so are the mixed values
        and, [B, A, L, L], the attention probabilities after dropout. `bias` of
        `attention_bias`, [B, 1, 1 or L, L], and the softmax are float32.
        """
        batch, length, width = static_or_dynamic_shape(hidden)
        heads, size = self.config.num_attention_heads, self.config.size_per_head

        def split_heads(tensor: tf.Tensor) -> tf.Tensor:
            tensor = tf.reshape(tensor, [batch, length, heads, size])
            return tf.transpose(tensor, [0, 2, 1, 3])  # [B, A, L, D]

        scale = 1.0 / math.sqrt(size)
        # A power of two (64 units a head) scales the query, L / D times fewer
        # elements, to the same bits. Other factors would round differently,
        # and Electric's rows without visible keys magnify that 1,000 times.
        # Half precision would overflow rather.
        scale_query = math.frexp(scale)[0] == 0.5 or hidden.dtype.size < 4
        query = self.query(hidden)
        query = split_heads(query * scale if scale_query else query)
        # A key bias adds the same number to all of a query's scores, which
        # softmax does not see: its true gradient is zero, and what summing in
        # float32 gives is rounding noise.
        key = split_heads(self.key(hidden, train_bias=False))
        value = split_heads(self.value(hidden))
        scores = tf.matmul(query, key, transpose_b=True)  # [B, A, L, L]
        if not scale_query:
            scores *= scale
        seed = seeds.seed("attention_probs") if seeds else None
        rate = self.config.attention_probs_dropout_prob
        probs = _attention_probs(scores, bias, rate, seed)
        mixed = tf.transpose(tf.matmul(probs, value), [0, 2, 1, 3])
        return tf.reshape(mixed, [batch, length, width]), probs


def _attention_probs(
    scores: tf.Tensor, bias: tf.Tensor, rate: float, seed: tf.Tensor | None
) -> tf.Tensor:
    """Softmax of `scores` + `bias` over the last axis, then dropout.

    Without dropout, TensorFlow's own softmax and its gradient. Else, with p the
    softmax, d what dropout makes of it and u the gradient of d, the
    gradient of the scores is u d - p sum(u d): the mask need not be kept.
    """

    def softmax(scores: tf.Tensor) -> tf.Tensor:
        wide = tf.nn.softmax(tf.cast(scores, bias.dtype) + bias)
        return tf.cast(wide, scores.dtype)

    if seed is None or not rate:
        return softmax(scores)

    @tf.custom_gradient
    def dropped_softmax(scores: tf.Tensor) -> tuple[tf.Tensor, Callable]:
        probs = softmax(scores)
        dropped = dropout_alone(probs, rate, seed)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            upstream, mixed = (
                tf.cast(tensor, bias.dtype) for tensor in (upstream, dropped)
            )
            weighted = upstream * mixed
            total = tf.reduce_sum(weighted, -1, keepdims=True)
            change = weighted - tf.cast(probs, bias.dtype) * total
            return tf.cast(change, scores.dtype)

        return dropped, gradient

    return dropped_softmax(scores)
