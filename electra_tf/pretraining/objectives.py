# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Objectives: losses of the second network on the corrupted inputs.

`electra` detects replacements at all tokens. These objectives are steps from
BERT to `electra`:

  * `electra_15`: the same loss, but only at the chosen positions. A position
    that was drawn more than once counts once, because it has one label.
  * `replace_mlm`: BERT's loss at the chosen positions, with the generator's
    samples instead of [MASK]. As in the generator's loss, a position that was
    drawn twice counts twice.
  * `correction_weight`: `electra` or `electra_15` plus the loss of
    `replace_mlm`, from a second head on the same vectors.
  * `all_tokens_mlm`: at all real tokens, p(y) = D [y = input] + (1 - D)
    softmax(y), with the loss -log p(original). D is the sigmoid of minus the
    discriminator head's logit, which thus remains a logit of "replaced"; the
    head has no separate loss.

`electric` detects samples (noise) at all tokens, with the generator's
log-probability as an offset of the logit.

Source: ELECTRA paper section 3.5, Efficiency Analysis; for `correction_weight`
COCO-LM (Meng et al., NeurIPS 2021), section 3.2, corrective language modeling.
Differs: COCO-LM predicts all tokens with a copy mechanism; this project
predicts the chosen positions with a plain softmax.
"""

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypedDict

import tensorflow as tf

from configure.objectives import Objective as ObjectiveFacts
from configure.objectives import Positions
from electra_tf.modeling.seeds import SeedStream
from electra_tf.pretraining import losses, masking
from electra_tf.pretraining.networks import Features, Networks

Tensors = Mapping[str, tf.Tensor]


class SecondNetworkOutputs(TypedDict, total=False):
    """Outputs of the second network.

    `disc_*` belong to the discriminator's head, and `token_*` to the token
    head, whose axis is N for the chosen positions and L for all positions.
    """

    sampled_tokids: tf.Tensor  # int32 [B, N]
    fake_input_ids: tf.Tensor  # int32 [B, L], corrupted inputs
    fake_is_fake_tokens: tf.Tensor  # int32 [B, L], 1: replaced
    discriminator_layers: tf.Tensor  # [layers, B, L, H]
    disc_logits: tf.Tensor  # float32 [B, L], with Electric's offset
    disc_probs: tf.Tensor  # float32 [B, L]
    disc_preds: tf.Tensor  # int32 [B, L]
    disc_loss: tf.Tensor  # float32 scalar, nats per token
    disc_per_example_loss: tf.Tensor  # float32 [B], nats per token
    disc_weights: tf.Tensor  # int32 [B, L]; absent if all real tokens count
    token_logits: tf.Tensor  # float32 [B, N or L, V]
    token_preds: tf.Tensor  # int32 [B, N or L]
    token_targets: tf.Tensor  # int32 [B, N or L]
    token_inputs: tf.Tensor  # int32 [B, N or L], corrupted inputs
    token_weights: tf.Tensor  # float32 [B, N or L]
    token_per_token_loss: tf.Tensor  # float32 [B, N or L], nats
    token_loss: tf.Tensor  # float32 scalar, nats per token


class _Encoded(NamedTuple):
    """Corrupted inputs, and the second network's vectors for them."""

    original_ids: tf.Tensor  # int32 [B, L]
    input_ids: tf.Tensor  # int32 [B, L], after replacement
    is_fake_tokens: tf.Tensor  # int32 [B, L], 1: replaced
    vectors: tf.Tensor  # float32 [B, L, H]
    generated: Tensors  # masked inputs and the generator's outputs


def _real_tokens(features: Tensors, masked: Tensors) -> tf.Tensor:
    """Return the weights of a loss over all real tokens, int32 [B, L]."""
    return features["input_mask"]


def _chosen_tokens(features: Tensors, masked: Tensors) -> tf.Tensor:
    """Return the weights of a loss over all chosen positions, int32 [B, L].

    A position that was drawn twice counts once.
    """
    used = tf.cast(masked["masked_lm_weights"], tf.int32)
    positions = masked["masked_lm_positions"] * used
    _, chosen = masking.scatter_update(features["input_mask"], used, positions)
    return chosen


