# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a configuration to the model, the optimizer and the loop of a run."""

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from electra_tf.analysis.memory import pretraining_memory
from electra_tf.modeling.computation import Computation
from electra_tf.modeling.encoder import set_computation
from electra_tf.optimization.adam_weight_decay import AdamWeightDecay
from electra_tf.optimization.schedule import WarmupPolynomialDecay
from electra_tf.pretraining import report
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.training.loop import TrainLoop
from electra_tf.training.loss_scale import LossScale
from electra_tf.training.recomputation import recomputes, rows_of_a_machine


def build_model(config: Any) -> PretrainingModel:
    """Returns a freshly initialized model.

    Args:
      config: a `PretrainingConfig`.

    Returns:
      The model, with every variable made.
    """
    model = PretrainingModel(config)
    rows = rows_of_a_machine(config.train_batch_size)
    kept = pretraining_memory(config, rows)
    set_computation(model, Computation.of(config, recomputes(config, kept)))
    return model


def build_optimizer(config: Any, model: PretrainingModel) -> AdamWeightDecay:
    """Returns the optimizer of a model's variables.

    Args:
      config: a `PretrainingConfig`.
      model: what is trained.

    Returns:
      The optimizer, with zero slots.
    """
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
    """Returns the loop that updates a model, one batch a step.

    Args:
      config: a `PretrainingConfig`.
      model: what is trained.
      optimizer: of its variables.
      iterator: batches of features, `int32 [B, L]` each.
      step: int64 scalar, the global step.
      strategy: where the replicas are.
      loss_scale: of float16 training.
      should_stop: asked between steps.
    """
    return TrainLoop(
        compute=model.compute,
        variables=model.trainable_variables,
        optimizer=optimizer,
        iterator=iterator,
        step=step,
        seed=config.seed,
        strategy=strategy,
        step_values=report.step_values,
        should_stop=should_stop,
        parts=config.gradient_accumulation_steps,
        prepare=model.prepare_parts,
        jit_compile=config.jit_compile,
        loss_scale=loss_scale,
    )
