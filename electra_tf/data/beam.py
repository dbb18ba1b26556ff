# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds of pre-training records on Apache Beam, locally or on a cluster.

Files are the only results of workers that all of Beam's runners keep. A
finished job therefore writes its report to a file next to its records.
"""

import json
import os
import pathlib
import queue
import shlex
import threading
import uuid
from typing import Any, NoReturn

from configure.errors import UserError, missing_extra
from electra_tf.data.build_options import BuildOptions
from electra_tf.data.jobs import Job, JobRunner, OnDone
from electra_tf.data.tfrecords import TEMPORARY_PREFIX
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import read_json

try:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions
except ImportError as error:
    raise missing_extra("--runner=beam: Apache Beam", "beam", error) from error

# Runners whose job servers accept flags that Beam's Python code rejects.
_RUNNERS_WITH_OWN_FLAGS = ("flink", "portable", "spark")
_PACKAGES = str(pathlib.Path(__file__).parents[2])


class _RunJob(beam.DoFn):
    def __init__(self, runner: JobRunner) -> None:
        self._runner = runner

    def setup(self) -> None:
        self._runner.prepare()

    def process(self, job: Job) -> None:
        # Some runners start a job twice at the same time, so each attempt needs
        # separate files.
        job = job._replace(attempt=f"{uuid.uuid4().hex[:12]}-")
        try:
            report = self._runner.run(job)
        # A runner would log an exception as a traceback, so the report contains
        # the message instead.
        except UserError as error:
            report = {"error": str(error)}
        options = self._runner.options
        path = _report_path(options, job)
        temporary = _report_path(options, job, job.attempt)
        write_atomically(path, json.dumps(report), temporary)


def _run_here(pipeline: beam.Pipeline) -> BaseException | None:
    """Run a pipeline; return its error, or the error of a lost worker.

    Beam would wait forever for a killed worker. The pipeline therefore runs in
    a thread, which is abandoned if a worker is lost.
    """
    errors: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            pipeline.run().wait_until_finish()
            errors.put(None)
        # The runners of Beam raise errors of different classes.
        except BaseException as error:
            errors.put(error)

    def on_lost(arguments: threading.ExceptHookArgs) -> None:
        hook(arguments)
        if "Worker subprocess" in str(arguments.exc_value):
            errors.put(arguments.exc_value)

    hook, threading.excepthook = threading.excepthook, on_lost
    try:
        threading.Thread(target=run, daemon=True).start()
        return errors.get()
    finally:
        threading.excepthook = hook


def _report_path(options: BuildOptions, job: Job, attempt: str = "") -> str:
    name = f"{TEMPORARY_PREFIX}{attempt}job-{job.index}.json"
    return os.path.join(options.output_dir, name)


def run_jobs(
    pipeline: beam.Pipeline,
    runner: JobRunner,
    jobs: list[Job],
    on_done: OnDone,
) -> None:
    """Run the jobs that have no report yet."""
    failure: BaseException | None = None

    def unfinished(jobs: list[Job]) -> list[tuple[Job, str]]:
        """Pass finished jobs to `on_done`; return other jobs with errors."""
        remaining = []
        for job in jobs:
            path = _report_path(runner.options, job)
            report = read_json(path) if filesystem.exists(path) else {}
            if "counts" in report:
                on_done(job, report)
            else:
                remaining.append((job, report.get("error", "")))
        return remaining

    if remaining := [job for job, _ in unfinished(jobs)]:
        # Local workers import this package from its folder, regardless of the
        # command's working directory.
        paths = [_PACKAGES, os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        inputs = pipeline | beam.Create(remaining).with_output_types(Any)
        inputs | beam.Reshuffle() | beam.ParDo(_RunJob(runner))
        failure = _run_here(pipeline)
    if failed := unfinished(remaining):
        reason = max(error for _, error in failed)
        if not reason:
            reason = f"Apache Beam failed: {failure!r:.500}"
        raise UserError(
            f"{reason}\n({len(failed)} of {len(jobs)} jobs failed. Finished"
            " jobs are kept. Run the same command again to continue.)"
        ) from failure


def open_pipeline(options: BuildOptions) -> beam.Pipeline:
    """Return an empty pipeline with the options of --beam_options.

    Raises:
      UserError: Beam rejects a flag.
    """

    def refuse(reason: object) -> NoReturn:
        raise UserError(f"--beam_options={options.beam_options}: {reason}")

    parsers: list = []
    PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
    (parser,) = parsers
    parser.error = refuse
    try:
        arguments = shlex.split(options.beam_options)
    except ValueError as error:
        refuse(error)
    parsed, unknown = parser.parse_known_args(arguments)
    runner_name = (parsed.runner or "").lower()
    if runner_name.startswith(_RUNNERS_WITH_OWN_FLAGS):
        unknown = [name for name in unknown if not name.startswith("--")]
    if unknown:
        refuse(
            f"Apache Beam has no flags {' '.join(unknown)}. Correct or remove"
            " these flags."
        )
    defaults = [
        "--runner=FnApiRunner",
        "--direct_running_mode=multi_processing",
        f"--direct_num_workers={options.num_processes}",
    ]
    try:
        return beam.Pipeline(options=PipelineOptions([*defaults, *arguments]))
    except (ValueError, ImportError, AttributeError) as error:
        refuse(error)