def _chosen_slots(features: Tensors, masked: Tensors) -> tf.Tensor:
    """Return the weights of a loss over all used slots, float32 [B, N]."""
    return masked["masked_lm_weights"]


def _predict_chosen_tokens(
    networks: Networks, encoded: _Encoded, disc_logits: tf.Tensor
) -> SecondNetworkOutputs:
    """Predict the original tokens at the chosen positions, [B, N]."""
    positions = encoded.generated["masked_lm_positions"]
    vectors = tf.gather(encoded.vectors, positions, batch_dims=1)
    logits = networks.token_logits(vectors)
    targets = encoded.generated["masked_lm_ids"]
    return {
        "token_logits": logits,
        "token_preds": tf.argmax(logits, -1, output_type=tf.int32),
        "token_targets": targets,
        "token_per_token_loss": losses.softmax_cross_entropy(logits, targets),
        "token_inputs": tf.gather(encoded.input_ids, positions, batch_dims=1),
    }


def _predict_all_tokens(
    networks: Networks, encoded: _Encoded, disc_logits: tf.Tensor
) -> SecondNetworkOutputs:
    """Predict all original tokens, [B, L], with a copy mechanism."""
    shown = encoded.input_ids
    logits = networks.token_logits(encoded.vectors)
    copied = functools.partial(losses.copy_losses, -disc_logits, logits, shown)
    # With the copy mechanism, the most likely token is either the input token
    # or the most likely token of the softmax.
    best = tf.argmax(logits, -1, output_type=tf.int32)
    copies = copied(shown) <= copied(best)
    return {
        "token_logits": logits,
        "token_targets": encoded.original_ids,
        "token_preds": tf.where(copies, shown, best),
        "token_per_token_loss": copied(encoded.original_ids),
        "token_inputs": shown,
    }


_Weigh = Callable[[Tensors, Tensors], tf.Tensor]
_Predict = Callable[[Networks, _Encoded, tf.Tensor], SecondNetworkOutputs]
# Functions that return the weights of the discriminator's loss, by the
# positions that have a loss.
_DETECTION_WEIGHTS: dict[Positions, _Weigh] = {
    Positions.ALL: _real_tokens,
    Positions.CHOSEN: _chosen_tokens,
}
# Functions that return the weights of the token head's loss and the head's
# outputs, by the positions at which the head predicts.
_PREDICTIONS: dict[Positions, tuple[_Weigh, _Predict]] = {
    Positions.ALL: (_real_tokens, _predict_all_tokens),
    Positions.CHOSEN: (_chosen_slots, _predict_chosen_tokens),
}


