# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The transformer: blocks, their stack, and the encoder around them."""

from typing import Any, NamedTuple

import tensorflow as tf

from electra_tf.modeling.attention import SelfAttention, attention_bias
from electra_tf.modeling.compute_policy import ComputePolicy
from electra_tf.modeling.embeddings import Embeddings
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.layers import Dense, LayerNorm, ScopedLayer
from electra_tf.modeling.seeds import SeedStream, dropout


class TransformerBlock(ScopedLayer):
    """Self-attention and feed-forward, each added and then normalized.

    Source: google-research/electra, model/modeling.py, transformer_model.
    """

    def __init__(
        self, scope: str, config: EncoderConfig, seed: int = 0
    ) -> None:
        super().__init__(scope, seed)
        self.config = config
        hidden, inner = config.hidden_size, config.intermediate_size
        stddev = config.initializer_range
        self.attention = SelfAttention(f"{scope}/attention/self", config, seed)
        self.attention_output = Dense(
            f"{scope}/attention/output/dense",
            hidden,
            hidden,
            stddev=stddev,
            seed=seed,
        )
        self.attention_norm = LayerNorm(
            f"{scope}/attention/output", hidden, seed
        )
        self.intermediate = Dense(
            f"{scope}/intermediate/dense",
            hidden,
            inner,
            config.hidden_act,
            stddev,
            seed,
        )
        self.output_dense = Dense(
            f"{scope}/output/dense", inner, hidden, stddev=stddev, seed=seed
        )
        self.output_norm = LayerNorm(f"{scope}/output", hidden, seed)

    def call(
        self,
        hidden: tf.Tensor,
        bias: tf.Tensor,
        randomness: SeedStream | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Runs the block.

        Args:
          hidden: float32 or half precision [B, L, H].
          bias: float32 [B, 1, 1 or L, L], from `attention_bias`.
          randomness: source of dropout, or None for none.

        Returns:
          [B, L, H] outputs and [B, A, L, L] attention probabilities, of
          `hidden`'s dtype.
        """

        def drop(tensor: tf.Tensor, site: str) -> tf.Tensor:
            seed = randomness.seed(site) if randomness else None
            return dropout(tensor, self.config.hidden_dropout_prob, seed)

        mixed, probs = self.attention(hidden, bias, randomness)
        mixed = drop(self.attention_output(mixed), "attention_output")
        hidden = self.attention_norm(mixed + hidden)
        inner = self.intermediate(hidden)  # [B, L, intermediate_size]
        inner = drop(self.output_dense(inner), "output")
        return self.output_norm(inner + hidden), probs

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {"config": self.config}


class EncoderOutput(NamedTuple):
    """What an encoder gives for a batch.

    All float32, except that `layers` and `attention_probs` have the dtype the
    blocks compute in.
    """

    embedding_output: tf.Tensor  # [B, L, H], after the projection
    layers: tuple[tf.Tensor, ...]  # one [B, L, H] a block
    # One [B, A, L, L] a block; none when training recomputes blocks.
    attention_probs: tuple[tf.Tensor, ...]

    @property
    def sequence_output(self) -> tf.Tensor:
        """Output of the last block, [B, L, H]."""
        last = self.layers[-1] if self.layers else self.embedding_output
        return tf.cast(last, tf.float32)

    @property
    def pooled_output(self) -> tf.Tensor:
        """Vector of the first token, [B, H]; there is no pooler layer."""
        return self.sequence_output[:, 0]

    @property
    def all_layers(self) -> tf.Tensor:
        """All blocks' outputs stacked, [layers, B, L, H]."""
        return tf.cast(tf.stack(self.layers, 0), tf.float32)


class Encoder(ScopedLayer):
    """BERT-style encoder, as generator, discriminator or tower.

    Args:
      direction: None, "ltr" or "rtl"; see `attention_bias`.

    Attributes:
      computation: how the blocks are computed; see `set_compute_policy`.

    Source: google-research/electra, model/modeling.py, BertModel.
    """

    def __init__(
        self,
        scope: str,
        config: EncoderConfig,
        embeddings: Embeddings,
        direction: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(scope, seed)
        self.config = config
        self.embeddings = embeddings
        self.direction = direction
        self.computation = ComputePolicy()
        self.embeddings_project = None
        if embeddings.width != config.hidden_size:
            self.embeddings_project = Dense(
                f"{scope}/embeddings_project",
                embeddings.width,
                config.hidden_size,
                seed=seed,
            )
        self.blocks = [
            TransformerBlock(f"{scope}/encoder/layer_{i}", config, seed)
            for i in range(config.num_hidden_layers)
        ]

    def call(
        self,
        input_ids: tf.Tensor,
        input_mask: tf.Tensor,
        segment_ids: tf.Tensor,
        randomness: SeedStream | None = None,
    ) -> EncoderOutput:
        """Encodes a batch.

        Args:
          input_ids: int32 [B, L], each in [0, V).
          input_mask: int32 [B, L], 1 for real tokens, 0 for padding.
          segment_ids: int32 [B, L].
          randomness: source of dropout, or None for none.
        """
        if randomness is not None:
            randomness = randomness.child(self.scope)
        hidden = self.embeddings(input_ids, segment_ids, randomness)
        if self.embeddings_project is not None:
            hidden = self.embeddings_project(hidden)  # [B, L, H]
        embedding_output = hidden
        bias = attention_bias(input_mask, self.direction)
        layers, attention_probs = [], []
        hidden = tf.cast(hidden, self.computation.dtype)
        for i, block in enumerate(self.blocks):
            inner = randomness.child(f"layer_{i}") if randomness else None
            if randomness is not None and self.computation.recompute:
                hidden = _recomputed(block, hidden, bias, inner)
            else:
                hidden, probs = block(hidden, bias, inner)
                attention_probs.append(probs)
            layers.append(hidden)
        return EncoderOutput(
            embedding_output, tuple(layers), tuple(attention_probs)
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "config": self.config,
            "embeddings": self.embeddings,
            "direction": self.direction,
        }


def _recomputed(
    block: TransformerBlock,
    hidden: tf.Tensor,
    bias: tf.Tensor,
    randomness: SeedStream,
) -> tf.Tensor:
    """Runs a block of which only the input is kept for its gradient.

    The second computation repeats the first, as all draws of a block come from
    seeds that `randomness` fixes.
    """
    return tf.recompute_grad(lambda x: block(x, bias, randomness)[0])(hidden)


def set_compute_policy(model: tf.Module, computation: ComputePolicy) -> None:
    """Says how all encoders of a model compute."""
    for module in model.submodules:
        if isinstance(module, Encoder):
            module.computation = computation
