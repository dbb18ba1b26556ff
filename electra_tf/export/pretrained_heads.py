# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Modules of pre-trained models: replaced tokens, filling in, scoring.

Tokens come with [CLS] and [SEP]; behind a row's end they are "", and numbers
0. docs/export.md says what each gives.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from configure.errors import UserError
from electra_tf.export.signatures import Inputs, Outputs, ServingModule, cut
from electra_tf.prediction.loading import PretrainedModel
from electra_tf.pretraining.scoring import electric_scores

TOP_K = 10


class PretrainedModule(ServingModule):
    """Base: a pre-trained model and one thing it is asked.

    Args:
      max_seq_length: what texts are cut to; None: all positions.
    """

    def __init__(
        self,
        loaded: PretrainedModel,
        max_seq_length: int | None = None,
        **extra: Any,
    ) -> None:
        self.loaded = loaded
        self.check()
        sizes = loaded.model.encoder_config
        super().__init__(
            loaded,
            sizes,
            self.used_variables(),
            max_seq_length or sizes.max_position_embeddings,
            extra=extra,
        )

    def check(self) -> None:
        """Raises a UserError unless the parts that are used are there."""
        self.loaded.require_discriminator(f"export of {self.KIND}")

    def used_variables(self) -> list[tf.Variable]:
        """Returns the variables that the functions read."""
        model = self.loaded.model
        return [
            *model.discriminator.variables,
            *model.discriminator_head.variables,
        ]

    def tokens_of(self, inputs: Inputs) -> tf.Tensor:
        """Returns the tokens [B, L] of a batch, "" where there are none."""
        tokens = self.tokenizer.id_to_token(inputs.input_ids)
        return tf.where(inputs.input_mask > 0, tokens, "")


class ReplacedTokensModule(PretrainedModule):
    """The discriminator: which tokens look out of place."""

    KIND = "replaced_tokens"

    def compute(self, inputs: Inputs) -> Outputs:
        """Tokens [B, L], and how probable it is that each was replaced."""
        model = self.loaded.model
        encoded = model.discriminator(*inputs, None)
        logits = model.discriminator_head(encoded.sequence_output)
        real = tf.cast(inputs.input_mask, tf.float32)
        return {
            "tokens": self.tokens_of(inputs),
            "replaced": tf.sigmoid(logits) * real,
        }


class ElectricModule(PretrainedModule):
    """Electric's discriminator: how likely a text is, in one pass."""

    KIND = "electric"

    def check(self) -> None:
        """Also refuses other models."""
        super().check()
        if not self.loaded.is_electric:
            raise UserError(
                f"{self.loaded.path} is not an Electric model: its"
                " discriminator's logits are no energies. If it is one, say"
                " so: --hparams='{\"electric_objective\": true}'."
            )

    def compute(self, inputs: Inputs) -> Outputs:
        """Pseudo-log-likelihoods [B] in nats, and the tokens' shares."""
        scores = electric_scores(self.loaded.model, inputs._asdict())
        count = tf.reduce_sum(tf.cast(scores["scored"], tf.int32), -1)
        return {
            "score": scores["score"],
            "token_scores": scores["token_scores"],
            "scored_tokens": count,
            "tokens": self.tokens_of(inputs),
        }


class FillMaskModule(PretrainedModule):
    """The generator, or a masked LM: the best words for each [MASK]."""

    KIND = "fill_mask"

    def __init__(
        self,
        loaded: PretrainedModel,
        max_seq_length: int | None = None,
        top_k: int = TOP_K,
    ) -> None:
        # A generator knows no more words than the vocabulary has.
        self.top_k = min(top_k, loaded.model.encoder_config.vocab_size)
        super().__init__(loaded, max_seq_length, top_k=self.top_k)

    def check(self) -> None:
        """Asks for the generator instead."""
        self.loaded.require_generator(f"export of {self.KIND}")

    def used_variables(self) -> list[tf.Variable]:
        """The generator's; two towers may hold the same embeddings."""
        model = self.loaded.model
        found = [*model.generator.variables, *model.masked_lm_head.variables]
        return list({id(variable): variable for variable in found}.values())

    def encode_text(self, text: tf.Tensor) -> tf.RaggedTensor:
        """From strings [B] to ids, each "[MASK]" in them being one id.

        What is left and right of it is split as a text of its own.
        """
        parts = tf.strings.split(text, "[MASK]")  # [B, (parts)]
        ids = self.tokenizer.encode(parts.values)
        mask = tf.fill([tf.size(parts.values), 1], self.tokenizer.mask_id)
        # One mask behind every part is one too many.
        pieces = tf.concat([ids, mask], 1)
        rows = parts.with_values(pieces).merge_dims(1, 2)
        return cut(rows, tf.cast(rows.row_lengths(), tf.int32) - 1)

    def compute(self, inputs: Inputs) -> Outputs:
        """The K best [B, M, K] for each of a row's masks, M at most."""
        is_mask = inputs.input_ids == self.tokenizer.mask_id
        is_mask &= inputs.input_mask > 0
        masks = tf.reduce_sum(tf.cast(is_mask, tf.int32), -1)  # [B]
        most = tf.reduce_max(tf.concat([masks, [1]], 0))
        order = tf.argsort(tf.cast(~is_mask, tf.int32), stable=True)
        used = tf.sequence_mask(masks, most)  # [B, M]
        positions = tf.where(used, order[:, :most], 0)
        logits, _ = self.loaded.model.generator_logits(
            inputs._asdict(), positions
        )
        best, ids = tf.math.top_k(tf.nn.softmax(logits), self.top_k)
        shown = used[..., None]
        tokens = self.tokenizer.id_to_token(ids)
        return {
            "tokens": tf.where(shown, tokens, ""),
            "token_ids": tf.where(shown, ids, 0),
            "probabilities": tf.where(shown, best, 0.0),
            "positions": positions,
            "masks": masks,
        }
