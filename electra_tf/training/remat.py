# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether training keeps the activations of blocks or computes them again."""

from typing import Any

import tensorflow as tf
from absl import logging

from electra_tf.plan.memory import (
    MemoryEstimate,
    keeps_too_much,
    machine_memory,
)


def uses_remat(config: Any, kept: MemoryEstimate) -> bool:
    """Decides the hparam `recompute_grad` where it is null, and says so once.

    Depends on the machine's memory, not on what of it is free: a run that
    continues on the same machine computes as before.
    """
    if config.recompute_grad is not None:
        return config.recompute_grad
    if not config.do_train or _has_accelerator():
        return False
    machine = machine_memory()
    if not keeps_too_much(kept, machine):
        return False
    logging.log_first_n(
        logging.WARNING,
        "Keeping all activations would take about %.1f GiB, and this machine"
        " has %.1f: those inside blocks are computed again, which takes about"
        " 1.4 times as long. Set recompute_grad to true or false to decide it"
        " yourself.",
        1,
        kept.total / 2**30,
        machine / 2**30,
    )
    return True


def _has_accelerator() -> bool:
    """TensorFlow does not say how much memory accelerators have."""
    if isinstance(tf.distribute.get_strategy(), tf.distribute.TPUStrategy):
        return True
    return any(
        d.device_type != "CPU" for d in tf.config.list_physical_devices()
    )


def rows_of_a_machine(batch_size: int) -> int:
    """Returns how many rows of a batch one machine without GPUs computes."""
    strategy = tf.distribute.get_strategy()
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return batch_size  # Several devices of one machine share its memory.
    return -(-batch_size // strategy.num_replicas_in_sync)
