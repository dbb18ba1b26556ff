# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Apache Beam runs the jobs of a build, in processes here or on a cluster.

A finished job leaves its report beside its records: the one way back from a
worker that every runner of Beam has.
"""

import json
import os
import pathlib
import queue
import shlex
import threading
import uuid
from collections.abc import Callable
from typing import Any, NoReturn

from configure.errors import UserError, missing_extra
from electra_tf.data import build, example_writer
from electra_tf.data.build_options import BuildOptions
from electra_tf.data.example_writer import Job, JobReport
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import read_json

try:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions
except ImportError as error:
    raise missing_extra("--runner=beam: Apache Beam", "beam", error) from error

# Runners whose job server knows more flags than Beam's Python part does.
_OWN_FLAGS = ("flink", "portable", "spark")
_PACKAGES = str(pathlib.Path(__file__).parents[2])


class _RunJob(beam.DoFn):
    def __init__(self, options: BuildOptions) -> None:
        self._options = options

    def setup(self) -> None:
        self._tokenizer = build.open_tokenizer(self._options)

    def process(self, job: Job) -> None:
        # Some runners do a job twice at once; each has its own files then.
        job = job._replace(attempt=f"{uuid.uuid4().hex[:12]}-")
        try:
            report = example_writer.run_job(
                self._options, job, self._tokenizer, build.Progress(job)
            )
        except UserError as error:  # Runners hand it on as a traceback.
            report = {"error": str(error)}
        path = _report_path(self._options, job)
        temporary = _report_path(self._options, job, job.attempt)
        write_atomically(path, json.dumps(report), temporary)


def _run_here(pipeline: beam.Pipeline) -> BaseException | None:
    """Runs it to its end, or until a worker on this machine is gone.

    In a thread: for a worker that was killed Beam would wait for ever.
    """
    ends: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            pipeline.run().wait_until_finish()
            ends.put(None)
        except BaseException as error:  # Every runner raises its own.
            ends.put(error)

    def on_lost(said: threading.ExceptHookArgs) -> None:
        hook(said)
        if "Worker subprocess" in str(said.exc_value):
            ends.put(said.exc_value)

    hook, threading.excepthook = threading.excepthook, on_lost
    try:
        threading.Thread(target=run, daemon=True).start()
        return ends.get()
    finally:
        threading.excepthook = hook


def _report_path(options: BuildOptions, job: Job, attempt: str = "") -> str:
    name = f"{example_writer.TEMPORARY_PREFIX}{attempt}job-{job.index}.json"
    return os.path.join(options.output_dir, name)


def run_jobs(
    pipeline: beam.Pipeline,
    options: BuildOptions,
    jobs: list[Job],
    on_done: Callable[[Job, JobReport], None],
) -> None:
    """Runs jobs; those whose report lies there already were done before."""
    failure: BaseException | None = None

    def unfinished(jobs: list[Job]) -> list[tuple[Job, str]]:
        found = []
        for job in jobs:
            path = _report_path(options, job)
            report = read_json(path) if filesystem.exists(path) else {}
            if "counts" in report:
                on_done(job, report)
            else:
                found.append((job, report.get("error", "")))
        return found

    if left := [job for job, _ in unfinished(jobs)]:
        # Workers here import this package, wherever the command was started.
        paths = [_PACKAGES, os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        made = pipeline | beam.Create(left).with_output_types(Any)
        made | beam.Reshuffle() | beam.ParDo(_RunJob(options))
        failure = _run_here(pipeline)
    if failed := unfinished(left):
        ended = f"Beam's run ended: {failure!r:.500}"
        raise UserError(
            f"{max(text for _, text in failed) or ended}\n({len(failed)} of"
            f" {len(jobs)} jobs failed. Finished jobs are kept; run the same"
            " command again to go on.)"
        ) from failure


def open_pipeline(options: BuildOptions) -> beam.Pipeline:
    """Makes an empty pipeline; refuses flags that Beam does not know."""

    def refuse(reason: object) -> NoReturn:
        raise UserError(f"--beam_options={options.beam_options}: {reason}")

    parsers: list = []
    PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
    (parser,) = parsers
    parser.error = refuse
    try:
        words = shlex.split(options.beam_options)
    except ValueError as error:
        refuse(error)
    given, unknown = parser.parse_known_args(words)
    lenient = (given.runner or "").lower().startswith(_OWN_FLAGS)
    strange = [w for w in unknown if not (lenient and w.startswith("--"))]
    if strange:
        refuse(f"Apache Beam knows no {' '.join(strange)}")
    here = ["--runner=FnApiRunner", "--direct_running_mode=multi_processing"]
    here.append(f"--direct_num_workers={options.num_processes}")
    try:
        return beam.Pipeline(options=PipelineOptions([*here, *words]))
    except (ValueError, ImportError, AttributeError) as error:
        refuse(error)
