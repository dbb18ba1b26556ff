# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Optimizer and training loop of a pre-training model, from its config."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import tensorflow as tf

from configure.generator import GeneratorKind
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import tf1
from electra_tf.data.input_pipeline import each_example_once
from electra_tf.modeling.activation_checkpointing import needs_checkpointing
from electra_tf.modeling.encoder import ComputePolicy, set_compute_policy
from electra_tf.modeling.precision import LossScale, block_dtype
from electra_tf.optimization.learning_rate import WarmupPolynomialDecay
from electra_tf.optimization.optimizer import (
    AdamWeightDecay,
    make_optimizer,
    variable_name,
)
from electra_tf.plan.machine import machine_memory
from electra_tf.plan.memory import activations_limit, pretraining_memory
from electra_tf.pretraining import two_stage, unigram
from electra_tf.pretraining.logged_values import step_values
from electra_tf.pretraining.networks import Features, Networks
from electra_tf.pretraining.trained_variables import generator_variables
from electra_tf.pretraining.training_schedules import Schedule, schedule_of
from electra_tf.training.loop import TrainLoop
from electra_tf.training.replicas import rows_per_machine
from electra_tf.training.threads import count_cores
from electra_tf.training.workers import Worker

if TYPE_CHECKING:  # Python 3.10 has Unpack only in typing_extensions.
    from typing_extensions import Unpack

# Names of the groups of variables that clip_networks_apart clips separately.
# The second group contains the tables that both networks share, because nearly
# all of the tables' gradient comes from the discriminator's loss. In the first
# group, the norm of this gradient would scale down the generator's gradient.
NETWORKS = ("generator", "discriminator")
Optimizer = AdamWeightDecay | two_stage.TwoStageOptimizer


def prepare_model(
    config: PretrainingConfig, networks: Networks, starts_over: bool = False
) -> None:
    """Set a model's precision, activation checkpointing and token counts.

    Args:
      config: hparams of the run.
      networks: the model.
      starts_over: whether training starts at step 0; False: it does if
        config.model_dir has no checkpoint, or is overwritten.
    """
    mixes = config.mixes_token_counts and config.do_train
    if mixes or networks.kind is GeneratorKind.UNIGRAM:
        vocab_size = networks.encoder_config.vocab_size
        if networks.token_counts is None:
            # A run that stopped before its first checkpoint starts again, and
            # may have left counts of other data.
            starts_over = config.do_train and (
                starts_over
                or config.overwrite
                or not tf1.find_latest(config.model_dir)
            )
            networks.token_counts = unigram.run_token_counts(
                config.model_dir,
                starts_over,
                functools.partial(each_example_once, config, batch_size=1024),
                networks.vocab,
                vocab_size,
            )
        elif np.shape(networks.token_counts) != (vocab_size,):
            raise ValueError(
                "the model's token_counts have the shape"
                f" {np.shape(networks.token_counts)}; expected ({vocab_size},),"
                " a count for each token. Set token_counts to such an array, or"
                " to None to count the training records"
            )
        unigram.check_drawable(
            networks.token_counts,
            networks.vocab,
            config.generator,
            config.unigram_steps,
            config.unigram_floor,
        )
    rows = rows_per_machine(config.train_batch_size)
    checkpoints = config.do_train and needs_checkpointing(
        config.recompute_grad,
        pretraining_memory(config, rows).total,
        activations_limit(machine_memory()),
    )
    dtype = block_dtype(config.mixed_precision)
    set_compute_policy(networks, ComputePolicy(dtype, checkpoints))


def build_optimizer(config: PretrainingConfig, networks: Networks) -> Optimizer:
    """Return the optimizer of a model's trained variables."""
    generator_names: set[str] = set()
    if config.generator_learning_rate is not None or config.clip_networks_apart:
        generator = generator_variables(networks)
        generator_names = {variable_name(v) for v in generator}

    def build(variables: Sequence[tf.Variable], steps: int) -> AdamWeightDecay:
        schedule = WarmupPolynomialDecay(
            config.learning_rate,
            steps,
            config.num_warmup_steps,
            config.lr_decay_power,
            config.lr_read_order,
        )
        names = [variable_name(variable) for variable in variables]
        return make_optimizer(
            config.optimizer_settings,
            variables,
            schedule,
            _multipliers(config, names, generator_names),
            _clip_groups(config, names, generator_names),
        )

    return _schedule_of(config).build_optimizer(networks, build)


def _schedule_of(config: PretrainingConfig) -> Schedule:
    return schedule_of(
        config.training_schedule, config.num_train_steps, config.two_stage_steps
    )


def _multipliers(
    config: PretrainingConfig,
    names: Sequence[str],
    generator_names: set[str],
) -> Mapping[str, float] | None:
    """Return the factor of `learning_rate` by variable; None if all are 1.

    Source: Dong et al., Understand and Modularize Generator Optimization in
    ELECTRA-style Pretraining (ICML 2023), decoupled optimizers.
    Differs: one optimizer has two rates; shared tables have the full rate.
    """
    rate = config.generator_learning_rate
    if rate is None or rate == config.learning_rate:
        return None
    ratio = rate / config.learning_rate
    return {name: ratio if name in generator_names else 1.0 for name in names}


def _clip_groups(
    config: PretrainingConfig,
    names: Sequence[str],
    generator_names: set[str],
) -> Mapping[str, str] | None:
    """Return the name of each variable's clip group (a network), or None.

    None means that one norm clips all variables.

    Source: DeBERTa, apps/tasks/rtd_task.py, `decoupled_training`: each network
    has a separate trainer, and therefore a separate norm.
    Differs: one optimizer updates both networks in one pass.
    """
    if not config.clip_networks_apart:
        return None
    generator, discriminator = NETWORKS
    return {
        name: generator if name in generator_names else discriminator
        for name in names
    }


class LoopSettings(TypedDict, total=False):
    """Arguments of `TrainLoop` that callers of `build_train_loop` choose."""

    loss_scale: LossScale | None
    should_stop: Callable[[], bool]
    worker: Worker


def build_train_loop(
    config: PretrainingConfig,
    model: Networks,
    optimizer: Optimizer,
    iterator: Iterator[Features],
    step: tf.Variable,
    strategy: tf.distribute.Strategy,
    **settings: "Unpack[LoopSettings]",
) -> TrainLoop | two_stage.TwoStageLoop:
    """Return the loop that trains a model on one batch in each step.

    Args:
      config: config of the model.
      model: a `PretrainingModel`.
      optimizer: result of `build_optimizer`.
      iterator: iterator over int32 [B, L] `input_ids`, `input_mask`,
        `segment_ids`.
      step: int64 scalar, number of completed updates.
      strategy: strategy of the loop.
      **settings: other arguments of `TrainLoop`.
    """
    build = functools.partial(
        TrainLoop,
        iterator=iterator,
        step=step,
        seed=config.seed,
        strategy=strategy,
        step_values=step_values,
        micro_batches=config.gradient_accumulation_steps,
        cores=count_cores(config, strategy),
        scheduled=model.scheduled,
        prepare=model.prepare_rows,
        jit_compile=config.jit_compile,
        **settings,
    )
    return _schedule_of(config).build_loop(model, optimizer, build)
