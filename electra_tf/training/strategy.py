# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where to train: one device, several GPUs, several workers or a TPU."""

import contextlib
import functools
import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from configure.errors import TRY_AGAIN, UserError
from configure.formatting import limit_lines
from electra_tf.plan import memory
from electra_tf.training.cluster import check_cluster

MEET_SECONDS = 600


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
        return _workers()
    if name == "tpu" or (name == "auto" and config.use_tpu):
        return _tpu(config)
    gpus = tf.config.list_logical_devices("GPU")
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        devices = gpus or tf.config.list_logical_devices("CPU")
        return _mirrored(*(device.name for device in devices))
    return tf.distribute.OneDeviceStrategy("/gpu:0" if gpus else "/cpu:0")


def _workers() -> tf.distribute.Strategy:
    """One of all workers, once they have met."""
    if not os.environ.get("TF_CONFIG"):
        raise UserError(
            "distribution_strategy is 'multi_worker' but TF_CONFIG is not set:"
            " each process would train alone. Set it on every worker."
        )
    check_cluster(os.environ["TF_CONFIG"])
    print(f"Waiting {MEET_SECONDS} seconds for all workers", flush=True)
    # The system's alarm: TensorFlow would wait for an hour, and no thread of
    # Python might run meanwhile.
    signal.alarm(MEET_SECONDS)
    try:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        signal.alarm(0)
        raise UserError(
            "distribution_strategy is 'multi_worker' but the workers cannot"
            f" be reached ({error}). Start them on the addresses of TF_CONFIG."
        ) from error
    gathered(strategy, 0)
    signal.alarm(0)
    return strategy


@functools.cache
def _mirrored(*devices: str) -> tf.distribute.Strategy:
    """One for all runs of a process, such as the tasks of GLUE.

    A second one would number its collective operations from the start again,
    and TensorFlow refuses a number it has seen with another shape.
    """
    return tf.distribute.MirroredStrategy(devices)


def use_threads(config: Any) -> None:
    """Sets how many threads share one operation on the CPU.

    Where that is left open, one on a small machine, whose `cores` compute rows
    of a batch each instead: none waits for the last thread of an operation.
    """
    threads = 1 if _cores_taking_rows(config) > 1 else config.threads
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
            " choice; 1: perhaps that of a run before this one). Set it before"
            " anything else uses TensorFlow in this process."
        ) from error


def cores(config: Any, strategy: tf.distribute.Strategy) -> int:
    """Into how many parts a batch is cut, which are computed side by side."""
    alone = tf.config.threading.get_intra_op_parallelism_threads() == 1
    alone &= strategy.num_replicas_in_sync == 1
    return _cores_taking_rows(config) if alone else 1


def _cores_taking_rows(config: Any) -> int:
    gpus = tf.config.get_visible_devices("GPU")
    return 1 if gpus else memory.cores_taking_rows(config)


def describe(strategy: tf.distribute.Strategy, at_once: int = 1) -> str:
    """One line: strategy, replicas, `cores`, the devices TensorFlow sees."""
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
        + (f"; {at_once} cores take rows of a batch each" * (at_once > 1))
    )


# Several workers.


class WorkerLostError(UserError):
    """A worker is gone, and the others cannot go on without it."""

    exit_status = TRY_AGAIN


