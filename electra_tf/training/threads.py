# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""CPU threads of operations, and cores that share a batch.

On a small machine without a GPU each operation runs on one thread, and each
core computes a separate micro-batch, so that no core waits for the last thread
of an operation.
"""

import tensorflow as tf

from configure.errors import UserError
from configure.run_config import RunConfig
from electra_tf.plan import machine


def set_threads(threads: int, micro_batch_size: int, may_share: bool) -> None:
    """Set the number of threads that share one operation on the CPU.

    Args:
      threads: the hparam; 0: TensorFlow's choice, or 1 if cores share a batch.
      micro_batch_size: number of rows in a micro-batch.
      may_share: whether the hparams allow cores to share a batch.

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
            f"threads is {threads}, but TensorFlow is already running with"
            f" {setting.get_intra_op_parallelism_threads()} threads per"
            " operation (0: TensorFlow's choice). Start this run in a new"
            " process, before other code uses TensorFlow."
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
