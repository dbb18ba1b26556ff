# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Modules of pre-trained models: judging tokens, filling in, scoring.

`serve_text` takes `text` [B]; a longer one is cut to max_seq_length, which
`truncated` bool [B] says. Tokens come with [CLS] and [SEP]; behind a row's end
they are "", and numbers 0.

  replaced_tokens  `tokens` string and `replaced` float32 [B, L]: how probable
                   it is that a token is not the original
  fill_mask        text with [MASK]: `tokens` string, `token_ids` int32 and
                   `probabilities` float32 [B, M, K], the K best for each of
                   the M masks (a row's own number is `masks` int32 [B]), and
                   `positions` int32 [B, M], which token of the row it is
  electric         `score` float32 [B], the pseudo-log-likelihood in nats:
                   minus the sum of the discriminator's raw logits over the
                   tokens that are not special; `token_scores` [B, L], their
                   shares; `scored_tokens` int32 [B], their number; `tokens`

The signatures for ids give the same without `truncated`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import GeneratorKind
from electra_tf.export.signatures import (
    Inputs,
    Outputs,
    ServingModule,
    Settings,
    Signatures,
    cut,
    pack,
    public_hparams,
)
from electra_tf.modeling.sequence_ops import gather_positions
from electra_tf.prediction.loading import PretrainedModel
from electra_tf.pretraining.scoring import electric_scores

MASK = "[MASK]"
TOP_K = 10


class PretrainedModule(ServingModule):
    """Base: a pre-trained model and one thing it is asked.

    Args:
      max_seq_length: what texts are cut to; None: all positions.

    Attributes:
      KIND: the kind, as `describe` gives it.
    """

    KIND: ClassVar[str]

    def __init__(
        self, loaded: PretrainedModel, max_seq_length: int | None = None
    ) -> None:
        self._loaded_of = lambda: loaded
        self.check()
        config, sizes = loaded.config, loaded.model.encoder_config
        settings = Settings(
            kind=self.KIND,
            vocab_file=config.vocab_file,
            do_lower_case=config.do_lower_case,
            strip_accents=config.strip_accents,
            max_seq_length=max_seq_length or sizes.max_position_embeddings,
            max_positions=sizes.max_position_embeddings,
            config={
                **self.extra_config(),
                "encoder": dataclasses.asdict(sizes),
                "hparams": public_hparams(config),
            },
        )
        super().__init__(settings, self.used_variables())

    @property
    def loaded(self) -> PretrainedModel:
        """The model it was made of."""
        return self._loaded_of()

    def check(self) -> None:
        """Raises a UserError unless the parts that are used are there."""
        self.loaded.require_discriminator(f"export of {self.KIND}")

    def extra_config(self) -> dict[str, Any]:
        """Returns what a subclass adds to the config inside."""
        return {}

    def used_variables(self) -> list[tf.Variable]:
        """Returns the variables that the functions read."""
        model = self.loaded.model
        return [
            *model.discriminator.variables,
            *model.discriminator_head.variables,
        ]

    def encode_text(self, text: tf.Tensor) -> tf.RaggedTensor:
        """From strings [B] to ids [B, (T)]."""
        return self.tokenizer.encode(text)

    def signatures(self) -> Signatures:
        """See the base class."""
        strings = tf.TensorSpec([None], tf.string)

        @tf.function(input_signature=[strings], autograph=False)
        def serve_text(text: tf.Tensor) -> Outputs:
            inputs, truncated = pack(
                self.encode_text(text),
                None,
                self.settings.max_seq_length,
                self.tokenizer.cls_id,
                self.tokenizer.sep_id,
            )
            return {**self.compute(inputs), "truncated": truncated}

        return {
            **self.ids_signatures(self.compute),
            "serve_text": serve_text,
            **self.describe_signature(),
        }

    def tokens_of(self, inputs: Inputs) -> tf.Tensor:
        """Returns the tokens [B, L] of a batch, "" where there are none."""
        tokens = self.tokenizer.id_to_token(inputs.input_ids)
        return tf.where(inputs.input_mask > 0, tokens, "")


class ReplacedTokensModule(PretrainedModule):
    """The discriminator: which tokens look out of place."""

    KIND = "replaced_tokens"

    def compute(self, inputs: Inputs) -> Outputs:
        """See the base class."""
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
        """See the base class."""
        super().check()
        if not self.loaded.is_electric:
            raise UserError(
                f"{self.loaded.path} is not an Electric model: its"
                " discriminator's logits are no energies. If it is one, say"
                " so: --hparams='{\"electric_objective\": true}'."
            )

    def compute(self, inputs: Inputs) -> Outputs:
        """See the base class."""
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
        super().__init__(loaded, max_seq_length)

    def check(self) -> None:
        """See the base class."""
        self.loaded.require_generator(f"export of {self.KIND}")

    def extra_config(self) -> dict[str, Any]:
        """Adds how many words there are for each mask."""
        return {"top_k": self.top_k}

    def used_variables(self) -> list[tf.Variable]:
        """See the base class."""
        model = self.loaded.model
        parts = [model.generator, model.masked_lm_head]
        return _without_repeats(v for part in parts for v in part.variables)

    def encode_text(self, text: tf.Tensor) -> tf.RaggedTensor:
        """From strings [B] to ids, each "[MASK]" in them being one id.

        What is left and right of it is split as a text of its own.
        """
        parts = tf.strings.split(text, MASK)  # [B, (parts)]
        ids = self.tokenizer.encode(parts.values)
        mask = tf.fill([tf.size(parts.values), 1], self.tokenizer.mask_id)
        # One mask behind every part is one too many.
        pieces = tf.concat([ids, mask], 1)
        rows = parts.with_values(pieces).merge_dims(1, 2)
        return cut(rows, tf.cast(rows.row_lengths(), tf.int32) - 1)

    def compute(self, inputs: Inputs) -> Outputs:
        """See the base class."""
        is_mask = inputs.input_ids == self.tokenizer.mask_id
        is_mask &= inputs.input_mask > 0
        masks = tf.reduce_sum(tf.cast(is_mask, tf.int32), -1)  # [B]
        most = tf.reduce_max(tf.concat([masks, [1]], 0))
        order = tf.argsort(tf.cast(~is_mask, tf.int32), stable=True)
        used = tf.sequence_mask(masks, most)  # [B, M]
        positions = tf.where(used, order[:, :most], 0)
        logits = _logits_of(self.loaded.model)(inputs, positions)
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


def _logits_of(model: Any) -> Callable[[Inputs, tf.Tensor], tf.Tensor]:
    """The generator's logits [B, M, V] at positions [B, M]."""
    head = model.masked_lm_head

    def of_encoder(inputs: Inputs, positions: tf.Tensor) -> tf.Tensor:
        encoded = model.generator(*inputs, None)
        vectors = gather_positions(encoded.sequence_output, positions)
        return head(vectors, model.generator.embeddings.word_embeddings)

    def of_towers(inputs: Inputs, positions: tf.Tensor) -> tf.Tensor:
        context, _, _ = model.generator(*inputs, None)
        vectors = gather_positions(context, positions)
        return head(vectors, model.generator.ltr.embeddings.word_embeddings)

    two_towers = model.kind is GeneratorKind.TWO_TOWER
    return of_towers if two_towers else of_encoder


def _without_repeats(variables: Any) -> list[tf.Variable]:
    """Both networks may hold the same embeddings."""
    return list({id(variable): variable for variable in variables}.values())
