# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Transformer encoder: embeddings and transformer blocks."""

import dataclasses
from typing import NamedTuple

import tensorflow as tf

from electra_tf.modeling.activation_checkpointing import run_checkpointed
from electra_tf.modeling.attention import SelfAttention, attention_bias
from electra_tf.modeling.batch_tokens import BatchTokens, RealTokens
from electra_tf.modeling.embeddings import Embeddings
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.graph_modes import is_inference
from electra_tf.modeling.layers import Dense, LayerNorm, ScopedLayer
from electra_tf.modeling.seeds import SeedStream


@dataclasses.dataclass(frozen=True)
class ComputePolicy:
    """Settings for the computation of blocks; weights are always float32."""

    dtype: str = "float32"  # dtype of blocks; see `precision.block_dtype`
    activation_checkpointing: bool = False  # used only in training
    # Whether blocks skip padding (see `RealTokens`); used only in training.
    skip_padding: bool = False


class TransformerBlock(ScopedLayer):
    """Transformer block with post-normalization.

    Source: google-research/electra, model/modeling.py, transformer_model.
    """

    def __init__(self, scope: str, sizes: EncoderConfig, seed: int = 0) -> None:
        super().__init__(scope, seed)
        self.sizes = sizes
        hidden, inner = sizes.hidden_size, sizes.intermediate_size

        def dense(
            name: str,
            in_width: int,
            units: int,
            input_activation: str | None = None,
        ) -> Dense:
            return Dense(
                f"{scope}/{name}/dense",
                in_width,
                units,
                stddev=sizes.initializer_range,
                seed=seed,
                input_activation=input_activation,
            )

        self.attention = SelfAttention(f"{scope}/attention/self", sizes, seed)
        self.attention_output = dense("attention/output", hidden, hidden)
        epsilon = sizes.layer_norm_eps
        self.attention_norm = LayerNorm(
            f"{scope}/attention/output", hidden, seed, epsilon
        )
        self.intermediate = dense("intermediate", hidden, inner)
        self.output_dense = dense("output", inner, hidden, sizes.hidden_act)
        self.output_norm = LayerNorm(f"{scope}/output", hidden, seed, epsilon)

    def call(
        self,
        hidden: tf.Tensor,
        bias: tf.Tensor,
        seeds: SeedStream | None = None,
        tokens: BatchTokens | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Run the block; see `SelfAttention` for arguments and results."""
        rate = self.sizes.hidden_dropout_prob

        def seed(site: str) -> tf.Tensor | None:
            return seeds.seed(site) if seeds else None

        mixed, probs = self.attention(hidden, bias, seeds, tokens)
        mixed = self.attention_output(mixed)
        hidden = self.attention_norm(
            mixed, hidden, rate, seed("attention_output")
        )
        # [B, L, intermediate_size]; with `tokens`: [T, intermediate_size]
        inner = self.intermediate(hidden)
        inner = self.output_dense(inner)
        return self.output_norm(inner, hidden, rate, seed("output")), probs


class EncoderOutput(NamedTuple):
    """Tensors that an encoder computes for a batch.

    `layers` and `attention_probs` have the dtype of the blocks; other tensors
    are float32.
    """

    embedding_output: tf.Tensor  # [B, L, H], after the projection
    layers: tuple[tf.Tensor, ...]  # [B, L, H] for each block
    # [B, A, L, L] for each block; empty when training with activation
    # checkpointing.
    attention_probs: tuple[tf.Tensor, ...]

    @property
    def sequence_output(self) -> tf.Tensor:
        """Output of the last block, float32 [B, L, H]."""
        last = self.layers[-1] if self.layers else self.embedding_output
        return tf.cast(last, tf.float32)

    @property
    def pooled_output(self) -> tf.Tensor:
        """Vector of the first token, float32 [B, H], without a pooler layer."""
        return self.sequence_output[:, 0]

    @property
    def all_layers(self) -> tf.Tensor:
        """Outputs of all blocks, float32 [layers, B, L, H]."""
        return tf.cast(tf.stack(self.layers, 0), tf.float32)


class Encoder(ScopedLayer):
    """A BERT-style encoder, used as generator, discriminator or tower.

    Source: google-research/electra, model/modeling.py, BertModel.

    Args:
      scope: TF1 scope of the variables, except the embeddings.
      sizes: sizes of the encoder.
      embeddings: separate or shared embeddings; a width other than H is
        projected to H.
      direction: None, "ltr" or "rtl"; see `attention_bias`.
      seed: seed of the initial values.
    """

    def __init__(
        self,
        scope: str,
        sizes: EncoderConfig,
        embeddings: Embeddings,
        direction: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(scope, seed)
        self.sizes = sizes
        self.embeddings = embeddings
        self.direction = direction
        self.compute_policy = ComputePolicy()
        self.embeddings_project = None
        if embeddings.width != sizes.hidden_size:
            self.embeddings_project = Dense(
                f"{scope}/embeddings_project",
                embeddings.width,
                sizes.hidden_size,
                seed=seed,
            )
        self.blocks = [
            TransformerBlock(f"{scope}/encoder/layer_{i}", sizes, seed)
            for i in range(sizes.num_hidden_layers)
        ]

    def call(
        self,
        input_ids: tf.Tensor,
        input_mask: tf.Tensor,
        segment_ids: tf.Tensor,
        seeds: SeedStream | None = None,
    ) -> EncoderOutput:
        """Encode a batch of int32 [B, L] tensors.

        If `seeds` is not None, dropout is applied. If training skips padding,
        the outputs of blocks are 0 at padding.
        """
        if seeds is not None:
            seeds = seeds.child(self.scope)
        hidden = self.embeddings(input_ids, segment_ids, seeds)
        if self.embeddings_project is not None:
            hidden = self.embeddings_project(hidden)  # [B, L, H]
        embedding_output = hidden
        bias = attention_bias(input_mask, self.direction)
        layers, all_probs = [], []
        hidden = tf.cast(hidden, self.compute_policy.dtype)
        checkpoints = self.compute_policy.activation_checkpointing
        tokens: BatchTokens | None = None
        if is_inference():
            tokens = BatchTokens(input_mask)
        elif seeds is not None and self.compute_policy.skip_padding:
            tokens = RealTokens(input_mask)
        if tokens is not None:
            hidden = tokens.pack(hidden)
        for i, block in enumerate(self.blocks):
            block_seeds = seeds.child(f"layer_{i}") if seeds else None
            if block_seeds is not None and checkpoints:
                hidden = run_checkpointed(
                    block, hidden, bias, block_seeds, tokens
                )
            else:
                hidden, probs = block(hidden, bias, block_seeds, tokens)
                all_probs.append(probs)
            layers.append(hidden if tokens is None else tokens.unpack(hidden))
        return EncoderOutput(embedding_output, tuple(layers), tuple(all_probs))


def set_compute_policy(model: tf.Module, policy: ComputePolicy) -> None:
    """Set the compute policy of all encoders of a model."""
    for module in model.submodules:
        if isinstance(module, Encoder):
            module.compute_policy = policy
