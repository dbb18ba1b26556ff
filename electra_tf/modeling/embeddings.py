# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Token + position + segment embeddings."""

from typing import Any

import tensorflow as tf

from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.layers import LayerNorm, ScopedLayer
from electra_tf.modeling.seeds import SeedStream, dropout


class Embeddings(ScopedLayer):
    """Sums token, segment and position vectors, normalizes, drops out.

    The generator and the discriminator share one instance (paper section
    3.2), and with it the layer norm.

    Source: google-research/electra, model/modeling.py, embedding_lookup and
    embedding_postprocessor.
    """

    def __init__(
        self, scope: str, config: EncoderConfig, width: int, seed: int = 0
    ) -> None:
        super().__init__(scope, seed)
        self.config = config
        self.width = width
        stddev = config.initializer_range
        self.word_embeddings = self.scoped_weight(
            "word_embeddings", [config.vocab_size, width], "normal", stddev
        )
        self.token_type_embeddings = self.scoped_weight(
            "token_type_embeddings",
            [config.type_vocab_size, width],
            "normal",
            stddev,
        )
        self.position_embeddings = self.scoped_weight(
            "position_embeddings",
            [config.max_position_embeddings, width],
            "normal",
            stddev,
        )
        self.layer_norm = LayerNorm(scope, width, seed)

    def call(
        self,
        input_ids: tf.Tensor,
        segment_ids: tf.Tensor,
        randomness: SeedStream | None = None,
    ) -> tf.Tensor:
        """Embeds a batch.

        Args:
          input_ids: int32 [B, L], each in [0, V).
          segment_ids: int32 [B, L], each in [0, type_vocab_size).
          randomness: source of dropout, or None for none.

        Returns:
          float32 [B, L, E].
        """
        length = input_ids.shape[1]
        limit = self.config.max_position_embeddings
        if length is not None and length > limit:
            raise ValueError(
                f"The sequence is {length} wordpieces long but the position "
                f"table has {limit} rows; lower max_seq_length or raise "
                "max_position_embeddings in model_hparam_overrides."
            )
        if length is None:
            length = tf.shape(input_ids)[1]
        output = tf.gather(self.word_embeddings, input_ids)  # [B, L, E]
        # A product keeps the gradient dense, as in the original: the norm
        # used for clipping depends on that.
        segments = tf.one_hot(
            tf.reshape(segment_ids, [-1]), self.config.type_vocab_size
        )
        segments = tf.matmul(segments, self.token_type_embeddings)
        output += tf.reshape(segments, tf.shape(output))
        output += self.position_embeddings[:length]  # [L, E]
        output = self.layer_norm(output)
        seed = randomness.seed("embeddings") if randomness else None
        return dropout(output, self.config.hidden_dropout_prob, seed)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "config": self.config,
            "width": self.width,
        }