class Objective:
    """Losses of a second network, chosen by the hparams.

    `configure.objectives` describes each objective, and `electra_tf.plan.flops`
    counts the operations of its heads.
    """

    def __init__(
        self,
        facts: ObjectiveFacts,
        token_positions: Positions,
        mask_prob: float,
        disc_weight: float,
        correction_weight: float,
    ) -> None:
        """Choose the losses.

        Args:
          facts: description of the objective.
          token_positions: positions at which the second network predicts
            original tokens.
          mask_prob: fraction of masked tokens.
          disc_weight: weight of the second network's loss.
          correction_weight: weight of the loss of a discriminator's predicted
            tokens; 0: no such loss.
        """
        self._mask_prob = mask_prob
        self._is_electric = facts.switches["electric_objective"]
        self._has_discriminator_head = facts.has_discriminator_head
        self._logs_weights = facts.detects is Positions.CHOSEN
        self._weigh: dict[str, _Weigh] = {}
        self._loss_factors: dict[str, float] = {}
        if facts.detects is not Positions.NONE:
            self._weigh["disc"] = _DETECTION_WEIGHTS[facts.detects]
            self._loss_factors["disc"] = disc_weight
        self._predict: _Predict | None = None
        if token_positions is not Positions.NONE:
            weigh, predict = _PREDICTIONS[token_positions]
            self._weigh["token"], self._predict = weigh, predict
            self._loss_factors["token"] = correction_weight or disc_weight

    def loss_weights(
        self, features: Tensors, masked: Tensors
    ) -> dict[str, tf.Tensor]:
        """Return the weights of the losses, 1 at the positions that count.

        Args:
          features: int32 [B, L], inputs of the model.
          masked: result of `masking.mask_inputs`.

        Returns:
          `disc` [B, L] and `token` [B, N or L], if the objective has them.
        """
        return {
            name: weigh(features, masked) for name, weigh in self._weigh.items()
        }

    def outputs(
        self,
        networks: Networks,
        features: Features,
        generated: Tensors,
        sampled_token_ids: tf.Tensor,
        dropout: SeedStream | None,
        totals: Tensors,
    ) -> SecondNetworkOutputs:
        """Run the second network on the corrupted inputs.

        Args:
          networks: networks of the model.
          features: int32 [B, L], inputs of the model.
          generated: masked inputs and the generator's outputs.
          sampled_token_ids: int32 [B, N].
          dropout: seeds of all networks' dropout; None: no dropout.
          totals: sums of the loss weights over the whole batch, by name; empty:
            these rows are the whole batch.
        """
        encoded, outputs = self._encode(
            networks, features, generated, sampled_token_ids, dropout
        )
        weights = self.loss_weights(features, generated)
        logits: tf.Tensor = None
        if self._has_discriminator_head:
            logits = self._discriminator_logits(networks, encoded)
            outputs["disc_logits"] = logits
            outputs["disc_probs"] = tf.sigmoid(logits)
            outputs["disc_preds"] = tf.cast(logits > 0.0, tf.int32)
        if "disc" in weights:
            outputs["disc_loss"], outputs["disc_per_example_loss"] = (
                losses.replaced_token_losses(
                    logits,
                    encoded.is_fake_tokens,
                    weights["disc"],
                    totals.get("disc"),
                )
            )
            if self._logs_weights:
                outputs["disc_weights"] = weights["disc"]
        if self._predict is not None:
            outputs |= self._predict(networks, encoded, logits)
            token_weights = tf.cast(weights["token"], tf.float32)
            outputs["token_weights"] = token_weights
            outputs["token_loss"] = losses.weighted_mean(
                outputs["token_per_token_loss"],
                token_weights,
                totals.get("token"),
            )
        return outputs

    def weighted_losses(self, outputs: Tensors) -> list[tf.Tensor]:
        """Return the second network's terms of the total loss, scalars.

        Args:
          outputs: result of `outputs`.
        """
        return [
            factor * outputs[f"{name}_loss"]
            for name, factor in self._loss_factors.items()
        ]

    def _encode(
        self,
        networks: Networks,
        features: Features,
        generated: Tensors,
        sampled_token_ids: tf.Tensor,
        dropout: SeedStream | None,
    ) -> tuple[_Encoded, SecondNetworkOutputs]:
        """Corrupt the inputs, and run the second network's encoder."""
        positions = generated["masked_lm_positions"]
        original_ids, _ = masking.scatter_update(
            generated["masked_input_ids"], generated["masked_lm_ids"], positions
        )
        corrupted = masking.corrupt_inputs(
            original_ids,
            sampled_token_ids,
            positions,
            sampled_is_fake=self._is_electric,
        )
        encoder_output = networks.encode_second(
            corrupted.input_ids, features, dropout
        )
        encoded = _Encoded(
            original_ids=original_ids,
            input_ids=corrupted.input_ids,
            is_fake_tokens=corrupted.is_fake_tokens,
            vectors=encoder_output.sequence_output,
            generated=generated,
        )
        outputs = SecondNetworkOutputs(
            sampled_tokids=sampled_token_ids,
            fake_input_ids=corrupted.input_ids,
            fake_is_fake_tokens=corrupted.is_fake_tokens,
            discriminator_layers=encoder_output.all_layers,
        )
        return encoded, outputs

    def _discriminator_logits(
        self, networks: Networks, encoded: _Encoded
    ) -> tf.Tensor:
        """Return the logits of "replaced", float32 [B, L]."""
        logits = networks.discriminator_head(encoded.vectors)
        if self._is_electric:
            logits += losses.electric_correction(
                encoded.generated["cloze_logits"],
                encoded.input_ids,
                self._mask_prob,
            )
        return logits
