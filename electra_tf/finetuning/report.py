# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a fine-tuning run shows of itself: start page, rows, curves."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.metrics.trials import lower_is_better
from electra_tf.optimization.optimizer import LayerRate
from electra_tf.training import loop
from electra_tf.training import strategy as strategies
from electra_tf.training.loop import StepMetrics
from electra_tf.training.summaries import Console, Panel

TOKENS = "tokens"
EXAMPLES = "examples"


def step_values(
    features: dict[str, tf.Tensor], outputs: dict[str, Any], num_tasks: int
) -> dict[str, tf.Tensor]:
    """Scalars of a training step besides its loss."""
    del outputs
    real = features["task_id"] < num_tasks
    return {
        TOKENS: tf.reduce_sum(tf.cast(features["input_mask"], tf.float32)),
        EXAMPLES: tf.reduce_sum(tf.cast(real, tf.float32)),
    }


def log_row(interval: StepMetrics) -> dict[str, float]:
    """The row of an interval.

    `loss` is the mean over steps of the sum over a batch's examples, as the
    original prints it.
    """
    return {
        "loss": interval.mean("total_loss"),
        "loss_per_example": interval.sums["total_loss"]
        / max(interval.sums[EXAMPLES], 1.0),
        **loop.log_values(interval),
        "learning_rate": interval.last["learning_rate"],
    }


def shown_items(row: dict[str, Any]) -> dict[str, str]:
    """Items of the progress line, after the original's step, rate and times."""
    shown = {
        "loss": f"{row['loss']:.4f}",
        "per example": f"{row['loss_per_example']:.4f}",
        "grad norm": f"{row['grad_norm']:.2f}",
        "lr": f"{row['learning_rate']:.2e}",
        **loop.shown_items(row),
    }
    if row["tokens_per_second"] is not None:
        shown["tokens/s"] = f"{row['tokens_per_second']:,.0f}"
    return shown


def panels(figures: Sequence[str]) -> tuple[Panel, ...]:
    """The curves of a trial."""
    scores = [name for name in figures if not lower_is_better(name)]
    losses = [name for name in figures if name.endswith("loss")]
    return (
        # Apart from the dev loss: tagging's is one of words, doubled.
        Panel("Training loss per example", train="loss_per_example"),
        *(Panel(f"Dev {name}", evaluation=name) for name in losses[:1]),
        *(Panel(f"Dev {name}", evaluation=name) for name in scores[:6]),
        Panel("Gradient norm before clipping", "grad_norm", log_scale=True),
        Panel("Learning rate of the heads", "learning_rate"),
    )


def print_start(
    console: Console,
    config: FinetuningConfig,
    notes: Sequence[str],
    strategy: tf.distribute.Strategy,
) -> None:
    """Prints the configuration, the devices and what is probably not meant."""
    console.heading("Config:")
    console.table(config.as_dict())
    console.line()
    for text in notes:
        console.line(text)
    console.line(strategies.describe(strategy))
    for text in config.warnings():
        console.warning(text)


def print_model(console: Console, model: FinetuningModel) -> None:
    """Prints how many parameters there are, in the encoder and the heads."""

    def count(variables: Sequence[tf.Variable]) -> int:
        return sum(variable.shape.num_elements() for variable in variables)

    total, encoder = count(model.variables), count(model.encoder.variables)
    console.line(
        f"Model: {total:,} parameters in {len(model.variables)} variables,"
        f" {total - encoder:,} of them in the heads of"
        f" {', '.join(model.task_names)}"
    )


def print_rates(
    console: Console, config: FinetuningConfig, rates: Sequence[LayerRate]
) -> None:
    """Prints the learning rate of each layer."""
    decay = config.layerwise_lr_decay
    how = "no layer-wise decay"
    if decay > 0:
        how = f"layer-wise decay {decay:g}"
        if config.fix_layerwise_lr_decay:
            how += ", corrected depths"
        else:
            how += ", as in the original: the top layer is two levels below"
            how += " the heads (fix_layerwise_lr_decay makes it one)"
    console.line(f"Learning rates before warm-up and decay ({how}):")
    console.line("  part         depth  multiplier        rate  variables")
    for row in reversed(rates):
        rate = config.learning_rate * row.multiplier
        console.line(
            f"  {row.part:<11}  {row.depth:>5}  {row.multiplier:>10.6f}"
            f"  {rate:>10.4e}  {row.num_variables:>9}"
        )
    if config.freeze_layers:
        console.line(
            f"  frozen: the embeddings and the {config.freeze_layers} lowest"
            " layers"
        )
