# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether training keeps the activations of blocks or computes them again."""

from typing import Any

import tensorflow as tf
from absl import logging

from electra_tf.analysis.machine import machine_memory
from electra_tf.analysis.memory import MemoryEstimate, keeps_too_much


def recomputes(config: Any, kept: MemoryEstimate) -> bool:
    """Decides the hparam `recompute_grad` where it is null, and says so.

    Depends on the machine's memory, not on what of it is free: a run that
    continues on the same machine computes as before.

    Args:
      config: a config of pre-training or fine-tuning.
      kept: memory of one device if activations are kept.

    Returns:
      Whether they are computed again.
    """
    if config.recompute_grad is not None:
        return config.recompute_grad
    if any(d.device_type != "CPU" for d in tf.config.list_physical_devices()):
        return False  # TensorFlow does not say how much memory they have.
    machine = machine_memory()
    if not keeps_too_much(kept, machine):
        return False
    logging.warning(
        "Keeping all activations would take about %.1f GiB, and this machine"
        " has %.1f: those inside blocks are computed again, which takes about"
        " 1.4 times as long. Set recompute_grad to true or false to decide it"
        " yourself.",
        kept.total / 2**30,
        machine / 2**30,
    )
    return True


def rows_of_a_device(batch_size: int) -> int:
    """Returns how many rows of a batch one device computes.

    Args:
      batch_size: B of all; split by the strategy whose scope is active.
    """
    devices = tf.distribute.get_strategy().num_replicas_in_sync
    return -(-batch_size // devices)
