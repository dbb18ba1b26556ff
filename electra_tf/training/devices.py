# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The devices of a run: one device, several GPUs, several workers or a TPU."""

import functools

import tensorflow as tf

from configure.errors import UserError
from configure.run_config import RunConfig
from electra_tf.training.workers import connect_workers


def create_strategy(config: RunConfig) -> tf.distribute.Strategy:
    """Return the strategy of the hparam `distribution_strategy`.

    Its scope must be active while variables are created. It must be created
    before anything else starts TensorFlow's runtime: workers cannot be
    connected afterwards.

    Raises:
      UserError: `require_gpu` is set and there is no GPU, workers or a TPU
        cannot be reached, or replicas cannot share the batches.
    """
    # Listing logical devices would start the runtime; this call does not.
    if config.require_gpu and not tf.config.get_visible_devices("GPU"):
        raise UserError(
            "require_gpu is true but TensorFlow sees no GPU. Check the driver"
            " with `nvidia-smi`, install `tensorflow[and-cuda]`, or leave out"
            " --require_gpu to train on the CPU."
        )
    strategy = _strategy_by_name(config)
    check_replicas(strategy, config)
    return strategy


def _strategy_by_name(config: RunConfig) -> tf.distribute.Strategy:
    name = config.distribution_strategy
    if name == "multi_worker":
        return connect_workers()
    if name == "tpu" or (name == "auto" and config.use_tpu):
        return _connect_tpu(config)
    gpus = tf.config.list_logical_devices("GPU")
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        devices = gpus or tf.config.list_logical_devices("CPU")
        return _mirrored_strategy(*(device.name for device in devices))
    return tf.distribute.OneDeviceStrategy("/gpu:0" if gpus else "/cpu:0")


@functools.cache
def _mirrored_strategy(*devices: str) -> tf.distribute.Strategy:
    """Return the one strategy that all runs of a process share.

    A second strategy, such as that of the next task of GLUE, would number its
    collective operations from 0 again, and TensorFlow rejects a number that it
    has seen with another shape.
    """
    return tf.distribute.MirroredStrategy(devices)


def _connect_tpu(config: RunConfig) -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=config.tpu_name or "",
            zone=config.tpu_zone,
            project=config.gcp_project,
            job_name=config.tpu_job_name or "worker",
        )
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    except Exception as error:  # The client raises many unrelated types.
        raise UserError(
            f"cannot reach TPU {config.tpu_name or '(tpu_name is unset)'}:"
            f" {error}. Check --tpu_name, --tpu_zone and --gcp_project, or"
            " leave out --use_tpu."
        ) from error


def check_replicas(strategy: tf.distribute.Strategy, config: RunConfig) -> None:
    """Raise a UserError for batches or settings that replicas cannot share."""
    replicas = strategy.num_replicas_in_sync
    # A TPU compiles every step, also across replicas.
    on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    if config.jit_compile and replicas > 1 and not on_tpu:
        raise UserError(
            f"jit_compile: {replicas} replicas cannot add up their gradients"
            " within one XLA program; leave out --jit_compile, or use"
            " --distribution_strategy=one_device."
        )
    field = "train_batch_size"
    batch_size = config.train_batch_size
    if config.gradient_accumulation_steps > 1:
        field += " / gradient_accumulation_steps"
        batch_size //= config.gradient_accumulation_steps
    if config.do_train and batch_size % replicas:
        below = batch_size - batch_size % replicas
        raise UserError(
            f"{field} is {batch_size}, which {replicas} replicas cannot share"
            f" evenly; use a multiple of {replicas}, for example"
            f" {below or replicas} or {below + replicas}."
        )


def describe_devices(strategy: tf.distribute.Strategy, cores: int = 1) -> str:
    """Return one line with the strategy, its replicas and the devices.

    Args:
      strategy: what `create_strategy` returned.
      cores: the result of `threads.count_cores`.
    """
    devices = [
        device.name.rsplit("device:", 1)[-1]
        for kind in ("GPU", "TPU", "CPU")
        for device in tf.config.list_logical_devices(kind)
    ]
    replicas = strategy.num_replicas_in_sync
    noun = "replica" if replicas == 1 else "replicas"
    line = (
        f"{type(strategy).__name__}, {replicas} {noun}; devices:"
        f" {', '.join(devices)}"
    )
    if cores > 1:
        line += f"; {cores} cores share each batch"
    return line
