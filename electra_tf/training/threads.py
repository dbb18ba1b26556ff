# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""CPU threads: those of one operation, and the cores that share a batch.

On a small machine without a GPU every operation runs on one thread, and each
core computes a micro-batch of its own. So no core waits for the last thread of
an operation.
"""

import tensorflow as tf

from configure.errors import UserError
from configure.run_config import RunConfig
from electra_tf.plan import machine


def set_threads(config: RunConfig) -> None:
    """Set the number of threads that share one operation on the CPU.

    The hparam `threads` gives the number; 0 leaves it to TensorFlow, except
    where cores share a batch: then it is 1.

    Raises:
      UserError: `threads` is set after TensorFlow has started.
    """
    threads = 1 if _cores_without_gpu(config) > 1 else config.threads
    if not threads:
        return
    setting = tf.config.threading
    try:
        setting.set_intra_op_parallelism_threads(threads)
    except RuntimeError as error:
        if not config.threads:
            return
        raise UserError(
            f"threads is {threads}, but TensorFlow is running already, with"
            f" {setting.get_intra_op_parallelism_threads()} (0: its own"
            " choice; 1: perhaps that of an earlier run). Start this run in a"
            " new process, before anything else uses TensorFlow."
        ) from error


def count_cores(config: RunConfig, strategy: tf.distribute.Strategy) -> int:
    """Return the number of cores that compute micro-batches in parallel."""
    one_thread = tf.config.threading.get_intra_op_parallelism_threads() == 1
    if one_thread and strategy.num_replicas_in_sync == 1:
        return _cores_without_gpu(config)
    return 1


def _cores_without_gpu(config: RunConfig) -> int:
    if tf.config.get_visible_devices("GPU"):
        return 1
    return machine.configured_cores(config)
