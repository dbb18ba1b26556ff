# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a pre-training run shows of itself: rows, lines, curves, start page."""

import os
from typing import Any

import tensorflow as tf
import tf_keras

from configure.pretraining import PretrainingConfig
from electra_tf.data.manifest import load_manifest
from electra_tf.training import loss_scale
from electra_tf.training import strategy as strategies
from electra_tf.training.curves import Panel
from electra_tf.training.interval import Interval
from electra_tf.training.progress import Console

TOKENS = "tokens"
LOSSES = ("mlm_loss", "cloze_loss", "disc_loss")

PANELS = (
    Panel(
        "Generator loss (nats per masked token)",
        train="gen_loss",
        evaluation="masked_lm_loss",
    ),
    Panel(
        "Generator accuracy at [MASK]",
        evaluation="masked_lm_accuracy_at_mask",
        baselines=(
            ("masked_lm_most_frequent_accuracy", "most frequent token"),
        ),
    ),
    Panel(
        "Discriminator loss (nats per token)",
        train="disc_loss",
        evaluation="disc_loss",
    ),
    Panel(
        "Discriminator AUC, real tokens",
        evaluation="disc_auc_real_tokens",
        baselines=(("disc_auc_frequency_rank", "rarity of the token"),),
        chance=0.5,
    ),
    Panel(
        "Replaced tokens (share)",
        train="replaced_share",
        evaluation="replaced_share",
    ),
    Panel("Gradient norm before clipping", train="grad_norm", log_scale=True),
    Panel("Learning rate", train="learning_rate"),
    Panel("Real tokens per second", train="tokens_per_second"),
)


def step_values(
    features: dict[str, tf.Tensor], outputs: dict[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """Scalars of a training step besides its total loss.

    Args:
      features: int32 [B, L] tensors of one replica.
      outputs: of `PretrainingModel.compute`.

    Returns:
      Scalars that add up over replicas: losses (their denominators are global)
      and counts.
    """
    values = {name: outputs[name] for name in LOSSES if name in outputs}
    mask = features["input_mask"]
    values[TOKENS] = tf.cast(tf.reduce_sum(mask), tf.float32)
    if "fake_is_fake_tokens" in outputs:
        replaced = tf.reduce_sum(outputs["fake_is_fake_tokens"] * mask)
        values["replaced_tokens"] = tf.cast(replaced, tf.float32)
    return values


def log_row(interval: Interval) -> dict[str, float]:
    """The row of an interval: means of losses, share, norm, last rate.

    `gen_loss` is the loss that the generator is trained with: the cloze loss
    for a two-tower generator, else the masked-LM loss.
    """
    row = {"loss": interval.mean("total_loss")}
    trained_with = "cloze_loss" if "cloze_loss" in interval.sums else "mlm_loss"
    row["gen_loss"] = interval.mean(trained_with)
    if trained_with == "cloze_loss":
        row["mlm_loss"] = interval.mean("mlm_loss")
    if "disc_loss" in interval.sums:
        row["disc_loss"] = interval.mean("disc_loss")
        row["replaced_share"] = (
            interval.sums["replaced_tokens"] / interval.sums[TOKENS]
        )
    row |= loss_scale.log_values(interval)
    row["learning_rate"] = interval.last["learning_rate"]
    return row


def shown_items(row: dict[str, Any]) -> dict[str, str]:
    """Items of the progress line, after the original's step, rate and times."""
    shown = {"loss": f"{row['loss']:.4f}", "gen": f"{row['gen_loss']:.4f}"}
    if "disc_loss" in row:
        shown["disc"] = f"{row['disc_loss']:.4f}"
        shown["replaced"] = f"{100 * row['replaced_share']:.1f}%"
    shown["grad norm"] = f"{row['grad_norm']:.2f}"
    shown["lr"] = f"{row['learning_rate']:.2e}"
    shown |= loss_scale.shown_items(row)
    if row["tokens_per_second"] is not None:
        shown["tokens/s"] = f"{row['tokens_per_second']:,.0f}"
    return shown


def print_start(
    console: Console,
    config: PretrainingConfig,
    strategy: tf.distribute.Strategy,
) -> None:
    """Prints the configuration, the devices and what is probably not meant."""
    console.heading("Config:")
    console.table(config.as_dict())
    console.line()
    console.line(strategies.describe(strategy))
    for text in config.warnings():
        console.warning(text)


def print_model(console: Console, model: tf_keras.Model) -> None:
    """Prints how many parameters there are."""
    count = sum(variable.shape.num_elements() for variable in model.variables)
    console.line(
        f"Model: {count:,} parameters in {len(model.variables)} variables"
    )


def print_epochs(console: Console, config: PretrainingConfig) -> None:
    """Prints how often the run sees each example, if a manifest tells."""
    counted = config.num_train_steps * config.train_batch_size
    examples = _num_examples(config)
    text = (
        f"Training: {config.num_train_steps:,} steps of"
        f" {config.train_batch_size} examples = {counted:,} examples"
    )
    if examples:
        text += f", {counted / examples:.1f} epochs of {examples:,}"
    console.line(text)


def evaluation_summary(metrics: dict[str, float]) -> list[str]:
    """One short paragraph of an evaluation: numbers beside their baselines."""

    def beside(name: str, baseline: str, says: str) -> str | None:
        if name not in metrics:
            return None
        text = f"{name} {metrics[name]:.4f}"
        if baseline in metrics:
            text += f" ({says}: {metrics[baseline]:.4f})"
        return text

    return [
        text
        for text in (
            beside(
                "masked_lm_accuracy_at_mask",
                "masked_lm_most_frequent_accuracy",
                "always the most frequent token",
            ),
            beside(
                "disc_auc_real_tokens",
                "disc_auc_frequency_rank",
                "ranked by rarity",
            ),
        )
        if text
    ]


def _num_examples(config: PretrainingConfig) -> int | None:
    found: set[str] = {
        os.path.dirname(pattern)
        for pattern in config.pretrain_tfrecords.split(",")
    }
    total = 0
    for directory in found:
        manifest = load_manifest(directory)
        if manifest is None or "examples" not in manifest["counts"]:
            return None
        total += int(manifest["counts"]["examples"])
    return total
