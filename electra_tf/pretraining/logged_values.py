# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The values of a training step that logs show, and their names there."""

from collections.abc import Collection, Mapping

import tensorflow as tf

from electra_tf.pretraining.schedules import REWARDS
from electra_tf.training.loop import TOKENS

# Also the name of an argument of `PretrainingModel.compute`.
UNIGRAM_SHARE = "unigram_share"
REPLACED_TOKENS = "replaced_tokens"
_LOSSES = ("mlm_loss", "cloze_loss", "disc_loss", "token_loss", "policy_loss")


def step_values(
    features: Mapping[str, tf.Tensor], outputs: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """Return the scalars of a training step besides its total loss.

    Args:
      features: int32 [B, L], with `input_mask`.
      outputs: those of `PretrainingModel.compute`.
    """
    names = (*_LOSSES, *REWARDS)
    values = {name: outputs[name] for name in names if name in outputs}
    mask = features["input_mask"]
    values[TOKENS] = tf.cast(tf.reduce_sum(mask), tf.float32)
    if "fake_is_fake_tokens" in outputs:
        replaced = tf.reduce_sum(outputs["fake_is_fake_tokens"] * mask)
        values[REPLACED_TOKENS] = tf.cast(replaced, tf.float32)
    return values


def logged_losses(values: Collection[str]) -> dict[str, str]:
    """Return the losses among a step's values, by their names in the logs.

    `gen_loss` is the loss that trains the generator: the cloze loss of two
    towers, that of policy gradients if adversarial, else the masked-LM loss.

    Args:
      values: the names of a step's values.
    """
    names = {"loss": "total_loss", "gen_loss": "mlm_loss"}
    if "cloze_loss" in values:
        names |= {"gen_loss": "cloze_loss", "mlm_loss": "mlm_loss"}
    if "policy_loss" in values:
        names |= {"gen_loss": "policy_loss", "mlm_loss": "mlm_loss"}
        names |= {name: name for name in REWARDS}
    for name in ("disc_loss", "token_loss"):
        if name in values:
            names[name] = name
    return names
