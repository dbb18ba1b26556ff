# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a configuration and starting weights to model and optimizer."""

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints.restore import Coverage, assign
from electra_tf.checkpoints.weights import Weights
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.task import Task
from electra_tf.modeling.transformer import ComputePolicy, set_compute_policy
from electra_tf.optimization.optimizer import (
    AdamWeightDecay,
    LayerRate,
    WarmupPolynomialDecay,
    layer_multipliers,
    rate_table,
    variable_name,
)
from electra_tf.plan.memory import finetuning_memory
from electra_tf.training.remat import rows_of_a_machine, uses_remat

# Variables that the starting weights may lack.
HEADS = "^task_specific/"


def build_model(
    config: FinetuningConfig, tasks: Sequence[Task]
) -> FinetuningModel:
    """Returns a freshly initialized model."""
    model = FinetuningModel(config, tasks)
    sizes = model.encoder_config
    trained = max(0, sizes.num_hidden_layers - config.freeze_layers)
    kept = finetuning_memory(
        config,
        dataclasses.replace(sizes, num_hidden_layers=trained),
        sum(v.shape.num_elements() for v in model.variables),
        rows_of_a_machine(config.train_batch_size),
    )
    set_compute_policy(
        model, ComputePolicy.of(config, uses_remat(config, kept))
    )
    return model


def load_weights(
    config: FinetuningConfig, weights: Weights, model: FinetuningModel
) -> Coverage:
    """Gives a model the starting weights; heads that lack there stay fresh."""
    allowed = HEADS
    if config.allow_missing:
        allowed = f"(?:{HEADS})|(?:{config.allow_missing})"
    return assign(weights, model.variables, allow_missing=allowed)


def trained_variables(
    config: FinetuningConfig, model: FinetuningModel
) -> list[tf.Variable]:
    """Returns the variables that training changes."""
    frozen = config.freeze_layers
    if not frozen:
        return list(model.trainable_variables)
    layers = model.encoder_config.num_hidden_layers
    if frozen > layers:
        raise UserError(
            f"freeze_layers is {frozen} but the model has {layers} layers."
        )
    prefixes = ["electra/embeddings/", "electra/embeddings_project/"]
    prefixes += [f"electra/encoder/layer_{i}/" for i in range(frozen)]
    return [
        variable
        for variable in model.trainable_variables
        if not variable.name.startswith(tuple(prefixes))
    ]


def build_optimizer(
    config: FinetuningConfig, model: FinetuningModel, num_train_steps: int
) -> AdamWeightDecay:
    """Returns the optimizer of a model's trained variables."""
    schedule = WarmupPolynomialDecay(
        config.learning_rate,
        num_train_steps,
        num_train_steps * config.warmup_proportion,
        read_order=config.lr_read_order,
    )
    variables = trained_variables(config, model)
    return AdamWeightDecay(
        variables,
        schedule,
        config.weight_decay_rate,
        bias_correction=config.adam_bias_correction,
        learning_rate_multipliers=layer_multipliers(
            map(variable_name, variables), *_layerwise_arguments(config, model)
        ),
    )


def layer_rates(
    config: FinetuningConfig, model: FinetuningModel
) -> list[LayerRate]:
    """Returns the table of the trained layers' rates, the lowest first."""
    names = [variable_name(v) for v in trained_variables(config, model)]
    return rate_table(names, *_layerwise_arguments(config, model))


def _layerwise_arguments(
    config: FinetuningConfig, model: FinetuningModel
) -> tuple[float, int, bool]:
    return (
        config.layerwise_lr_decay,
        model.encoder_config.num_hidden_layers,
        config.fix_layerwise_lr_decay,
    )
