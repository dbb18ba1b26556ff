# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the jobs of a build on worker processes and shows how far they are."""

import multiprocessing
import queue
import sys
import time
import traceback
from collections.abc import Callable

from configure.errors import UserError
from electra_tf.data.example_writer import (
    BuildOptions,
    Job,
    JobReport,
    run_job,
)
from electra_tf.text.tokenization import FullTokenizer

_SECONDS_BETWEEN_REPORTS = 5.0

OnDone = Callable[[Job, JobReport], None]
Say = Callable[[str], None]


class _Progress:
    """Passes on at most one progress line every few seconds."""

    def __init__(self, job: Job, say: Say):
        self._label = f"Job {job.index + 1} of {job.count}:"
        self._say = say
        self._started = self._last = time.monotonic()

    def __call__(self, share: float, num_examples: int) -> None:
        now = time.monotonic()
        if now - self._last < _SECONDS_BETWEEN_REPORTS or not share:
            return
        self._last = now
        elapsed = now - self._started
        eta = elapsed / share - elapsed
        self._say(
            f"{self._label} {100 * share:.1f}%, ELAPSED: {elapsed:.0f}s, "
            f"ETA: {eta:.0f}s, {num_examples:,} examples written"
        )


def run_jobs(
    options: BuildOptions, jobs: list[Job], on_done: OnDone, say: Say
) -> None:
    """Runs jobs, on worker processes if there is more than one.

    Args:
      options: of the build.
      jobs: what is left to do.
      on_done: called here with each finished job and its report.
      say: takes lines of progress.

    Raises:
      UserError: of a worker, or because one was killed. Jobs that were
        reported as done stay done.
    """
    tokenizer = FullTokenizer(
        options.vocab_file, options.do_lower_case, options.strip_accents
    )
    num_workers = min(options.num_processes, len(jobs))
    if num_workers > 1:
        _run_on_workers(options, tokenizer, jobs, num_workers, on_done, say)
        return
    for job in jobs:
        report = run_job(options, job, tokenizer, _Progress(job, say))
        on_done(job, report)


def _run_on_workers(
    options, tokenizer, jobs, num_workers, on_done, say
) -> None:
    context = multiprocessing.get_context(_start_method())
    waiting = context.SimpleQueue()
    messages = context.Queue()
    for job in jobs:
        waiting.put(job)
    for _ in range(num_workers):
        waiting.put(None)
    workers = [
        context.Process(
            target=_work,
            args=(options, tokenizer, waiting, messages),
            daemon=True,
        )
        for _ in range(num_workers)
    ]
    try:
        for worker in workers:
            worker.start()
        left = len(jobs)
        while left:
            message = _next_message(messages, workers)
            if message[0] == "say":
                say(message[1])
            elif message[0] == "done":
                on_done(message[1], message[2])
                left -= 1
            elif message[0] == "user error":
                raise UserError(message[1])
            else:
                raise RuntimeError(f"A worker failed:\n{message[1]}")
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()


def _start_method() -> str:
    """Forking is instant, but not safe once TensorFlow runs its threads."""
    methods = multiprocessing.get_all_start_methods()
    safe = sys.platform == "linux" and "tensorflow" not in sys.modules
    return "fork" if safe and "fork" in methods else "spawn"


def _next_message(messages, workers) -> tuple:
    while True:
        try:
            return messages.get(timeout=0.5)
        except queue.Empty:
            for worker in workers:
                # None: running. 0: no jobs were left for it.
                if worker.exitcode:
                    raise UserError(
                        f"A worker process ended with code {worker.exitcode} "
                        "(killed, or out of memory?). Finished jobs are kept; "
                        "run the same command again to go on."
                    ) from None


def _work(
    options: BuildOptions, tokenizer: FullTokenizer, waiting, messages
) -> None:
    """What a worker process does."""
    try:
        while (job := waiting.get()) is not None:
            progress = _Progress(job, lambda line: messages.put(("say", line)))
            report = run_job(options, job, tokenizer, progress)
            messages.put(("done", job, report))
    except KeyboardInterrupt:
        pass
    except UserError as error:
        messages.put(("user error", str(error)))
    except Exception:
        messages.put(("failed", traceback.format_exc()))
