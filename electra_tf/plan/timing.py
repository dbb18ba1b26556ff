# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Real training steps, timed; nothing is written and nothing kept."""

import dataclasses
import os
import statistics
import tempfile
import time
from collections.abc import Iterator

import numpy as np
import orbit
import tensorflow as tf

from configure.pretraining import PretrainingConfig
from electra_tf.analysis.parameters import encoder_sizes
from electra_tf.data.input_pipeline import build_dataset
from electra_tf.pretraining.build import (
    build_model,
    build_optimizer,
    build_train_loop,
)
from electra_tf.training import strategy as strategies
from electra_tf.training.loop import LossScale

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_WARM_UP = 2  # The first step makes the graph; the second fills memory.


@dataclasses.dataclass(frozen=True)
class Measurement:
    """How fast steps were.

    Attributes:
      batch_size: examples a step.
      seconds: of each step, the input with it.
      first_seconds: of the first step, which makes the graph.
      real_batches: whether they were read from the run's records.
      made_up_vocabulary: whether there was no vocabulary file.
      peak_bytes: the process's most memory so far; 0 where the system does
        not tell.
      devices: what ran it.
    """

    batch_size: int
    seconds: tuple[float, ...]
    first_seconds: float
    real_batches: bool
    made_up_vocabulary: bool
    peak_bytes: int
    devices: str

    @property
    def seconds_per_example(self) -> float:
        """Median of the steps, for one example."""
        return statistics.median(self.seconds) / self.batch_size


def measure_steps(
    config: PretrainingConfig,
    batch_size: int,
    steps: int,
    real_batches: bool,
) -> Measurement:
    """Trains a fresh model for some steps and forgets it."""
    strategies.use_threads(config.threads)
    config = dataclasses.replace(
        config,
        do_train=True,
        train_batch_size=batch_size,
        gradient_accumulation_steps=1,
    )
    strategy = strategies.from_config(config)
    made_up = not tf.io.gfile.exists(config.vocab_file)
    with tempfile.TemporaryDirectory() as folder:
        if made_up:
            config = _with_vocabulary(config, folder)
        with strategies.creation_scope(strategy):
            model = build_model(config)
            optimizer = build_optimizer(config, model)
            step = orbit.utils.create_global_step()
            loss_scale = LossScale.of(config.mixed_precision)
    if real_batches:
        with tf.device("/cpu:0"):
            batches = iter(build_dataset(config, batch_size, training=True))
    else:
        vocab_size = model.encoder_config.vocab_size
        batches = _random_batches(config, vocab_size)
    loop = build_train_loop(
        config, model, optimizer, batches, step, strategy, loss_scale
    )
    times = []
    for _ in range(_WARM_UP + steps):
        start = time.perf_counter()
        loop.train(tf.constant(1))
        loop.take_chunk()  # Waits for the numbers.
        times.append(time.perf_counter() - start)
    return Measurement(
        batch_size=batch_size,
        seconds=tuple(times[_WARM_UP:]),
        first_seconds=times[0],
        real_batches=real_batches,
        made_up_vocabulary=made_up,
        peak_bytes=peak_memory(),
        devices=strategies.describe(strategy),
    )


def peak_memory() -> int:
    """Returns the process's peak of resident memory in bytes (Linux; or 0)."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def _with_vocabulary(
    config: PretrainingConfig, folder: str
) -> PretrainingConfig:
    """Writes a vocabulary of the right size to a folder that will go."""
    path = os.path.join(folder, "vocab.txt")
    size = encoder_sizes(config).vocab_size
    words = (f"word{i}" for i in range(size - len(_SPECIAL)))
    with open(path, "w") as file:
        file.write("\n".join([*_SPECIAL, *words]) + "\n")
    return dataclasses.replace(config, vocab_file=path)


def _random_batches(
    config: PretrainingConfig, vocab_size: int
) -> Iterator[dict[str, tf.Tensor]]:
    """Batches without padding, tokens drawn uniformly."""
    draws = np.random.default_rng(config.seed)
    shape = [config.train_batch_size, config.max_seq_length]
    while True:
        ids = draws.integers(len(_SPECIAL), vocab_size, shape)
        yield {
            "input_ids": tf.constant(ids, tf.int32),
            "input_mask": tf.ones(shape, tf.int32),
            "segment_ids": tf.zeros(shape, tf.int32),
        }
