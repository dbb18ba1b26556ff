# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The heads of pre-training: masked words and replaced tokens."""

import tensorflow as tf

from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.layers import Dense, LayerNorm, ScopedLayer


class MaskedLMHead(ScopedLayer):
    """Vectors to vocabulary logits through a tied embedding table.

    Source: google-research/electra, run_pretraining.py, get_token_logits.
    """

    def __init__(
        self,
        scope: str,
        config: EncoderConfig,
        in_width: int,
        embedding_width: int,
        seed: int = 0,
    ) -> None:
        super().__init__(scope, seed)
        self.config = config
        self.embedding_width = embedding_width
        how = (config.hidden_act, config.initializer_range, seed)
        self.dense = Dense(f"{scope}/dense", in_width, embedding_width, *how)
        self.layer_norm = LayerNorm(
            scope, embedding_width, seed, config.layer_norm_eps
        )
        self.output_bias = self.scoped_weight(
            "output_bias", [config.vocab_size], "zeros"
        )

    def call(self, vectors: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
        """Scores every word of the vocabulary for every vector.

        From vectors, float32 [B, N or L, in_width], and the token embeddings,
        float32 [V, E], to logits, float32 [B, N or L, V].
        """
        hidden = self.layer_norm(self.dense(vectors))
        flat = tf.reshape(hidden, [-1, self.embedding_width])
        logits = tf.matmul(flat, table, transpose_b=True)
        logits = tf.nn.bias_add(logits, self.output_bias)
        count = tf.shape(vectors)[1]
        return tf.reshape(logits, [-1, count, self.config.vocab_size])


class DiscriminatorHead(ScopedLayer):
    """One logit a token: was it replaced?

    Source: google-research/electra, run_pretraining.py,
    _get_discriminator_output.
    """

    def __init__(
        self, scope: str, config: EncoderConfig, seed: int = 0
    ) -> None:
        super().__init__(scope, seed)
        hidden = config.hidden_size
        how = (config.hidden_act, config.initializer_range, seed)
        self.dense = Dense(f"{scope}/dense", hidden, hidden, *how)
        self.dense_1 = Dense(f"{scope}/dense_1", hidden, 1, seed=seed)

    def call(self, sequence_output: tf.Tensor) -> tf.Tensor:
        """Maps float32 [B, L, H] to float32 [B, L] logits."""
        return tf.squeeze(self.dense_1(self.dense(sequence_output)), -1)
