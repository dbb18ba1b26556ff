# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the second network learns from the corrupted inputs.

`electra` detects replacements at every token. The steps from BERT to it:

  * `electra_15`: the same loss at the chosen positions alone. A position that
    was drawn more than once counts once: it has one label.
  * `replace_mlm`: BERT's loss at those positions; the generator's samples are
    in the place of [MASK]. A slot counts as in the generator's loss: a
    position that was drawn twice counts twice.
  * `correction_weight`: `electra` and `electra_15` with the loss of
    `replace_mlm` next to their own, by a head on the same vectors.
  * `all_tokens_mlm`: at every real token, p(y) = D [y = input] + (1 - D)
    softmax(y), and the loss -log p(original). D is the sigmoid of minus the
    discriminator head's logit, which so stays a logit of "replaced"; it has no
    loss of its own.

Source: ELECTRA paper section 3.5, Efficiency Analysis; for `correction_weight`
COCO-LM (Meng et al., NeurIPS 2021), section 3.2, corrective language modeling.
Differs: COCO-LM predicts all tokens, with a copy mechanism; here the chosen
positions are predicted, by a plain softmax.
"""

import functools
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from electra_tf.modeling.layers import SeedStream
from electra_tf.pretraining import losses, masking

Tensors = Mapping[str, tf.Tensor]


def loss_weights(config: Any, features: Tensors, masked: Tensors) -> Tensors:
    """Where its losses are taken: `disc` [B, L]; `token` [B, N] or [B, L]."""
    real = features["input_mask"]
    if config.objective == "replace_mlm":
        return {"token": masked["masked_lm_weights"]}
    if config.objective == "all_tokens_mlm":
        return {"token": real}
    weights = {"disc": real}
    if config.objective == "electra_15":
        used = tf.cast(masked["masked_lm_weights"], tf.int32)
        positions = masked["masked_lm_positions"] * used
        _, chosen = masking.scatter_update(real, used, positions)
        weights["disc"] = chosen
    if config.corrects:
        weights["token"] = masked["masked_lm_weights"]
    return weights


def learn_from_replacements(
    model: Any,
    features: Tensors,
    generated: Tensors,
    sampled_token_ids: tf.Tensor,
    dropout: SeedStream | None,
    totals: Tensors,
) -> dict[str, tf.Tensor]:
    """Runs the second network; see `PretrainingModel.compute`.

    `generated` are the masked inputs (for Electric `cloze_logits`, too). Losses
    are divided by `totals`, or where these are empty by this batch's weights.
    """
    config = model.config
    positions = generated["masked_lm_positions"]
    original_ids, _ = masking.scatter_update(
        generated["masked_input_ids"], generated["masked_lm_ids"], positions
    )
    corrupted = masking.corrupt_inputs(
        original_ids,
        sampled_token_ids,
        positions,
        sampled_is_fake=config.electric_objective,
    )
    encoded = model.discriminator(
        corrupted.input_ids,
        features["input_mask"],
        features["segment_ids"],
        dropout.child("discriminator") if dropout else None,
    )
    outputs = {
        "sampled_tokids": sampled_token_ids,
        "fake_input_ids": corrupted.input_ids,
        "fake_is_fake_tokens": corrupted.is_fake_tokens,
    }
    weights = loss_weights(config, features, generated)
    vectors = encoded.sequence_output
    if config.has_discriminator_head:
        logits = model.discriminator_head(vectors)
        if config.electric_objective:
            logits += losses.electric_correction(
                generated["cloze_logits"], corrupted.input_ids, config.mask_prob
            )
        outputs["disc_logits"] = logits
        outputs["disc_probs"] = tf.sigmoid(logits)
        outputs["disc_preds"] = tf.cast(logits > 0.0, tf.int32)
    if config.has_discriminator:
        outputs["disc_loss"], outputs["disc_per_example_loss"] = (
            losses.replaced_token_losses(
                logits,
                corrupted.is_fake_tokens,
                weights["disc"],
                totals.get("disc"),
            )
        )
        if config.objective == "electra_15":
            outputs["disc_weights"] = weights["disc"]
    if config.objective == "all_tokens_mlm":
        outputs |= _predict_all_tokens(
            model, vectors, corrupted.input_ids, original_ids, logits
        )
    elif config.corrects or config.objective == "replace_mlm":
        outputs |= _predict_chosen_tokens(
            model, vectors, corrupted.input_ids, generated
        )
    if "token_per_token_loss" in outputs:
        learned = tf.cast(weights["token"], tf.float32)
        outputs["token_weights"] = learned
        outputs["token_loss"] = losses.weighted_mean(
            outputs["token_per_token_loss"], learned, totals.get("token")
        )
    return outputs | {"discriminator_layers": encoded.all_layers}


def _predict_chosen_tokens(
    model: Any, vectors: tf.Tensor, shown: tf.Tensor, generated: Tensors
) -> dict[str, tf.Tensor]:
    """Predicts the original tokens at the chosen positions, [B, N].

    `vectors` [B, L, H] of the corrupted tokens `shown` [B, L].
    """
    positions = generated["masked_lm_positions"]
    vectors = tf.gather(vectors, positions, batch_dims=1)
    expected = model.token_logits(vectors)
    targets = generated["masked_lm_ids"]
    return {
        **_token_outputs(expected, targets),
        "token_per_token_loss": losses.softmax_cross_entropy(expected, targets),
        "token_inputs": tf.gather(shown, positions, batch_dims=1),
    }


def _predict_all_tokens(
    model: Any,
    vectors: tf.Tensor,
    shown: tf.Tensor,
    targets: tf.Tensor,
    logits: tf.Tensor,
) -> dict[str, tf.Tensor]:
    """Predicts every original token, [B, L], with a copy mechanism.

    `logits` [B, L] are the discriminator head's, of "replaced".
    """
    expected = model.token_logits(vectors)
    copied = functools.partial(losses.copy_losses, -logits, expected, shown)
    outputs = _token_outputs(expected, targets)
    # Of all tokens but the input, the softmax's best is likeliest.
    best = outputs["token_preds"]
    kept = copied(shown) <= copied(best)
    return {
        **outputs,
        "token_preds": tf.where(kept, shown, best),
        "token_per_token_loss": copied(targets),
        "token_inputs": shown,
    }


def _token_outputs(
    expected: tf.Tensor, targets: tf.Tensor
) -> dict[str, tf.Tensor]:
    return {
        "token_logits": expected,
        "token_preds": tf.argmax(expected, -1, output_type=tf.int32),
        "token_targets": targets,
    }


def softmax_outputs(
    prefix: str,
    logits: tf.Tensor,
    targets: tf.Tensor,
    weights: tf.Tensor,
    totals: Tensors,
) -> dict[str, tf.Tensor]:
    """Returns the softmax's losses and predictions, by prefix."""
    per_token = losses.softmax_cross_entropy(logits, targets)
    return {
        f"{prefix}_logits": logits,
        f"{prefix}_per_token_loss": per_token,
        f"{prefix}_loss": losses.weighted_mean(
            per_token, weights, totals.get(prefix)
        ),
        f"{prefix}_preds": tf.argmax(logits, -1, output_type=tf.int32),
    }