@contextlib.contextmanager
def lost_workers_told(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Turns what TensorFlow raises where a worker is gone into a message."""
    try:
        yield
    except tf.errors.OpError as error:
        lost = (
            tf.errors.AbortedError,
            tf.errors.CancelledError,
            tf.errors.DeadlineExceededError,
            tf.errors.UnavailableError,
        )
        lost = isinstance(error, lost) or "ollective" in error.message
        if worker_of(strategy)[1] == 1 or not lost:
            raise
        raise WorkerLostError(
            "another worker ended, or cannot be reached any more, and this one"
            f" cannot go on alone ({error.message.splitlines()[0][:300]})."
            " Start all workers again with the same command (without"
            " --overwrite): they go on from the last checkpoint."
        ) from error


def worker_of(strategy: tf.distribute.Strategy) -> tuple[int, int]:
    """This process's number among the workers, the chief 0, and how many."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return 0, 1
    resolver = strategy.cluster_resolver
    jobs = resolver.cluster_spec().as_dict()
    before = len(jobs.get("chief", ())) * (resolver.task_type == "worker")
    workers = sum(len(jobs.get(job, ())) for job in ("chief", "worker"))
    return (resolver.task_id or 0) + before, max(workers, 1)


@functools.cache
def _gather(strategy: tf.distribute.Strategy) -> Callable[..., Any]:
    def replica(value: tf.Tensor) -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        return context.all_gather(tf.identity(value), axis=0)  # on its device

    return tf.function(
        lambda value: strategy.run(replica, args=(value,)), autograph=False
    )


def gathered(strategy: tf.distribute.Strategy, value: Any) -> np.ndarray:
    """Every worker's integers, [workers, ...]; all wait for each other."""
    rows = np.array([value], np.int32)
    _, workers = worker_of(strategy)
    if workers == 1:
        return rows
    with lost_workers_told(strategy):
        found = _gather(strategy)(tf.constant(rows))
        rows = strategy.experimental_local_results(found)[0].numpy()
    return rows[:: len(rows) // workers]


@contextlib.contextmanager
def in_turn(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Lets one worker after the other in, the chief first.

    For what all do with the same files: others find what the chief made.
    """
    worker, workers = worker_of(strategy)
    for _ in range(worker):
        gathered(strategy, 0)
    yield
    for _ in range(workers - worker):
        gathered(strategy, 0)


# What workers may have each for itself.
_OWN_HPARAMS = frozenset(
    """
    data_dir model_dir preprocessed_data_dir require_gpu results_json
    results_pkl results_txt tfds_data_dir threads
    """.split()
)


def refuse_differences(
    strategy: tf.distribute.Strategy, config: Any, facts: dict[str, Any]
) -> None:
    """Compares what workers were started with; all refuse what differs.

    Before a variable is made: making some of other shapes would wait for ever.

    Args:
      facts: what is compared beside hparams, or in place of some.
    """
    left_out = _OWN_HPARAMS.union(facts)
    facts = facts | {
        f"hparam {name}": value
        for name, value in config.as_dict().items()
        if name not in left_out
    }
    packed = json.dumps(facts).encode()
    size = gathered(strategy, len(packed)).max()
    packed = packed.ljust(-(-size // 4) * 4)  # as whole integers
    found = gathered(strategy, np.frombuffer(packed, np.int32))
    chief, *others = (json.loads(row.tobytes()) for row in found)
    lines = [
        f"{name}: {chief.get(name)!r} on worker 0, {other.get(name)!r} on"
        f" worker {number}"
        for number, other in enumerate(others, 1)
        for name in sorted(chief.keys() | other.keys())
        if chief.get(name) != other.get(name)
    ]
    if lines:
        raise UserError(
            "the workers were not started alike, and nothing was trained:\n"
            + "\n".join(limit_lines(lines, limit=20))
            + "\nStart all of them with the same flags and the same files."
        )


def worker_rows(
    batches: Iterator[dict[str, tf.Tensor]],
    strategy: tf.distribute.Strategy,
    batch_size: int,
) -> Iterator[dict[str, tf.Tensor]]:
    """A worker's every n-th row of batches that may hold all rows.

    Those of the chief do, and any worker's that were read ahead when the
    checkpoint that it goes on from was written.
    """
    worker, workers = worker_of(strategy)
    for batch in batches:
        whole = next(iter(batch.values())).shape[0] == batch_size
        if workers > 1 and whole:
            batch = {n: rows[worker::workers] for n, rows in batch.items()}
        yield batch


# Replicas.


class BatchRows(NamedTuple):
    """Which rows of a global batch a replica, or a micro-batch, has."""

    seed: tf.Tensor  # int32 [2], of the draws of the whole batch
    places: tf.Tensor | None  # int32 [B], of the rows; None: all, in order
    size: Any  # of the whole batch; a tensor where Keras does not know it

    def micro_batch(self, index: tf.Tensor, count: int) -> "BatchRows":
        """The rows of one of `count` micro-batches."""
        whole = self.places is None
        places = tf.range(self.size) if whole else self.places
        rows = places.shape[0] // count
        places = tf.slice(places, [index * rows], [rows])
        return self._replace(places=places)

    def drawn(self, draw: Callable[[Any, tf.Tensor], Any], rows: Any) -> Any:
        """What `draw(rows, seed)` draws for these rows, [B, ...] all.

        One device draws for the whole batch at once: a row's draws follow from
        its place, so each has them only where all other rows stand, too.
        """
        if self.places is None:
            return draw(rows, self.seed)

        def whole(tensor: tf.Tensor) -> tf.Tensor:
            shape = [self.size, *tensor.shape[1:]]
            return tf.scatter_nd(self.places[:, None], tensor, shape)

        drawn = draw(tf.nest.map_structure(whole, rows), self.seed)
        return tf.nest.map_structure(lambda t: tf.gather(t, self.places), drawn)


def batch_rows(
    rows: dict[str, tf.Tensor],
    seed: tf.Tensor,
    worker: tuple[int, int] = (0, 1),
) -> BatchRows:
    """Where the rows of this replica are in the global batch.

    Args:
      worker: w and n, where the replicas of worker w share every n-th row.
    """
    index, replicas = _replica_of(worker)
    first, step = worker
    tensor = next(iter(rows.values()))
    count = tensor.shape[0] or tf.shape(tensor)[0]
    if replicas * step == 1:
        return BatchRows(seed, None, count)
    places = (tf.range(count) + index * count) * step + first
    return BatchRows(seed, places, count * replicas * step)


def _replica_of(worker: tuple[int, int]) -> tuple[Any, int]:
    """This replica's number among its worker's, and how many those are."""
    context = tf.distribute.get_replica_context()
    replicas = context.num_replicas_in_sync // worker[1]
    return context.replica_id_in_sync_group - worker[0] * replicas, replicas


def replica_rows(
    features: dict[str, tf.Tensor], worker: tuple[int, int] = (0, 1)
) -> dict[str, tf.Tensor]:
    """The rows of a worker's batch [B, ...] that belong to this replica.

    Every replica is given the batch and takes its own slice, so the iterator
    stays a plain one, which a checkpoint can hold (those of
    `experimental_distribute_dataset` cannot be saved).
    """
    index, replicas = _replica_of(worker)
    if replicas == 1:
        return features

    def rows(batch: tf.Tensor) -> tf.Tensor:
        count = (batch.shape[0] or tf.shape(batch)[0]) // replicas
        return batch[index * count : (index + 1) * count]

    return {name: rows(batch) for name, batch in features.items()}


def replica_seed(seed: tf.Tensor) -> tf.Tensor:
    """A seed, int32 [2], for draws that no two replicas share (dropout)."""
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync == 1:
        return seed
    replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
    return tf.random.experimental.stateless_fold_in(seed, replica)


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
