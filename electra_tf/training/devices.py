# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Devices of a run: one device, several GPUs, several workers or a TPU."""

import functools

import tensorflow as tf

from configure.errors import UserError
from configure.run_config import RunConfig
from electra_tf.training.workers import connect_workers


def create_strategy(config: RunConfig) -> tf.distribute.Strategy:
    """Return the strategy that the hparam `distribution_strategy` selects.

    The strategy's scope must be active while variables are created. The
    strategy must be created before TensorFlow's runtime starts, because workers
    cannot be connected afterwards.

    Raises:
      UserError: `require_gpu` is set, but no GPU exists; workers or a TPU
        cannot be reached; or replicas cannot share the batches.
    """
    # Unlike listing logical devices, this call does not start the runtime.
    if config.require_gpu and not tf.config.get_visible_devices("GPU"):
        raise UserError(
            "require_gpu is true but TensorFlow sees no GPU. Check the driver"
            " with `nvidia-smi`, install `tensorflow[and-cuda]`, or leave out"
            " --require_gpu to train on the CPU."
        )
    name = config.distribution_strategy
    if name == "tpu" or (name == "auto" and config.use_tpu):
        strategy = _connect_tpu(
            config.tpu_name,
            config.tpu_zone,
            config.gcp_project,
            config.tpu_job_name,
        )
    else:
        strategy = _strategy_by_name(name)
    if config.jit_compile:
        check_compilation(strategy)
    if config.do_train:
        check_batch_size(
            strategy,
            config.train_batch_size,
            config.gradient_accumulation_steps,
        )
    return strategy


def _strategy_by_name(name: str) -> tf.distribute.Strategy:
    if name == "multi_worker":
        return connect_workers()
    gpus = tf.config.list_logical_devices("GPU")
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        devices = gpus or tf.config.list_logical_devices("CPU")
        return _mirrored_strategy(*(device.name for device in devices))
    return tf.distribute.OneDeviceStrategy("/gpu:0" if gpus else "/cpu:0")


@functools.cache
def _mirrored_strategy(*devices: str) -> tf.distribute.Strategy:
    """Return the one strategy that all runs of a process share.

    A second strategy, such as that of GLUE's next task, would number its
    collective operations from 0 again, and TensorFlow rejects a number that was
    already used with a different shape.
    """
    return tf.distribute.MirroredStrategy(devices)


def _connect_tpu(
    name: str | None, zone: str | None, project: str | None, job: str | None
) -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=name or "",
            zone=zone,
            project=project,
            job_name=job or "worker",
        )
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    # The client raises errors of many unrelated classes.
    except Exception as error:
        raise UserError(
            f"cannot reach TPU {name or '(tpu_name is unset)'}:"
            f" {error}. Check --tpu_name, --tpu_zone and --gcp_project, or"
            " leave out --use_tpu."
        ) from error


def check_compilation(strategy: tf.distribute.Strategy) -> None:
    """Raise a UserError if XLA cannot compile the steps of a strategy."""
    replicas = strategy.num_replicas_in_sync
    # A TPU compiles every step, even across replicas.
    on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    if replicas > 1 and not on_tpu:
        raise UserError(
            f"jit_compile: {replicas} replicas cannot sum their gradients"
            " within one XLA program. Leave out --jit_compile, or pass"
            " --distribution_strategy=one_device."
        )


def check_batch_size(
    strategy: tf.distribute.Strategy,
    train_batch_size: int,
    gradient_accumulation_steps: int,
) -> None:
    """Raise a UserError if replicas cannot share a micro-batch evenly."""
    replicas = strategy.num_replicas_in_sync
    field, batch_size = "train_batch_size", train_batch_size
    if gradient_accumulation_steps > 1:
        field += " / gradient_accumulation_steps"
        batch_size //= gradient_accumulation_steps
    if batch_size % replicas:
        below = batch_size - batch_size % replicas
        raise UserError(
            f"{field} is {batch_size}, which {replicas} replicas cannot share"
            f" evenly. Set a multiple of {replicas}, such as"
            f" {below or replicas} or {below + replicas}."
        )


def describe_devices(strategy: tf.distribute.Strategy, cores: int = 1) -> str:
    """Return a line that names the strategy, its replicas and the devices.

    Args:
      strategy: result of `create_strategy`.
      cores: result of `threads.count_cores`.
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
        line = f"{line}; {cores} cores share each batch"
    return line
