# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values of training steps, and log rows with the means of the values."""

from collections.abc import Collection, Mapping

import tensorflow as tf

from electra_tf.pretraining.adversarial import REWARDS
from electra_tf.training.console import ShownValue
from electra_tf.training.loop import TOKENS, StepMetrics

# Name of a logged value and of an argument of `PretrainingModel.compute`.
UNIGRAM_SHARE = "unigram_share"
REPLACED_TOKENS = "replaced_tokens"
_LOSSES = ("mlm_loss", "cloze_loss", "disc_loss", "token_loss", "policy_loss")
# Gradient norms by which clip_networks_apart clips the two networks.
_NORMS = ("generator_grad_norm", "discriminator_grad_norm")
# Values of a log row that the progress line shows.
SHOWN_VALUES = (
    ShownValue("loss", "loss"),
    ShownValue("gen_loss", "gen"),
    ShownValue("stage", "stage", "{:.4g}"),
    ShownValue("reward", "reward", "{:.4g}"),
    ShownValue("baseline", "baseline", "{:.4g}"),
    ShownValue("disc_loss", "disc"),
    ShownValue("token_loss", "token"),
    ShownValue("replaced_share", "replaced", "{:.1%}"),
    ShownValue(UNIGRAM_SHARE, "by counts", "{:.1%}"),
)


def step_values(
    features: Mapping[str, tf.Tensor], outputs: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """Return the scalars of a training step, except the total loss.

    Args:
      features: int32 [B, L], with `input_mask`.
      outputs: outputs of `PretrainingModel.compute`.
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
    """Map names in the logs to the names of a step's losses and rewards.

    `gen_loss` is the loss that trains the generator: the cloze loss of two
    towers, the policy-gradient loss of adversarial training, or the masked-LM
    loss.

    Args:
      values: names of a step's values.
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


def log_row(interval: StepMetrics, stage: int | None) -> dict[str, float]:
    """Return the first values of a row of the training log.

    The values are the stage, the means of the losses, the share of replaced
    tokens, the share of replacements drawn by token counts, and the networks'
    gradient norms.

    Args:
      interval: sums of the step values since the last row.
      stage: stage of the training schedule.
    """
    row: dict[str, float] = {"stage": stage} if stage else {}
    for name, value_name in logged_losses(interval.sums).items():
        row[name] = interval.mean(value_name)
    if REPLACED_TOKENS in interval.sums:
        replaced = interval.sums[REPLACED_TOKENS]
        row["replaced_share"] = replaced / interval.sums[TOKENS]
    if UNIGRAM_SHARE in interval.last:
        row[UNIGRAM_SHARE] = interval.last[UNIGRAM_SHARE]
    for name in _NORMS:
        if name in interval.sums:
            row[name] = interval.update_mean(name)
    return row
