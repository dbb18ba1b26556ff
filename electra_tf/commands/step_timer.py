# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The timer of pre-training steps on this machine, on random examples."""

import dataclasses
import os
import tempfile
import time
from collections.abc import Iterator

import numpy as np
import orbit
import tensorflow as tf

from configure.generator import GeneratorKind, generator_kind
from configure.pretraining import PretrainingConfig
from electra_tf.files.atomic import write_atomically
from electra_tf.modeling.activation_checkpointing import needs_checkpointing
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.precision import LossScale
from electra_tf.plan.machine import machine_memory
from electra_tf.plan.memory import activations_limit, pretraining_memory
from electra_tf.pretraining import build
from electra_tf.pretraining.model import build_model
from electra_tf.training.devices import create_strategy
from electra_tf.training.replicas import creation_scope
from electra_tf.training.threads import set_threads

# Untimed steps: the first builds the graph, the second allocates memory.
_WARM_UP = 2
_SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def time_steps(
    config: PretrainingConfig, batch_size: int, count: int, first_step: int = 0
) -> list[float]:
    """Return the seconds of training steps of a new model.

    Args:
      config: the settings of the run.
      batch_size: the number of examples of a step, in one micro-batch.
      count: the number of steps to time, after two untimed steps.
      first_step: the step at which training begins, which determines the stage
        of its schedule.
    """
    vocab_size = EncoderConfig.of(config).vocab_size
    with tempfile.TemporaryDirectory() as folder:
        config = dataclasses.replace(
            config,
            train_batch_size=batch_size,
            gradient_accumulation_steps=1,
            vocab_file=_write_vocabulary(folder, vocab_size),
            recompute_grad=needs_checkpointing(
                config.recompute_grad,
                pretraining_memory(config).total,
                activations_limit(machine_memory()),
            ),
        )
        set_threads(
            config.threads, config.micro_batch_size, config.lets_cores_share
        )
        strategy = create_strategy(config)
        if generator_kind(config) is GeneratorKind.UNIGRAM:
            # The made-up tokens have no counts, so a uniform generator is
            # timed, which has the same operations.
            config = dataclasses.replace(
                config, generator="uniform", uniform_generator=True
            )
        with creation_scope(strategy):
            model = build_model(config)
            optimizer = build.build_optimizer(config, model)
            step = orbit.utils.create_global_step()
            loss_scale = LossScale.of(config.mixed_precision)
        step.assign(first_step)
    shape = [batch_size, config.max_seq_length]
    batches = _random_batches(shape, vocab_size, config.seed)
    loop = build.build_train_loop(
        config,
        model,
        optimizer,
        batches,
        step,
        strategy,
        loss_scale=loss_scale,
    )
    times = []
    for _ in range(_WARM_UP + count):
        start = time.perf_counter()
        loop.train(1)
        loop.take_chunk()  # reading the values waits for the step
        times.append(time.perf_counter() - start)
    return times[_WARM_UP:]


def _write_vocabulary(folder: str, size: int) -> str:
    """Write a vocabulary of made-up tokens; return its path."""
    path = os.path.join(folder, "vocab.txt")
    tokens = (f"word{i}" for i in range(size - len(_SPECIAL_TOKENS)))
    write_atomically(path, "\n".join([*_SPECIAL_TOKENS, *tokens, ""]))
    return path


def _random_batches(
    shape: list[int], vocab_size: int, seed: int | None
) -> Iterator[dict[str, tf.Tensor]]:
    """Yield batches [B, L] of uniformly drawn tokens, without padding."""
    rng = np.random.default_rng(seed)
    while True:
        ids = rng.integers(len(_SPECIAL_TOKENS), vocab_size, shape)
        yield {
            "input_ids": tf.constant(ids, tf.int32),
            "input_mask": tf.ones(shape, tf.int32),
            "segment_ids": tf.zeros(shape, tf.int32),
        }
