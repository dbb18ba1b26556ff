# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two encoders, one in each direction: the generator of Electric."""

import tensorflow as tf

from electra_tf.modeling.embeddings import Embeddings
from electra_tf.modeling.encoder import Encoder, EncoderOutput
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.layers import ScopedLayer
from electra_tf.modeling.seeds import SeedStream


class TwoTowerClozeTransformer(ScopedLayer):
    """A model that predicts each token from its left and right context.

    Source: google-research/electra, run_pretraining.py,
    TwoTowerClozeTransformer; Electric paper (EMNLP 2020) section 2.3.
    """

    def __init__(
        self,
        scope: str,
        sizes: EncoderConfig,
        ltr_embeddings: Embeddings,
        rtl_embeddings: Embeddings,
        seed: int = 0,
    ) -> None:
        super().__init__(scope, seed)
        self.sizes = sizes
        self.ltr = Encoder(f"{scope}_ltr", sizes, ltr_embeddings, "ltr", seed)
        self.rtl = Encoder(f"{scope}_rtl", sizes, rtl_embeddings, "rtl", seed)

    def call(
        self,
        input_ids: tf.Tensor,
        input_mask: tf.Tensor,
        segment_ids: tf.Tensor,
        seeds: SeedStream | None = None,
    ) -> tuple[tf.Tensor, EncoderOutput, EncoderOutput]:
        """Encode an unmasked batch of int32 [B, L] tensors in both directions.

        Returns:
          float32 [B, L, 2H], in which position i has the left tower's vector of
          i - 1 and the right tower's vector of i + 1; then the outputs of both
          towers. The shift is a rotation, as in the original: the first
          position gets a vector of the last position and vice versa. Neither
          position has a loss.
        """
        inputs = (input_ids, input_mask, segment_ids, seeds)
        ltr, rtl = self.ltr(*inputs), self.rtl(*inputs)
        left = tf.roll(ltr.sequence_output, 1, axis=1)
        right = tf.roll(rtl.sequence_output, -1, axis=1)
        return tf.concat([left, right], -1), ltr, rtl
