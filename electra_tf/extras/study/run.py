# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A study's cells, run piece by piece; after a kill, what is left of them.

A piece is a process of the real command, which continues from what the one
before it saved. A cell is done when its line is in the results file; nothing
else is asked, so lines that were committed stand for runs made elsewhere.
"""

import contextlib
import ctypes
import datetime
import functools
import glob
import json
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
from electra_tf.data.fingerprints import files_fingerprint
from electra_tf.extras.study.cells import Cell, Study
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import file_sha256
from electra_tf.files.json_files import read_json
from electra_tf.files.locks import folder_lock
from electra_tf.files.patterns import find_files
from electra_tf.files.reading import read_text
from electra_tf.metrics import statistics
from electra_tf.processes import PR_SET_PDEATHSIG

LOG = "study.log"
TIME_IS_UP = 3  # exit status
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(electra_tf.__file__)))


class StoppedError(Exception):
    """Time is up, or a signal came; `status` is the program's exit status."""

    def __init__(self, status: int) -> None:
        self.status = status


class StudyRun:
    """Brings cells to their ends, in order."""

    def __init__(self, study: Study, piece: float, time_budget: float) -> None:
        """`piece` and `time_budget` are seconds."""
        self._study, self._piece = study, piece
        self._done = os.path.join(study.output, "done")
        self._deadline = time.monotonic() + time_budget
        self._child: subprocess.Popen | None = None
        self._signal = 0
        self.results = os.path.splitext(study.path)[0] + ".jsonl"
        self.lines: dict[str, dict[str, Any]] = {}  # of cells, by digest
        self.failed: dict[str, str] = {}  # name -> why
        if filesystem.exists(self.results):
            text = read_text(self.results)
            for number, line in enumerate(text.splitlines(), 1):
                try:
                    found = json.loads(line)
                    self.lines[found["digest"]] = found
                except (ValueError, KeyError, TypeError) as error:
                    raise UserError(
                        f"{self.results}:{number}: no cell's line ({error!r});"
                        " restore it, or remove it to run the cell again"
                    ) from None

    def run(self) -> None:
        """Runs what is left; raises `StoppedError` where time does not do."""
        folder, study = self._study.output, self._study
        filesystem.make_directory(folder)
        log = os.path.join(folder, LOG)
        with folder_lock(folder), open(log, "ab") as self._log:
            if study.tasks:
                self._link_tasks(folder)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._note)
            self._warn_of_other_data()
            for place in range(len(study.cells(self.lines))):
                # Anew: its learning rate may be known by now.
                self._ensure(study.cells(self.lines)[place])

    def _warn_of_other_data(self) -> None:
        """Cells that are done stay so; what lies there now may be another."""
        told = functools.cache(files_fingerprint)
        for cell in self._study.cells(self.lines):
            line = self.lines.get(cell.digest, {})
            if path := self._replaced_exam(cell, line):
                print(
                    f"warning: {cell.name} sat another exam than {path} holds"
                    f" now; to compare it with runs of the new one, remove its"
                    f" line from {self.results}, and {cell.folder}"
                )
            was = line.get("data")
            if not was or not find_files(cell.reads, True)[0]:
                continue
            if was != told(cell.reads):
                print(
                    f"warning: {cell.name} was made of other data ({was}) than"
                    f" {cell.reads} is now ({told(cell.reads)}); to run it"
                    f" again, remove its line from {self.results}, and"
                    f" {cell.folder}"
                )

    def _replaced_exam(self, cell: Cell, line: Mapping[str, Any]) -> str | None:
        """Return the path of a finished cell's exam if it holds another."""
        path, digest = cell.facts.get("exam"), line.get("exam_sha256")
        if not (path and digest and filesystem.exists(path)):
            return None
        return path if file_sha256(path) != digest else None

    def _link_tasks(self, folder: str) -> None:
        """Puts the tasks' data where runs in `folder` look for it."""
        link = os.path.join(folder, "finetuning_data")
        data = os.path.join(self._study.data_dir, "finetuning_data")
        if os.path.realpath(link) == os.path.realpath(data):
            return
        if os.path.lexists(link):
            raise UserError(
                f"{link} is there, and is not the study's {data}; remove it, or"
                " give another --output_dir or --data_dir"
            )
        os.symlink(os.path.abspath(data), link)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
        self._stop_child()

    def _stop_child(self) -> None:
        """Pass a signal on to the piece that runs, always as SIGTERM.

        A signal to the whole group (a terminal's Ctrl-C) has reached the piece
        already; a SIGTERM within seconds of it is the same request there.
        """
        if self._child:
            self._child.terminate()

    def _ensure(self, cell: Cell, needed: bool = False) -> bool:
        """Runs a cell, and first what it needs, unless that is done."""
        is_told = cell.digest in self.lines or not cell.facts
        places = (self._mark(cell), cell.folder or self._done)
        if is_told and not (needed and not all(map(filesystem.exists, places))):
            return True
        if cell.name in self.failed:
            return False
        lacking = (n.name for n in cell.needs if not self._ensure(n, True))
        if lacks := next(lacking, None):
            self.failed[cell.name] = f"needs {lacks}"
        elif not cell.digest:
            self.failed[cell.name] = "no learning rate gave a result"
        else:
            self._run(cell)
        return cell.name not in self.failed

    def _mark(self, cell: Cell) -> str:
        """Is there when what a cell leaves is here, and whole."""
        return os.path.join(self._done, cell.digest)

    def _forget(self, place: str) -> None:
        """Takes the marks away of what other commands made in a place."""
        for mark in glob.glob(os.path.join(glob.escape(self._done), "*")):
            if read_text(mark) == place:
                filesystem.remove(mark)

    def _run(self, cell: Cell) -> None:
        if not cell.facts:
            self._forget(cell.name)
        piece, pieces, begun = self._piece, 0, time.monotonic()
        code = -signal.SIGTERM
        while code in (-signal.SIGTERM, 128 + signal.SIGTERM):
            limit = min(piece, self._deadline - time.monotonic())
            if limit <= 0:
                raise StoppedError(TIME_IS_UP)
            pieces += 1
            self._say(f"{cell.name}: piece {pieces}: {' '.join(cell.command)}")
            start = self._log.tell()
            code = self._signal or self._process(cell, limit)
            if code and self._signal:
                raise StoppedError(128 + self._signal)
            piece *= 2  # Or it may never come past its own start.
        seconds = round(time.monotonic() - begun)
        if code:
            self.failed[cell.name] = f"exit status {code}: {self._error(start)}"
            self._say(f"{cell.name}: FAILED: {self.failed[cell.name]}")
            return
        made = "" if cell.facts else cell.name
        write_atomically(self._mark(cell), made)
        self._say(f"{cell.name}: done in {seconds:,} s")
        if cell.facts:
            self._write_line(cell, seconds=seconds, pieces=pieces)

    def _write_line(self, cell: Cell, **more: Any) -> None:
        name = platform.processor()
        with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
            name = re.search(r"model name\s*: (.*)|$", file.read())[1] or name
        processor = f"{name}, {os.cpu_count()} cores"
        self.lines[cell.digest] = {
            **{"cell": cell.name, "digest": cell.digest, **cell.facts},
            "data": files_fingerprint(cell.reads),
            "results": _results(cell),
            **_verdicts(cell),
            **_exam_of(cell),
            **more,
            **{"processor": processor, "study": self._study.digest},
            "ended": datetime.datetime.now().isoformat(timespec="seconds"),
        }
        lines = map(json.dumps, self.lines.values())
        write_atomically(self.results, "".join(f"{n}\n" for n in lines))

    def _say(self, text: str) -> None:
        now = datetime.datetime.now().isoformat(" ", "seconds")
        self._log.write(f"{'=' * 80}\n{now} {text}\n".encode())
        self._log.flush()
        print(f"{now} {text}"[:120], flush=True)

    def _process(self, cell: Cell, limit: float) -> int:
        program, *arguments = cell.command
        folders = (_ROOT, os.path.dirname(sys.executable))
        places = (os.path.join(folder, program) for folder in folders)
        places = filter(os.path.exists, places)
        program = next(places, shutil.which(program) or program)
        ends = None
        if sys.platform == "linux":  # A study that is killed leaves no piece.
            ends = functools.partial(
                ctypes.CDLL(None).prctl, PR_SET_PDEATHSIG, signal.SIGTERM
            )
        self._child = subprocess.Popen(
            [sys.executable, program, *arguments],
            preexec_fn=ends,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        if self._signal:  # It came before there was a child to pass it on to.
            self._stop_child()
        try:
            return self._child.wait(limit)
        except subprocess.TimeoutExpired:
            self._child.terminate()
            return self._child.wait()
        finally:
            self._child = None

    def _error(self, start: int) -> str:
        with open(self._log.name, "rb") as file:
            file.seek(start)
            lines = file.read().decode(errors="replace").splitlines()
        said = [text for text in lines if re.match(r"(error|\w+Error): ", text)]
        return (said or lines or [""])[-1][:300]


def _exam_of(cell: Cell) -> dict[str, str]:
    """Return the digest of the exam that a run's evaluations sat, if any."""
    path = cell.facts.get("exam")
    return {"exam_sha256": file_sha256(path)} if path else {}


def _verdicts(cell: Cell) -> dict[str, dict[str, Any]]:
    """Return which trials of a fine-tuning collapsed, and its baselines.

    `collapsed`: number of a trial -> the one prediction of its model;
    `baselines`: "chance", "majority" -> figures of answers without a model.
    """
    if cell.facts["kind"] == "pretrain":
        return {}
    task, trials = cell.facts["task"], _read_results(cell)["trials"]
    collapsed = {
        str(trial["trial"]): trial["collapsed"][task]
        for trial in trials
        if task in trial["collapsed"]
    }
    baselines = {
        name.removeprefix(f"{task}/"): {
            figure: _rounded(value) for figure, value in figures.items()
        }
        for name, figures in trials[-1].get("baselines", {}).items()
        if name.startswith(f"{task}/")
    }
    return {"collapsed": collapsed, "baselines": baselines}


def _read_results(cell: Cell) -> dict[str, Any]:
    name = f"{cell.facts['task']}_results.json"
    return read_json(os.path.join(cell.folder, "results", name))


def _rounded(value: float | None) -> float | None:
    return value and float(f"{value:.6g}")


def _results(cell: Cell) -> dict[str, list[Any]]:
    """Figures of a run; of fine-tuning, each trial's, the main one first."""
    trials: list[dict[str, Any]] = []
    if cell.facts["kind"] == "pretrain":
        log = os.path.join(cell.folder, "eval_log.jsonl")
        trials = [json.loads(read_text(log).splitlines()[-1])]
    else:
        task = cell.facts["task"]
        read = _read_results(cell)
        wanted = read.get("metrics", {}).get(task)
        for trial in read["trials"]:
            own = trial["results"][task]
            main = statistics.main_metric(list(own), wanted)
            trials.append({main: own[main], **own, **trial["details"][task]})
    return {
        name: [_rounded(trial[name]) for trial in trials] for name in trials[0]
    }
