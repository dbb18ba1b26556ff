# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Model, optimizer and training loop of a pre-training run, from its config."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from configure.generator import GeneratorKind
from electra_tf.modeling.activation_checkpointing import needs_checkpointing
from electra_tf.modeling.encoder import ComputePolicy, set_compute_policy
from electra_tf.modeling.precision import LossScale, block_dtype
from electra_tf.optimization.optimizer import (
    AdamWeightDecay,
    WarmupPolynomialDecay,
    make_optimizer,
    variable_name,
)
from electra_tf.plan.machine import machine_memory
from electra_tf.plan.memory import activations_limit, pretraining_memory
from electra_tf.pretraining import schedules, unigram
from electra_tf.pretraining.model import PretrainingModel, step_values
from electra_tf.training.loop import TrainLoop
from electra_tf.training.replicas import rows_per_machine
from electra_tf.training.threads import count_cores
from electra_tf.training.workers import ALONE, Worker

__all__ = ["build_model", "build_optimizer", "build_train_loop", "step_values"]

# The groups of variables that clip_networks_apart clips. Tables that both
# networks share are in the second: nearly all of their gradient comes from the
# discriminator's loss, whose norm would scale down the generator's otherwise.
NETWORKS = ("generator", "discriminator")


def build_model(config: Any) -> PretrainingModel:
    """Returns a freshly initialized model."""
    model = PretrainingModel(config)
    prepare_model(config, model)
    return model


def prepare_model(config: Any, model: PretrainingModel) -> None:
    """Sets precision, activation checkpointing, counts as a run has them."""
    mixes = config.mixes_token_counts and config.do_train
    if mixes or model.kind is GeneratorKind.UNIGRAM:
        rows = model.encoder_config.vocab_size
        model.token_counts = unigram.run_token_counts(config, model.vocab, rows)
    rows = rows_per_machine(config.train_batch_size)
    checkpoints = config.do_train and needs_checkpointing(
        config.recompute_grad,
        pretraining_memory(config, rows).total,
        activations_limit(machine_memory()),
    )
    dtype = block_dtype(config.mixed_precision)
    set_compute_policy(model, ComputePolicy(dtype, checkpoints))


def build_optimizer(
    config: Any, model: PretrainingModel
) -> AdamWeightDecay | schedules.TwoStageOptimizer:
    """Returns the optimizer of a model's variables."""
    own_names: set[str] = set()
    if config.generator_learning_rate is not None or config.clip_networks_apart:
        own = schedules.generator_variables(model)
        own_names = set(map(variable_name, own))

    def build(variables: Sequence[tf.Variable], steps: int) -> AdamWeightDecay:
        schedule = WarmupPolynomialDecay(
            config.learning_rate,
            steps,
            config.num_warmup_steps,
            config.lr_decay_power,
            config.lr_read_order,
        )
        names = list(map(variable_name, variables))
        return make_optimizer(
            config,
            variables,
            schedule,
            _multipliers(config, names, own_names),
            _clip_groups(config, names, own_names),
        )

    if config.training_schedule == "two_stage":
        return schedules.TwoStageOptimizer(config, model, build)
    return build(model.trainable_variables, config.num_train_steps)


def _multipliers(
    config: Any, names: Sequence[str], own_names: set[str]
) -> Mapping[str, float] | None:
    """Returns variables' rates in multiples of `learning_rate`; None: all 1.

    Source: Dong et al., Understand and Modularize Generator Optimization in
    ELECTRA-style Pretraining (ICML 2023), decoupled optimizers.
    Differs: one optimizer with two rates; shared tables have the full rate.
    """
    rate = config.generator_learning_rate
    if rate is None or rate == config.learning_rate:
        return None
    share = rate / config.learning_rate
    return {name: share if name in own_names else 1.0 for name in names}


def _clip_groups(
    config: Any, names: Sequence[str], own_names: set[str]
) -> Mapping[str, str] | None:
    """Returns the network by whose norm each variable is clipped, if apart.

    Source: DeBERTa, apps/tasks/rtd_task.py, `decoupled_training`: each network
    has a trainer, and so a norm, of its own.
    Differs: one optimizer updates both networks in one pass.
    """
    if not config.clip_networks_apart:
        return None
    generator, discriminator = NETWORKS
    return {n: generator if n in own_names else discriminator for n in names}


def build_train_loop(
    config: Any,
    model: PretrainingModel,
    optimizer: AdamWeightDecay | schedules.TwoStageOptimizer,
    iterator: Iterator[Any],
    step: tf.Variable,
    strategy: tf.distribute.Strategy,
    loss_scale: LossScale | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    worker: Worker = ALONE,
) -> TrainLoop | schedules.TwoStageLoop:
    """Returns the loop that updates a model, one batch a step."""
    make = functools.partial(
        TrainLoop,
        iterator=iterator,
        step=step,
        seed=config.seed,
        strategy=strategy,
        step_values=step_values,
        should_stop=should_stop,
        micro_batches=config.gradient_accumulation_steps,
        cores=count_cores(config, strategy),
        scheduled=model.scheduled,
        prepare=model.prepare_rows,
        jit_compile=config.jit_compile,
        loss_scale=loss_scale,
        worker=worker,
    )
    if isinstance(optimizer, schedules.TwoStageOptimizer):
        return schedules.TwoStageLoop(make, model, optimizer)
    return make(
        compute=model.compute,
        variables=model.trainable_variables,
        optimizer=optimizer,
    )
