# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the second network learns from the corrupted inputs.

`electra` detects replacements at every token. The steps from BERT to it:

  * `electra_15`: the same loss at the chosen positions alone. A position that
    was drawn more than once counts once: it has one label.
  * `replace_mlm`: BERT's loss at those positions; the generator's samples are
    in the place of [MASK]. A slot counts as in the generator's loss: a
    position that was drawn twice counts twice.
  * `all_tokens_mlm`: at every real token, p(y) = D [y = input] + (1 - D)
    softmax(y), and the loss -log p(original). D is the sigmoid of minus the
    discriminator head's logit, which so stays a logit of "replaced"; it has no
    loss of its own.

Source: ELECTRA paper section 3.5, Efficiency Analysis.
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
    if config.objective == "electra_15":
        used = tf.cast(masked["masked_lm_weights"], tf.int32)
        positions = masked["masked_lm_positions"] * used
        _, chosen = masking.scatter_update(real, used, positions)
        return {"disc": chosen}
    return {"disc": real}


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
    else:
        shown, targets, copied = corrupted.input_ids, original_ids, None
        if config.objective == "replace_mlm":
            vectors = tf.gather(vectors, positions, batch_dims=1)
            shown = tf.gather(shown, positions, batch_dims=1)
            targets = generated["masked_lm_ids"]
        expected = model.token_logits(vectors)
        if config.objective == "all_tokens_mlm":
            copied = functools.partial(
                losses.copy_losses, -logits, expected, shown
            )
        learned = tf.cast(weights["token"], tf.float32)
        outputs |= softmax_outputs(
            *("token", expected, targets, learned, totals),
            per_token=copied and copied(targets),
        )
        if copied:
            # Of all tokens but the input, the softmax's best is likeliest.
            best = outputs["token_preds"]
            kept = copied(shown) <= copied(best)
            outputs["token_preds"] = tf.where(kept, shown, best)
        outputs |= {"token_targets": targets, "token_inputs": shown}
        outputs["token_weights"] = learned
    return outputs | {"discriminator_layers": encoded.all_layers}


def softmax_outputs(
    prefix: str,
    logits: tf.Tensor,
    targets: tf.Tensor,
    weights: tf.Tensor,
    totals: Tensors,
    per_token: tf.Tensor | None = None,
) -> dict[str, tf.Tensor]:
    """Losses (`per_token`, or the softmax's) and predictions, by prefix."""
    if per_token is None:
        per_token = losses.softmax_cross_entropy(logits, targets)
    return {
        f"{prefix}_logits": logits,
        f"{prefix}_per_token_loss": per_token,
        f"{prefix}_loss": losses.weighted_mean(
            per_token, weights, totals.get(prefix)
        ),
        f"{prefix}_preds": tf.argmax(logits, -1, output_type=tf.int32),
    }
