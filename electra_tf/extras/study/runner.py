# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The runner of a study, which can continue after it was stopped or killed.

A run is executed in pieces. Each piece is a process of the run's command, which
continues from the checkpoint of the previous piece. A run is finished if its
line is in the results file. Nothing else is read, so that committed lines count
for runs on another machine.
"""

import contextlib
import ctypes
import datetime
import functools
import glob
import math
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any

import electra_tf
from configure.errors import UserError
from configure.json_text import parse_json
from electra_tf.checkpoints import formats
from electra_tf.data.fingerprints import files_fingerprint
from electra_tf.extras.study.inputs import ChangedInputs, describe_inputs
from electra_tf.extras.study.result_lines import (
    add_result_line,
    read_result_lines,
)
from electra_tf.extras.study.study_file import Run, Study
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import file_sha256
from electra_tf.files.json_fields import check_fields, is_number
from electra_tf.files.locks import folder_lock
from electra_tf.files.reading import read_text
from electra_tf.finetuning.trial_records import TrialRecord, read_results
from electra_tf.metrics import trial_statistics
from electra_tf.processes import PR_SET_PDEATHSIG

LOG = "study.log"
_EVAL_LOG = "eval_log.jsonl"
TIME_IS_UP = 3  # exit status
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(electra_tf.__file__)))
_LONGEST_ERROR = 300  # maximum number of characters of a failed run's message


class StoppedError(Exception):
    """A stop by the time limit or by a signal; `status` is the exit status."""

    def __init__(self, status: int) -> None:
        self.status = status


class StudyRunner:
    """The runner, which executes the runs of a study in their order.

    Attributes:
      results: path of the file of finished runs' lines.
      lines: digest -> line of a finished run.
      failed: name of a run -> reason.
    """

    def __init__(self, study: Study, piece: float, time_budget: float) -> None:
        """Read the lines of finished runs.

        Args:
          study: the study.
          piece: the seconds of a run's first process.
          time_budget: the seconds after which the study stops.
        """
        self._study, self._piece = study, piece
        self._marks = os.path.join(study.output, "done")
        self._deadline = time.monotonic() + time_budget
        self._child: subprocess.Popen | None = None
        self._signal = 0
        self._warnings: set[str] = set()
        self.results = os.path.splitext(study.path)[0] + ".jsonl"
        self.lines = read_result_lines(self.results)
        self.failed: dict[str, str] = {}

    def run(self) -> None:
        """Execute all runs that are not finished.

        Raises:
          StoppedError: the time is up, or a signal came.
          UserError: another study uses the folder.
        """
        folder, study = self._study.output, self._study
        filesystem.make_directory(folder)
        log = os.path.join(folder, LOG)
        with folder_lock(folder), open(log, "ab") as self._log:
            if study.tasks:
                self._link_tasks(folder)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._on_signal)
            self._warn_of_changed_data()
            for index in range(len(study.runs(self.lines))):
                # The runs are listed again each time, because finished runs
                # determine the learning rates of later runs.
                self._ensure(study.runs(self.lines)[index])

    def _warn_of_changed_data(self) -> None:
        """Warn once of finished runs whose data differs from that on disk."""
        changed_inputs = ChangedInputs()
        start_digest = functools.cache(_start_sha256)
        for run in self._study.runs(self.lines):
            line = self.lines.get(run.digest, {})
            if path := self._replaced_exam(run, line):
                self._warn(
                    f"warning: {run.name} was scored on an exam that differs"
                    f" from {path}. To repeat the run with the current exam,"
                    f" remove its line from {self.results}, and remove"
                    f" {run.folder}"
                )
            digest = line.get("start_sha256")
            if run.start and digest and digest != start_digest(run.start):
                self._warn(
                    f"warning: {run.name} started from weights that differ from"
                    f" those in {run.start}. To repeat the run with the current"
                    f" weights, remove its line from {self.results}, and remove"
                    f" {run.folder}"
                )
            for change in changed_inputs.list_changes(run, line):
                self._warn(
                    f"warning: the data of {run.name} has changed since the"
                    f" run: {change}. To repeat the run with the current data,"
                    f" remove its line from {self.results}, and remove"
                    f" {run.folder}"
                )

    def _warn(self, text: str) -> None:
        if text not in self._warnings:
            print(text, flush=True)
            self._warnings.add(text)

    def _replaced_exam(self, run: Run, line: Mapping[str, Any]) -> str | None:
        """Return the path of a run's exam if the file changed after the run."""
        path, digest = run.facts.get("exam"), line.get("exam_sha256")
        if not (path and digest and filesystem.exists(path)):
            return None
        return path if file_sha256(path) != digest else None

    def _link_tasks(self, folder: str) -> None:
        """Link the tasks' data to the path where runs in `folder` expect it."""
        link = os.path.join(folder, "finetuning_data")
        data = os.path.join(self._study.data_dir, "finetuning_data")
        if os.path.realpath(link) == os.path.realpath(data):
            return
        if os.path.lexists(link):
            raise UserError(
                f"{link} exists; expected a link to the study's {data}. Remove"
                f" {link}, or pass another --output_dir or --data_dir."
            )
        os.symlink(os.path.abspath(data), link)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
        self._stop_child()

    def _stop_child(self) -> None:
        """Pass a signal on to the running piece, always as SIGTERM.

        A signal to the whole group (Ctrl-C in a terminal) has already reached
        the piece, which treats a SIGTERM within seconds as the same request.
        """
        if self._child:
            self._child.terminate()

    def _ensure(self, run: Run, is_needed: bool = False) -> bool:
        """Finish a run and the runs that it needs; return whether all succeed.

        Args:
          run: the run.
          is_needed: whether the run's files are needed; False: its line is
            enough.
        """
        has_line = run.digest in self.lines or not run.facts
        paths = (self._mark(run), run.folder or run.makes)
        has_files = all(map(filesystem.exists, paths))
        if has_line and (has_files or not is_needed):
            return True
        if run.name in self.failed:
            return False
        failed_needs = (
            need.name for need in run.needs if not self._ensure(need, True)
        )
        if failed_need := next(failed_needs, None):
            self.failed[run.name] = f"needs {failed_need}, which failed"
        elif (current := self._current(run)).digest != run.digest:
            return self._ensure(current, is_needed)
        elif not run.digest:
            self.failed[run.name] = (
                "no run that tries a learning rate has a score"
            )
        else:
            self._finish(run)
        return run.name not in self.failed

    def _current(self, run: Run) -> Run:
        """Return a run as it is now that its data exists.

        The data may contain a vocabulary, whose casing the digest covers.
        """
        runs = self._study.runs(self.lines)
        return next((r for r in runs if r.name == run.name), run)

    def _mark(self, run: Run) -> str:
        """Return the path of the file that marks a run's files as complete."""
        return os.path.join(self._marks, run.digest)

    def _remove_marks(self, name: str) -> None:
        """Remove the marks of earlier commands that made the same file."""
        for mark in glob.glob(os.path.join(glob.escape(self._marks), "*")):
            if read_text(mark) == name:
                filesystem.remove(mark)

    def _finish(self, run: Run) -> None:
        """Execute the pieces of a run until it ends, and write its line.

        Raises:
          StoppedError: the time is up, or a signal came.
        """
        is_data, exam = not run.facts, _exam_digest(run)
        if is_data:
            self._remove_marks(run.name)
        else:
            # The data of a new checkout did not exist when the study started.
            self._warn_of_changed_data()
        if exam:
            _forget_final_evaluation(run)
        piece, pieces, started = self._piece, 0, time.monotonic()
        status = -signal.SIGTERM
        while status in (-signal.SIGTERM, 128 + signal.SIGTERM):
            limit = min(piece, self._deadline - time.monotonic())
            if limit <= 0:
                raise StoppedError(TIME_IS_UP)
            pieces += 1
            self._report(f"{run.name}: piece {pieces}: {' '.join(run.command)}")
            log_start = self._log.tell()
            status = self._signal or self._run_piece(run, limit)
            if status and self._signal:
                raise StoppedError(128 + self._signal)
            # Each piece is longer than the previous piece. Otherwise a run
            # whose start takes longer than a piece would never make a step.
            piece *= 2
        seconds = round(time.monotonic() - started)
        if status:
            error = self._last_error(log_start)
            self._fail(run, f"exit status {status}: {error}")
            return
        if problem := _find_problem(run, exam):
            self._fail(run, problem)
            return
        write_atomically(self._mark(run), run.name if is_data else "")
        self._report(f"{run.name}: done in {seconds:,} s")
        if is_data:
            self._study.update_arms()
        else:
            self._write_line(run, seconds, pieces, exam)

    def _fail(self, run: Run, reason: str) -> None:
        """Record and report that a run failed."""
        self.failed[run.name] = reason
        self._report(f"{run.name}: FAILED: {reason}")

    def _write_line(
        self, run: Run, seconds: int, pieces: int, exam: dict[str, str]
    ) -> None:
        """Add the line of a finished run to the results.

        Args:
          run: the run.
          seconds: the duration of its pieces.
          pieces: the count of its pieces.
          exam: the field of the exam that it was scored on, if any.
        """
        line = {
            "cell": run.name,
            "digest": run.digest,
            **run.facts,
            "data": files_fingerprint(run.reads),
            "inputs": describe_inputs(run),
            "results": _results(run),
            **_verdicts(run),
            **exam,
            **_start_digest(run),
            "seconds": seconds,
            "pieces": pieces,
            "processor": _processor(),
            "study": self._study.digest,
            "ended": datetime.datetime.now().isoformat(timespec="seconds"),
        }
        lines, damage = add_result_line(self.results, line)
        if damage:
            lines = self.lines | lines
            self._warn(
                f"warning: {damage} The line of {run.name} was appended to the"
                " file. The study continues with the lines that it read before."
            )
        self.lines = lines

    def _report(self, text: str) -> None:
        """Write a line to the log, and print its beginning."""
        now = datetime.datetime.now().isoformat(" ", "seconds")
        self._log.write(f"{'=' * 80}\n{now} {text}\n".encode())
        self._log.flush()
        print(f"{now} {text}"[:120], flush=True)

    def _run_piece(self, run: Run, limit: float) -> int:
        """Run a process for at most `limit` seconds; return its exit status."""
        program, *arguments = run.command
        before_exec = None
        if sys.platform == "linux":
            # The system terminates the piece if the study is killed.
            before_exec = functools.partial(
                ctypes.CDLL(None).prctl, PR_SET_PDEATHSIG, signal.SIGTERM
            )
        self._child = subprocess.Popen(
            [sys.executable, _find_program(program), *arguments],
            preexec_fn=before_exec,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        # A signal may have arrived before the child existed, so the signal is
        # passed on now.
        if self._signal:
            self._stop_child()
        try:
            return self._child.wait(limit)
        except subprocess.TimeoutExpired:
            self._child.terminate()
            return self._child.wait()
        finally:
            self._child = None

    def _last_error(self, log_start: int) -> str:
        """Return a piece's last error message, or its last line of output."""
        with open(self._log.name, "rb") as file:
            file.seek(log_start)
            lines = file.read().decode(errors="replace").splitlines()
        errors = [
            line for line in lines if re.match(r"(error|\w+Error): ", line)
        ]
        return (errors or lines or [""])[-1][:_LONGEST_ERROR]


def _find_program(name: str) -> str:
    """Return the path of a program of the checkout or the installation."""
    for folder in (_ROOT, os.path.dirname(sys.executable)):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    return shutil.which(name) or name


def _processor() -> str:
    """Return the name and the number of cores of the machine's processor."""
    name = platform.processor()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        name = re.search(r"model name\s*: (.*)|$", file.read())[1] or name
    return f"{name}, {os.cpu_count()} cores"


def _find_problem(run: Run, exam: dict[str, str]) -> str:
    """Return why a run failed although its command succeeded; "": no problem.

    Args:
      run: the run.
      exam: the field of the exam at the start of the run, if any.
    """
    if run.makes and not filesystem.exists(run.makes):
        return (
            f"the command ended, but {run.makes} does not exist; expected the"
            " file or folder that the key names. Correct the key or the"
            " command."
        )
    if exam and exam != _exam_digest(run):
        return (
            f"the exam {run.facts['exam']} changed during the run; expected the"
            " same exam until the end. Run the same command again to score the"
            " run on the current exam."
        )
    return ""


def _exam_digest(run: Run) -> dict[str, str]:
    """Return the digest of the exam that a run is scored on now, if any."""
    path = run.facts.get("exam")
    if not path or not filesystem.exists(path):
        return {}
    return {"exam_sha256": file_sha256(path)}


def _forget_final_evaluation(run: Run) -> None:
    """Remove the evaluation of a pre-training's last step from its log.

    The run may have ended before this study started the run, with another exam
    or none. A run whose last step is not in the log evaluates that step again,
    with the current exam, and trains no further.
    """
    path = os.path.join(run.folder, _EVAL_LOG)
    if not filesystem.exists(path):
        return
    lines = read_text(path).splitlines()
    # The run itself removes a line that a kill truncated.
    with contextlib.suppress(UserError):
        while (
            lines and parse_json(lines[-1], path)["step"] == run.facts["steps"]
        ):
            lines.pop()
    write_atomically(path, "".join(f"{line}\n" for line in lines))


def _start_digest(run: Run) -> dict[str, str]:
    """Return the digest of the weights that a fine-tuning started from.

    The fine-tuning itself recorded the digest, so that the digest is right even
    if the weights were replaced since. Arms that the study pre-trains, and
    random weights, have no digest.
    """
    if not run.start:
        return {}
    content, _ = _read_trials(run)
    digest = content.get("data", {}).get("starting weights")
    return {"start_sha256": digest} if digest else {}


def _start_sha256(start: str) -> str:
    """Return the digest of the weights that an initial checkpoint has now."""
    path = formats.open_weights(start).path
    return file_sha256(formats.digest_file(path))


def _verdicts(run: Run) -> dict[str, dict[str, Any]]:
    """Return the collapsed trials of a fine-tuning, and its baselines.

    `collapsed` maps the number of a trial to the single prediction of its
    model, `baselines` maps "chance" and "majority" to the metrics of these
    baselines.
    """
    if run.facts["kind"] == "pretrain":
        return {}
    task, (_, records) = run.facts["task"], _read_trials(run)
    collapsed = {
        str(record.trial): record.collapsed[task]
        for record in records
        if task in record.collapsed
    }
    baselines = {}
    for name, metrics in records[-1].baselines.items():
        baseline_task, _, kind = name.partition("/")
        if baseline_task == task:
            baselines[kind] = {n: _round(value) for n, value in metrics.items()}
    return {"collapsed": collapsed, "baselines": baselines}


def _read_trials(run: Run) -> tuple[dict[str, Any], list[TrialRecord]]:
    """Return the content of a fine-tuning's results file, and its trials.

    Raises:
      UserError: the file is damaged, or its trials have no results of the task.
    """
    task = run.facts["task"]
    path = os.path.join(run.folder, "results", f"{task}_results.json")
    content, records = read_results(path)
    if not records or not records[0].results.get(task):
        raise UserError(
            f"{path}: {len(records)} trials, with results of"
            f" {list(records[0].results) if records else 'no task'}; expected"
            f" results of {task}. Remove {run.folder} to repeat the run."
        )
    return content, records


def _round(value: float | None) -> float | None:
    """Return a value rounded to six significant digits; None for NaN."""
    if value is None or math.isnan(value):
        return None
    return value and float(f"{value:.6g}")


def _last_evaluation(run: Run) -> dict[str, Any]:
    """Return the metrics in the last line of a pre-training's log.

    Raises:
      UserError: the log is empty, or its last line is damaged.
    """
    path = os.path.join(run.folder, _EVAL_LOG)
    remedy = f"Remove {run.folder} to repeat the run."
    lines = read_text(path).splitlines()
    if not lines:
        raise UserError(
            f"{path}: the file is empty; expected a line of metrics for each"
            f" evaluation. {remedy}"
        )
    location = f"{path}:{len(lines)}"
    metrics = parse_json(lines[-1], location)
    expected = {name: (is_number, "a number") for name in metrics}
    check_fields(metrics, expected, location, remedy)
    return metrics


def _results(run: Run) -> dict[str, list[Any]]:
    """Return the metrics of a run: a value per trial, the main metric first."""
    trials: list[dict[str, Any]] = []
    if run.facts["kind"] == "pretrain":
        trials = [_last_evaluation(run)]
    else:
        task, (content, records) = run.facts["task"], _read_trials(run)
        main_name = content.get("metrics", {}).get(task)
        for record in records:
            metrics = record.results[task]
            main = trial_statistics.main_metric(list(metrics), main_name)
            details = record.details[task]
            trials.append({main: metrics[main], **metrics, **details})
    results = {}
    for name in trials[0]:
        results[name] = [_round(trial[name]) for trial in trials]
    return results
