# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a configuration to the model and the optimizer of a run."""

from typing import Any

from electra_tf.modeling.computation import Computation
from electra_tf.modeling.encoder import set_computation
from electra_tf.optimization.adam_weight_decay import AdamWeightDecay
from electra_tf.optimization.schedule import WarmupPolynomialDecay
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.training.loss_scale import LossScale


def build_model(config: Any) -> PretrainingModel:
    """Returns a freshly initialized model.

    Args:
      config: a `PretrainingConfig`.

    Returns:
      The model, with every variable made.
    """
    model = PretrainingModel(config)
    set_computation(model, Computation.of(config))
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


def build_loss_scale(config: Any) -> LossScale | None:
    """Returns the scaling of the loss that float16 needs, else None.

    Args:
      config: the resolved hparams.
    """
    return LossScale() if config.mixed_precision == "fp16" else None
