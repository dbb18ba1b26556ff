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


def set_threads(threads: int, micro_batch_size: int, may_share: bool) -> None:
    """Set the number of threads that share one operation on the CPU.

    Args:
      threads: the hparam; 0 leaves the number to TensorFlow, unless cores share
        a batch: then it is 1.
      micro_batch_size: rows of a micro-batch.
      may_share: whether the hparams allow that cores share a batch.

    Raises:
      UserError: `threads` is set after TensorFlow has started.
    """
    is_requested = threads > 0
    if _cores_without_gpu(micro_batch_size, may_share) > 1:
        threads = 1
    if not threads:
        return
    setting = tf.config.threading
    try:
        setting.set_intra_op_parallelism_threads(threads)
    except RuntimeError as error:
        if not is_requested:
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
        return _cores_without_gpu(
            config.micro_batch_size, config.lets_cores_share
        )
    return 1


def _cores_without_gpu(micro_batch_size: int, may_share: bool) -> int:
    if tf.config.get_visible_devices("GPU"):
        return 1
    return machine.configured_cores(micro_batch_size, may_share)
