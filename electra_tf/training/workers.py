# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Workers of a run: connecting, comparing settings, and taking turns."""

import contextlib
import functools
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from configure.errors import TRY_AGAIN, UserError
from configure.formatting import limit_lines
from electra_tf.training.cluster import read_cluster
from electra_tf.training.meeting import meet

CONNECT_SECONDS = 120  # seconds to connect, once all workers have met


class Worker(NamedTuple):
    """Position of this process among the workers of a run."""

    rank: int = 0  # 0: chief, which writes logs and checkpoints
    total: int = 1  # number of workers of the run

    @property
    def is_chief(self) -> bool:
        return self.rank == 0


ALONE = Worker()


class WorkerLostError(UserError):
    """Error about a lost worker; the other workers cannot continue alone."""

    exit_status = TRY_AGAIN


def connect_workers() -> tf.distribute.Strategy:
    """Connect the workers of TF_CONFIG, and return their strategy.

    Raises:
      UserError: TF_CONFIG is unset or invalid, or the addresses cannot be used.
    """
    if not os.environ.get("TF_CONFIG"):
        raise UserError(
            "distribution_strategy is 'multi_worker', but TF_CONFIG is not set,"
            " so each process would train alone. Set TF_CONFIG on all workers."
        )
    cluster = read_cluster(os.environ["TF_CONFIG"])
    meet(cluster)
    if len(cluster.workers) > 1:
        print(
            f"Connecting {len(cluster.workers)} workers. If they are not"
            f" connected after {CONNECT_SECONDS} seconds, this process ends"
            " with SIGALRM (status 142)",
            flush=True,
        )
    # The system's alarm is required, because TensorFlow would wait for an hour,
    # and Python runs no other thread meanwhile.
    signal.alarm(CONNECT_SECONDS)
    try:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        signal.alarm(0)
        raise UserError(
            "distribution_strategy is 'multi_worker', but the workers cannot be"
            f" reached ({error}). Start the workers on the addresses of"
            " TF_CONFIG."
        ) from error
    gather(strategy, 0)
    signal.alarm(0)
    return strategy


def current_worker(strategy: tf.distribute.Strategy) -> Worker:
    """Return this process's rank, and the number of workers."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return ALONE
    resolver = strategy.cluster_resolver
    jobs = resolver.cluster_spec().as_dict()
    index = resolver.task_id or 0
    if resolver.task_type == "worker":
        index += len(jobs.get("chief", ()))
    count = sum(len(jobs.get(job, ())) for job in ("chief", "worker"))
    return Worker(index, max(count, 1))


@contextlib.contextmanager
def reports_lost_workers(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Convert TensorFlow's errors about a lost worker to a WorkerLostError."""
    try:
        yield
    except tf.errors.OpError as error:
        lost_errors = (
            tf.errors.AbortedError,
            tf.errors.CancelledError,
            tf.errors.DeadlineExceededError,
            tf.errors.UnavailableError,
        )
        # The error message of an operation that all workers run contains
        # "collective" or "Collective".
        is_lost = isinstance(error, lost_errors) or "ollective" in error.message
        if current_worker(strategy).total == 1 or not is_lost:
            raise
        cause = error.message.partition("\n")[0]
        raise WorkerLostError(
            "another worker has ended or cannot be reached, and this worker"
            f" cannot continue alone ({cause[:300]})."
            " Start all workers again with the same command (without"
            " --overwrite) to continue from the last checkpoint."
        ) from error


def gather(
    strategy: tf.distribute.Strategy, value: npt.ArrayLike
) -> np.ndarray:
    """Return the values of all workers, int32 [workers, ...].

    All workers must call this function with a value of the same shape, and wait
    for the last call.
    """
    rows = np.array([value], np.int32)
    total = current_worker(strategy).total
    if total == 1:
        return rows
    with reports_lost_workers(strategy):
        gathered = _gather_function(strategy)(tf.constant(rows))
        rows = strategy.experimental_local_results(gathered)[0].numpy()
    # All replicas of a worker have the same row, of which one is kept.
    return rows[:: len(rows) // total]


@functools.cache
def _gather_function(strategy: tf.distribute.Strategy) -> Callable[..., Any]:
    def replica(value: tf.Tensor) -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        # `tf.identity` places the value on the replica's device.
        return context.all_gather(tf.identity(value), axis=0)

    return tf.function(
        lambda value: strategy.run(replica, args=(value,)), autograph=False
    )


def wait_for_workers(strategy: tf.distribute.Strategy) -> None:
    """Wait until all workers have called this function."""
    gather(strategy, 0)


@contextlib.contextmanager
def in_turn(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Run the block on one worker after the other, the chief first.

    Workers that write the same files then find the chief's files.
    """
    worker = current_worker(strategy)
    for _ in range(worker.rank):
        wait_for_workers(strategy)
    yield
    for _ in range(worker.total - worker.rank):
        wait_for_workers(strategy)


# Hparams that may differ between workers.
_FREE_HPARAMS = frozenset(
    """
    data_dir model_dir preprocessed_data_dir require_gpu results_json
    results_pkl results_txt tfds_data_dir threads
    """.split()
)


def refuse_differences(
    strategy: tf.distribute.Strategy,
    hparams: Mapping[str, object],
    facts: Mapping[str, object],
) -> None:
    """Raise a UserError on all workers if their settings differ.

    The comparison must precede the creation of variables, because creating
    variables of different shapes would wait forever.

    Args:
      strategy: strategy of the workers.
      hparams: hparams of the run, which are compared except paths and
        `threads`.
      facts: further values to compare; a fact with the name of an hparam
        replaces the hparam.
    """
    compared = {
        f"hparam {name}": value
        for name, value in hparams.items()
        if name not in _FREE_HPARAMS and name not in facts
    }
    packed = json.dumps({**facts, **compared}).encode()
    size = gather(strategy, len(packed)).max()
    packed = packed.ljust(-(-size // 4) * 4)  # padded to a multiple of 4 bytes
    rows = gather(strategy, np.frombuffer(packed, np.int32))
    chief, *others = (json.loads(row.tobytes()) for row in rows)
    lines = [
        f"{name} is {chief.get(name)!r} on worker 0, but {other.get(name)!r} on"
        f" worker {index}"
        for index, other in enumerate(others, 1)
        for name in sorted(chief.keys() | other.keys())
        if chief.get(name) != other.get(name)
    ]
    if lines:
        raise UserError(
            "training was not started, because the workers have different"
            " settings:\n"
            + "\n".join(limit_lines(lines, limit=20))
            + "\nStart all workers with the same flags and the same files."
        )
