# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The construction of model and optimizer from a configuration."""

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints.assignment import Coverage, assign
from electra_tf.checkpoints.weights import Weights
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.task import Task
from electra_tf.modeling.activation_checkpointing import needs_checkpointing
from electra_tf.modeling.encoder import ComputePolicy, set_compute_policy
from electra_tf.modeling.precision import block_dtype
from electra_tf.optimization import learning_rate, optimizer
from electra_tf.plan.machine import machine_memory
from electra_tf.plan.memory import activations_limit, finetuning_memory
from electra_tf.training.replicas import rows_per_machine

# The pattern of the names of heads' variables. Initial weights without these
# variables are accepted.
HEADS = "^task_specific/"


def build_model(
    config: FinetuningConfig, tasks: Sequence[Task]
) -> FinetuningModel:
    """Return a freshly initialized model."""
    model = FinetuningModel(config, tasks)
    sizes = model.encoder_config
    n_trained_layers = max(0, sizes.num_hidden_layers - config.freeze_layers)
    estimate = finetuning_memory(
        config,
        dataclasses.replace(sizes, num_hidden_layers=n_trained_layers),
        sum(v.shape.num_elements() for v in model.variables),
        rows_per_machine(config.train_batch_size),
    )
    checkpoints = config.do_train and needs_checkpointing(
        config.recompute_grad,
        estimate.total,
        activations_limit(machine_memory()),
    )
    dtype = block_dtype(config.mixed_precision)
    policy = ComputePolicy(dtype, checkpoints, config.skip_padding)
    set_compute_policy(model, policy)
    return model


def load_weights(
    config: FinetuningConfig, weights: Weights, model: FinetuningModel
) -> Coverage:
    """Assign the initial weights; heads without weights stay random."""
    allowed = HEADS
    if config.allow_missing:
        allowed = f"(?:{HEADS})|(?:{config.allow_missing})"
    return assign(weights, model.variables, allow_missing=allowed)


def trained_variables(
    config: FinetuningConfig, model: FinetuningModel
) -> list[tf.Variable]:
    """Return the variables that training changes."""
    n_frozen = config.freeze_layers
    if not n_frozen:
        return list(model.trainable_variables)
    n_layers = model.encoder_config.num_hidden_layers
    if n_frozen > n_layers:
        raise UserError(
            f"freeze_layers is {n_frozen}, but the model has {n_layers}"
            " layers. Lower freeze_layers."
        )
    prefixes = ["electra/embeddings/", "electra/embeddings_project/"]
    prefixes += [f"electra/encoder/layer_{i}/" for i in range(n_frozen)]
    return [
        variable
        for variable in model.trainable_variables
        if not variable.name.startswith(tuple(prefixes))
    ]


def build_optimizer(
    config: FinetuningConfig, model: FinetuningModel, num_train_steps: int
) -> optimizer.AdamWeightDecay:
    """Return the optimizer of a model's trained variables."""
    schedule = learning_rate.WarmupPolynomialDecay(
        config.learning_rate,
        num_train_steps,
        num_train_steps * config.warmup_proportion,
        read_order=config.lr_read_order,
    )
    variables = trained_variables(config, model)
    multipliers = learning_rate.layer_multipliers(
        map(optimizer.variable_name, variables),
        *_layerwise_arguments(config, model),
    )
    return optimizer.make_optimizer(
        config.optimizer_settings, variables, schedule, multipliers
    )


def layer_rates(
    config: FinetuningConfig, model: FinetuningModel
) -> list[learning_rate.LayerRate]:
    """Return the learning rates of the trained layers, lowest layer first."""
    variables = trained_variables(config, model)
    names = [optimizer.variable_name(variable) for variable in variables]
    return learning_rate.rate_table(names, *_layerwise_arguments(config, model))


def _layerwise_arguments(
    config: FinetuningConfig, model: FinetuningModel
) -> tuple[float, int, bool]:
    """Return the decay, the number of layers, and `fix_layerwise_lr_decay`."""
    return (
        config.layerwise_lr_decay,
        model.encoder_config.num_hidden_layers,
        config.fix_layerwise_lr_decay,
    )
