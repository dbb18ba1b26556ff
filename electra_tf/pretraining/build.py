# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a configuration to the model, the optimizer and the loop of a run."""

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from electra_tf.modeling.transformer import ComputePolicy, set_compute_policy
from electra_tf.optimization.optimizer import (
    AdamWeightDecay,
    WarmupPolynomialDecay,
)
from electra_tf.plan.memory import pretraining_memory
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.training.loop import TOKENS, LossScale, TrainLoop
from electra_tf.training.remat import rows_of_a_machine, uses_remat

LOSSES = ("mlm_loss", "cloze_loss", "disc_loss")


def step_values(
    features: dict[str, tf.Tensor], outputs: dict[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """Scalars of a training step besides its total loss."""
    values = {name: outputs[name] for name in LOSSES if name in outputs}
    mask = features["input_mask"]
    values[TOKENS] = tf.cast(tf.reduce_sum(mask), tf.float32)
    if "fake_is_fake_tokens" in outputs:
        replaced = tf.reduce_sum(outputs["fake_is_fake_tokens"] * mask)
        values["replaced_tokens"] = tf.cast(replaced, tf.float32)
    return values


def build_model(config: Any) -> PretrainingModel:
    """Returns a freshly initialized model."""
    model = PretrainingModel(config)
    rows = rows_of_a_machine(config.train_batch_size)
    kept = pretraining_memory(config, rows)
    set_compute_policy(
        model, ComputePolicy.of(config, uses_remat(config, kept))
    )
    return model


def build_optimizer(config: Any, model: PretrainingModel) -> AdamWeightDecay:
    """Returns the optimizer of a model's variables."""
    schedule = WarmupPolynomialDecay(
        config.learning_rate,
        config.num_train_steps,
        config.num_warmup_steps,
        config.lr_decay_power,
        config.lr_read_order,
    )
    return AdamWeightDecay(
        model.trainable_variables,
        schedule,
        config.weight_decay_rate,
        bias_correction=config.adam_bias_correction,
    )


def build_train_loop(
    config: Any,
    model: PretrainingModel,
    optimizer: AdamWeightDecay,
    iterator: Iterator[Any],
    step: tf.Variable,
    strategy: tf.distribute.Strategy,
    loss_scale: LossScale | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> TrainLoop:
    """Returns the loop that updates a model, one batch a step."""
    return TrainLoop(
        compute=model.compute,
        variables=model.trainable_variables,
        optimizer=optimizer,
        iterator=iterator,
        step=step,
        seed=config.seed,
        strategy=strategy,
        step_values=step_values,
        should_stop=should_stop,
        micro_batches=config.gradient_accumulation_steps,
        prepare=model.prepare_micro_batches,
        jit_compile=config.jit_compile,
        loss_scale=loss_scale,
    )
