# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Heads of pre-training, for masked tokens and for replaced tokens."""

import tensorflow as tf

from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.layers import Dense, LayerNorm, ScopedLayer


class MaskedLMHead(ScopedLayer):
    """Head that computes token logits from vectors and the tied token table.

    Source: google-research/electra, run_pretraining.py, get_token_logits.

    Args:
      scope: TF1 scope of the variables.
      sizes: sizes of the encoder that computes the vectors.
      in_width: width of the vectors.
      embedding_width: E, width of the table.
      seed: seed of the initial values.
    """

    def __init__(
        self,
        scope: str,
        sizes: EncoderConfig,
        in_width: int,
        embedding_width: int,
        seed: int = 0,
    ) -> None:
        super().__init__(scope, seed)
        self.sizes = sizes
        self.embedding_width = embedding_width
        self.dense = Dense(
            f"{scope}/dense",
            in_width,
            embedding_width,
            sizes.hidden_act,
            sizes.initializer_range,
            seed,
        )
        self.layer_norm = LayerNorm(
            scope, embedding_width, seed, sizes.layer_norm_eps
        )
        self.output_bias = self.scoped_weight(
            "output_bias", [sizes.vocab_size], "zeros"
        )

    def call(self, vectors: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
        """Return float32 logits, [B, N or L, V].

        Args:
          vectors: float32 [B, N or L, in_width].
          table: token embeddings, float32 [V, E].
        """
        hidden = self.layer_norm(self.dense(vectors))
        flat = tf.reshape(hidden, [-1, self.embedding_width])
        logits = tf.matmul(flat, table, transpose_b=True)
        logits = tf.nn.bias_add(logits, self.output_bias)
        count = tf.shape(vectors)[1]
        return tf.reshape(logits, [-1, count, self.sizes.vocab_size])


class DiscriminatorHead(ScopedLayer):
    """Head that predicts for each token whether the token was replaced.

    Source: google-research/electra, run_pretraining.py,
    _get_discriminator_output.
    """

    def __init__(self, scope: str, sizes: EncoderConfig, seed: int = 0) -> None:
        super().__init__(scope, seed)
        hidden = sizes.hidden_size
        self.dense = Dense(
            f"{scope}/dense",
            hidden,
            hidden,
            sizes.hidden_act,
            sizes.initializer_range,
            seed,
        )
        self.dense_1 = Dense(f"{scope}/dense_1", hidden, 1, seed=seed)

    def call(self, sequence_output: tf.Tensor) -> tf.Tensor:
        """Map float32 vectors [B, L, H] to float32 logits [B, L]."""
        return tf.squeeze(self.dense_1(self.dense(sequence_output)), -1)
