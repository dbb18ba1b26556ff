# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Electric's cloze model: a left-to-right and a right-to-left tower."""

from typing import Any

import tensorflow as tf

from electra_tf.modeling.embeddings import Embeddings
from electra_tf.modeling.encoder import Encoder, EncoderOutput
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.layers import ScopedLayer
from electra_tf.modeling.seeds import SeedStream


class TwoTowerClozeTransformer(ScopedLayer):
    """Predicts each token from its left and right context, never itself.

    Source: google-research/electra, run_pretraining.py,
    TwoTowerClozeTransformer; Electric paper (EMNLP 2020) section 2.3.
    """

    def __init__(
        self,
        scope: str,
        config: EncoderConfig,
        ltr_embeddings: Embeddings,
        rtl_embeddings: Embeddings,
        seed: int = 0,
    ) -> None:
        super().__init__(scope, seed)
        self.config = config
        self.ltr = Encoder(f"{scope}_ltr", config, ltr_embeddings, "ltr", seed)
        self.rtl = Encoder(f"{scope}_rtl", config, rtl_embeddings, "rtl", seed)

    def call(
        self,
        input_ids: tf.Tensor,
        input_mask: tf.Tensor,
        segment_ids: tf.Tensor,
        randomness: SeedStream | None = None,
    ) -> tuple[tf.Tensor, EncoderOutput, EncoderOutput]:
        """Encodes the unmasked batch in both directions.

        Args:
          input_ids: int32 [B, L], not masked.
          input_mask: int32 [B, L].
          segment_ids: int32 [B, L].
          randomness: source of dropout, or None for none.

        Returns:
          float32 [B, L, 2H], where position i holds the left tower's vector of
          i - 1 and the right tower's of i + 1, and both towers' outputs. The
          shift is a rotation, as in the original: the first position sees the
          last and the other way round, both outside the loss.
        """
        inputs = (input_ids, input_mask, segment_ids, randomness)
        ltr, rtl = self.ltr(*inputs), self.rtl(*inputs)
        context = tf.concat(
            [
                tf.roll(ltr.sequence_output, 1, axis=1),
                tf.roll(rtl.sequence_output, -1, axis=1),
            ],
            -1,
        )
        return context, ltr, rtl

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "config": self.config,
            "ltr_embeddings": self.ltr.embeddings,
            "rtl_embeddings": self.rtl.embeddings,
        }
