# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where to train: one device, several GPUs, several workers or a TPU."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from configure.errors import UserError
from electra_tf.plan import memory


def from_config(config: Any) -> tf.distribute.Strategy:
    """The strategy a run's config asks for, fit for its batches.

    Its scope must be active while variables are created. It must be made
    before anything else starts TensorFlow's runtime: workers cannot be
    connected afterwards.

    Raises:
      UserError: no GPU though one is required, a worker or TPU set-up that is
        not there, or batches or settings that its replicas cannot share.
    """
    strategy = _create(config)
    check_replicas(strategy, config)
    return strategy


def check_replicas(strategy: tf.distribute.Strategy, config: Any) -> None:
    """Refuses batches and settings that replicas cannot share."""
    replicas, field = strategy.num_replicas_in_sync, "train_batch_size"
    # A TPU compiles everything by itself.
    on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    if config.jit_compile and replicas > 1 and not on_tpu:
        raise UserError(
            f"jit_compile: {replicas} replicas cannot add up their gradients"
            " within one XLA program; leave jit_compile out, or use"
            " --distribution_strategy=one_device."
        )
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


def _create(config: Any) -> tf.distribute.Strategy:
    # Listing logical devices would start the runtime; this does not.
    if config.require_gpu and not tf.config.get_visible_devices("GPU"):
        raise UserError(
            "require_gpu is true but TensorFlow sees no GPU. Check the driver"
            " with `nvidia-smi`, install `tensorflow[and-cuda]`, or leave out"
            " --require_gpu to train on the CPU."
        )
    name = config.distribution_strategy
    if name == "multi_worker":
        try:
            return tf.distribute.MultiWorkerMirroredStrategy()
        except (ValueError, RuntimeError, tf.errors.OpError) as error:
            raise UserError(
                "distribution_strategy is 'multi_worker' but the workers cannot"
                f" be reached ({error}). Set TF_CONFIG on every worker before"
                " start."
            ) from error
    if name == "tpu" or (name == "auto" and config.use_tpu):
        return _tpu(config)
    gpus = tf.config.list_logical_devices("GPU")
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        devices = gpus or tf.config.list_logical_devices("CPU")
        return _mirrored(*(device.name for device in devices))
    return tf.distribute.OneDeviceStrategy("/gpu:0" if gpus else "/cpu:0")


@functools.cache
def _mirrored(*devices: str) -> tf.distribute.Strategy:
    """One for all runs of a process, such as the tasks of GLUE.

    A second one would number its collective operations from the start again,
    and TensorFlow refuses a number it has seen with another shape.
    """
    return tf.distribute.MirroredStrategy(devices)


def use_threads(threads: int) -> None:
    """Sets how many threads share one operation on the CPU."""
    if not threads:
        return
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    except RuntimeError as error:
        raise UserError(
            f"threads is {threads}, but TensorFlow is running already, with"
            f" {tf.config.threading.get_intra_op_parallelism_threads()} (0:"
            " its own choice). Set it before anything else uses TensorFlow in"
            " this process."
        ) from error


def describe(strategy: tf.distribute.Strategy) -> str:
    """One line: the strategy, its replicas and the devices TensorFlow sees."""
    devices = [
        device.name.rsplit("device:", 1)[-1]
        for kind in ("GPU", "TPU", "CPU")
        for device in tf.config.list_logical_devices(kind)
    ]
    replicas = strategy.num_replicas_in_sync
    noun = "replica" if replicas == 1 else "replicas"
    return (
        f"{type(strategy).__name__}, {replicas} {noun}; devices:"
        f" {', '.join(devices)}"
    )


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process writes the logs and the kept checkpoints."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return True
    resolver = strategy.cluster_resolver
    if resolver.task_type != "worker":
        return True
    jobs = resolver.cluster_spec().jobs
    return resolver.task_id == 0 and "chief" not in jobs


def from_chief(strategy: tf.distribute.Strategy, value: int) -> int:
    """The chief's value on every worker, which all wait for each other."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return value

    def replica() -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        first = tf.cast(context.replica_id_in_sync_group == 0, tf.int32)
        return sum_over_replicas([first * value])[0]

    found = tf.function(strategy.run, autograph=False)(replica)
    return int(strategy.experimental_local_results(found)[0])


def replica_rows(features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """The rows of the global batch [B, ...] that belong to this replica.

    Every replica is given the whole batch and takes its own slice, so the
    iterator stays a plain one, which a checkpoint can hold (those of
    `experimental_distribute_dataset` cannot be saved).
    """
    context = tf.distribute.get_replica_context()
    replicas = context.num_replicas_in_sync
    if replicas == 1:
        return features
    index = context.replica_id_in_sync_group

    def rows(batch: tf.Tensor) -> tf.Tensor:
        count = (batch.shape[0] or tf.shape(batch)[0]) // replicas
        return batch[index * count : (index + 1) * count]

    return {name: rows(batch) for name, batch in features.items()}


def sum_over_replicas(
    values: Sequence[tf.Tensor | tf.IndexedSlices | None],
) -> Sequence[tf.Tensor | tf.IndexedSlices | None]:
    """Adds tensors or IndexedSlices over all replicas; None stays None."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return values
    present = [value for value in values if value is not None]
    summed = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, present))
    return [None if value is None else next(summed) for value in values]


@contextlib.contextmanager
def creation_scope(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Where variables are created: replicas keep what the first one assigns.

    All replicas compute the same update from summed gradients, so a plain
    `assign` inside a step needs no reduction of its own.
    """

    def first_replica_writes(
        next_creator: Callable[..., tf.Variable], **kwargs: Any
    ) -> tf.Variable:
        if kwargs.get("aggregation") in (None, tf.VariableAggregation.NONE):
            kwargs["aggregation"] = tf.VariableAggregation.ONLY_FIRST_REPLICA
        return next_creator(**kwargs)

    with strategy.scope():
        if strategy.num_replicas_in_sync == 1:
            yield
            return
        with tf.variable_creator_scope(first_replica_writes):
            yield


def _tpu(config: Any) -> tf.distribute.Strategy:
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
    except Exception as error:  # The client raises many unrelated kinds.
        raise UserError(
            f"no TPU {config.tpu_name or '(tpu_name unset)'} can be reached:"
            f" {error}. Check tpu_name, tpu_zone and gcp_project, or set"
            " use_tpu to false."
        ) from error


# Whether its memory holds the activations of blocks.


def uses_remat(config: Any, kept: memory.MemoryEstimate) -> bool:
    """Decides the hparam `recompute_grad` where it is null, and says so once.

    Depends on the machine's memory, not on what of it is free: a run that
    continues on the same machine computes as before.
    """
    if config.recompute_grad is not None or not config.do_train:
        return bool(config.recompute_grad)
    strategy = tf.distribute.get_strategy()
    devices = tf.config.list_physical_devices()
    # TensorFlow does not say how much memory accelerators have.
    if isinstance(strategy, tf.distribute.TPUStrategy) or any(
        device.device_type != "CPU" for device in devices
    ):
        return False
    machine = memory.machine_memory()
    if not memory.keeps_too_much(kept, machine):
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


def rows_of_a_machine(batch_size: int) -> int:
    """Returns how many rows of a batch one machine without GPUs computes."""
    strategy = tf.distribute.get_strategy()
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return batch_size  # Several devices of one machine share its memory.
    return -(-batch_size // strategy.num_replicas_in_sync)
