# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Jobs, which process the parts of a corpus, and their worker processes."""

import multiprocessing
import sys
from collections.abc import Callable
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple, Protocol

from configure.errors import UserError
from electra_tf import processes
from electra_tf.data import corpora
from electra_tf.data.build_options import BuildOptions

# Numbers of jobs per process and of text pieces per job, with draws=document.
# With small jobs, workers end at about the same time, and an interrupted build
# loses less work.
_JOBS_PER_PROCESS = 8
_PIECES_PER_JOB = 4
_SMALLEST_PIECE = 1 << 16  # bytes
# Approximate number of bytes of the text whose letters are counted.
_BYTES_COUNTED = 1 << 20
_BYTES_PER_EXAMPLE = 1000  # approximate bytes of text in a TFDS example


class Job(NamedTuple):
    """Part of a build that a worker processes without interruption."""

    index: int  # index among `count` jobs
    count: int  # number of jobs of the build
    sources: list[corpora.Source]  # text that the job reads
    attempt: str = ""  # part of temporary names, if a job can run twice at once
    every: int = 1  # letters are counted in one of this many lines


# Result of a finished job: `counts`, which are summed over jobs; `invalid`, for
# each file name [offset of the first invalid byte, number of invalid bytes];
# `shards` and `held_out_shards`, with name, records and bytes of each shard;
# `scripts`, counts of letters in a sample of lines
# (electra_tf/text/changed_letters.py).
JobReport = dict[str, Any]


class JobRunner(Protocol):
    """Runner of jobs; a build copies the runner to its worker processes."""

    options: BuildOptions

    def prepare(self) -> None:
        """Open the resources that jobs need, once in each process."""

    def run(self, job: Job) -> JobReport:
        """Run a job in the process that called `prepare`."""


OnDone = Callable[[Job, JobReport], None]
RunJobs = Callable[[JobRunner, list[Job], OnDone], None]


def count_jobs(options: BuildOptions, sources: list[corpora.Source]) -> int:
    """Return the number of jobs of a build."""
    if options.draws == "stream":
        return options.num_processes
    count = options.num_processes * _JOBS_PER_PROCESS
    if options.corpus.corpus_format != "tfds":
        # A small corpus has fewer jobs, because a job without text would write
        # empty shards.
        pieces = 0
        for source in sources:
            if corpora.can_be_cut(source, options.corpus):
                pieces += -(-source.size // _SMALLEST_PIECE)
            else:
                pieces += 1
        count = min(count, max(options.num_processes, pieces))
    return min(options.num_shards, count)


def plan_jobs(
    options: BuildOptions, sources: list[corpora.Source], num_jobs: int
) -> list[Job]:
    """Split a build into jobs."""
    total = sum(source.size for source in sources)
    is_tfds = options.corpus.corpus_format == "tfds"
    num_bytes = total * _BYTES_PER_EXAMPLE if is_tfds else total
    every = max(1, num_bytes // _BYTES_COUNTED)
    if options.draws == "stream" and not is_tfds:
        parts = sources
    else:
        per_job = 1 if options.draws == "stream" else _PIECES_PER_JOB
        aim = max(1, -(-total // (num_jobs * per_job)))
        if not is_tfds:
            aim = max(aim, _SMALLEST_PIECE)
        parts = []
        for source in sources:
            count = -(-source.size // aim)
            parts += corpora.split_source(source, options.corpus, count)
    return [
        Job(index, num_jobs, parts[index::num_jobs], every=every)
        for index in range(num_jobs)
    ]


_worker_runner: JobRunner  # runner of this worker process


def _prepare_worker(runner: JobRunner) -> None:
    global _worker_runner
    processes.become_worker()
    runner.prepare()
    _worker_runner = runner


def _run_in_worker(job: Job) -> JobReport:
    return _worker_runner.run(job)


def run_jobs(runner: JobRunner, jobs: list[Job], on_done: OnDone) -> None:
    """Run jobs in worker processes, or in this process if one is enough."""
    num_workers = min(runner.options.num_processes, len(jobs))
    if num_workers <= 1:
        runner.prepare()
        for job in jobs:
            on_done(job, runner.run(job))
        return
    earlier_children = multiprocessing.active_children()
    pool = futures.ProcessPoolExecutor(
        num_workers,
        multiprocessing.get_context(_start_method()),
        _prepare_worker,
        (runner,),
    )
    try:
        with processes.interrupts_later():
            running = {pool.submit(_run_in_worker, job): job for job in jobs}
        for done in futures.as_completed(running):
            on_done(running[done], done.result())
    except BrokenProcessPool as error:
        raise UserError(
            "A worker process ended unexpectedly; it was killed or ran out of"
            " memory. Finished jobs are kept. Run the same command again to"
            " continue."
        ) from error
    finally:
        for worker in multiprocessing.active_children():
            if worker not in earlier_children:
                worker.terminate()
        pool.shutdown()


def _start_method() -> str:
    """Return "fork" on Linux without TensorFlow, otherwise "spawn"."""
    methods = multiprocessing.get_all_start_methods()
    safe = sys.platform == "linux" and "tensorflow" not in sys.modules
    return "fork" if safe and "fork" in methods else "spawn"
