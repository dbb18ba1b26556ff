# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""All GLUE tasks one after the other, one table, and one zip for the server."""

import dataclasses
import datetime
import io
import json
import math
import os
import pickle
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.data import tables
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import read_json
from electra_tf.files.reading import read_bytes
from electra_tf.finetuning import runner
from electra_tf.finetuning.build import resolve_start
from electra_tf.finetuning.registry import GLUE_TASKS
from electra_tf.metrics import glue
from electra_tf.training.summaries import Console

# Of the file of scores.
_FORMAT = 1
# Each task has its own; one path for all would mix them up.
_PATHS = "model_dir preprocessed_data_dir task_config".split()
_PATHS += "results_txt results_pkl results_json".split()


@dataclasses.dataclass
class Outcome:
    """How a task went."""

    state: str  # "done", "interrupted", "failed", "no data", or "not reached"
    why: str = ""  # what the state does not say
    # Over the trials there are; None without any.
    score: glue.TaskScore | None = None
    collapsed: tuple[int, ...] = ()  # trials whose predictions are all the same


def run(
    config: FinetuningConfig, console: Console | None = None
) -> dict[str, Any]:
    """Fine-tunes on each task that has data, as far as that is not done."""
    config.check_mode()
    if config.distribution_strategy == "multi_worker":
        raise UserError(
            "distribution_strategy multi_worker: workers meet once a process;"
            " use run_finetuning.py for each task."
        )
    for name in config.task_names:
        if name not in GLUE_TASKS:
            raise UserError(
                f"hparam task_names: {name} is no GLUE task (they are:"
                f" {', '.join(glue.TASKS)}); use run_finetuning.py for it."
            )
    if config.num_trials < 0:
        raise UserError(
            f"hparam num_trials: {config.num_trials} never comes to a second"
            " task; give a number, or use run_finetuning.py for one task."
        )
    for name in _PATHS:
        if config.is_stated(name) and getattr(config, name):
            raise UserError(
                f"hparam {name}: every GLUE task has its own; leave it out, or"
                " use run_finetuning.py for the task."
            )
    return _Suite(config, console or Console()).run()


class _Suite:
    def __init__(self, config: FinetuningConfig, console: Console) -> None:
        self._config = config
        self._console = console
        majority = config.wnli_majority
        self._configs = {
            task: config.with_values(
                "program",
                {"task_names": [task]}
                | ({"wnli_majority": task == "wnli"} if majority else {}),
            )
            for task in config.task_names
        }
        self._outcomes = {
            task: Outcome("no data", why) if why else Outcome("not reached")
            for task in config.task_names
            for why in [_missing_data(self._configs[task], task)]
        }
        name = "_".join(filter(None, ["glue", config.run_name]))
        base = os.path.join(config.pretrained_model_dir, "results", name)
        self._text_path, self._json_path = f"{base}.txt", f"{base}.json"

    def run(self) -> dict[str, Any]:
        there = [t for t, o in self._outcomes.items() if o.state != "no data"]
        if not there:
            raise UserError(
                "no GLUE task has data:\n"
                + "".join(
                    f"  {t}: {o.why}\n" for t, o in self._outcomes.items()
                )
                + "Put the tasks' files there, or use --data_source=tfds."
            )
        first = self._configs[there[0]]
        if first.do_train:
            resolve_start(first)  # Else every task fails for the same reason.
        result: dict[str, Any] = {"outcomes": self._outcomes}
        for number, task in enumerate(there, 1):
            self._console.heading(f"GLUE {number}/{len(there)}: {task}")
            interrupted = self._run_task(task)
            self._write()
            if interrupted is not None:
                result["interrupted"] = interrupted
                break
        self._console.heading("GLUE")
        for text in self._lines():
            self._console.line(text)
        self._console.line(f"Wrote {self._text_path} and {self._json_path}")
        return result

    def _run_task(self, task: str) -> int | None:
        """Trains, evaluates and predicts; a signal's number if stopped."""
        outcome = self._outcomes[task]
        try:
            result = runner.run(self._configs[task], self._console)
            interrupted = result.get("interrupted")
            records = result["trials"]
            if records:
                outcome.score = glue.score_task(task, records)
            outcome.collapsed = tuple(
                record["trial"] for record in records if record["collapsed"]
            )
        except UserError as error:
            self._console.warning(f"{task} failed: {error}")
            outcome.state, outcome.why = "failed", str(error)
            return None
        outcome.state = "done"
        if interrupted is not None:
            outcome.state = "interrupted"
            outcome.why = "run the same command again to continue"
        return interrupted

    def _scores(self) -> dict[str, glue.TaskScore]:
        return {t: o.score for t, o in self._outcomes.items() if o.score}

    def _lines(self) -> list[str]:
        lines = glue.table_lines(self._scores()) if self._scores() else []
        for task, outcome in self._outcomes.items():
            if outcome.state != "done":
                why = f": {outcome.why}" if outcome.why else ""
                lines.append(f"{task}: {outcome.state}{why}")
            if outcome.score and outcome.score.lacking:
                lines.append(
                    f"{task}: its score lacks"
                    f" {', '.join(outcome.score.lacking)}, for want of data"
                )
            for trial in outcome.collapsed:
                lines.append(f"{task}: trial {trial} collapsed")
        if self._config.wnli_majority and self._outcomes["wnli"].score:
            lines.append(
                "wnli: no model was used; its answers are the majority of its"
                " training labels (wnli_majority)"
            )
        unasked = [t for t in glue.TASKS if t not in self._outcomes]
        if unasked:
            lines.append(f"not among task_names: {', '.join(unasked)}")
        return lines

    def _write(self) -> None:
        now = datetime.datetime.now(datetime.timezone.utc)
        contents = {
            "format": _FORMAT,
            "time": now.isoformat(timespec="seconds"),
            "tasks": {
                task: {
                    "state": outcome.state,
                    "why": outcome.why,
                    "collapsed_trials": list(outcome.collapsed),
                    "results_json": self._configs[task].results_json,
                    **(outcome.score.as_dict() if outcome.score else {}),
                }
                for task, outcome in self._outcomes.items()
            },
            "averages": glue.average_scores(self._scores()),
            "config": self._config.as_dict(),
        }
        text = json.dumps(contents, indent=1, allow_nan=False)
        write_atomically(self._json_path, f"{text}\n")
        text = "\n".join([*self._lines(), ""])
        write_atomically(self._text_path, text)


def _missing_data(config: FinetuningConfig, task: str) -> str:
    """Names the files that a task cannot do without and that are not there."""
    if config.data_source == "tfds":
        return ""
    spec, directory = GLUE_TASKS[task], config.raw_data_dir(task)
    splits = ["train"] * config.do_train + ["dev"] * config.do_eval
    splits = splits or [s for s in spec.files if "test" in s][:1]
    paths = [spec.split(split, directory).path for split in splits]
    missing = [path for path in paths if not filesystem.exists(path)]
    return f"no {', '.join(missing)}" if missing else ""


# Test predictions in the format of the benchmark's server.

_HEADER = "index\tprediction"
# A zip file's earliest date: the same predictions make the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclasses.dataclass(frozen=True)
class Part:
    """One file of a submission."""

    file: str
    task: str  # whose predictions it holds
    split: str  # of which split
    server_rows: int  # the rows that the server has answers for


PARTS = (
    Part("CoLA.tsv", "cola", "test", 1063),
    Part("SST-2.tsv", "sst", "test", 1821),
    Part("MRPC.tsv", "mrpc", "test", 1725),
    Part("STS-B.tsv", "sts", "test", 1379),
    Part("QQP.tsv", "qqp", "test", 390965),
    Part("MNLI-m.tsv", "mnli", "test_matched", 9796),
    Part("MNLI-mm.tsv", "mnli", "test_mismatched", 9847),
    Part("QNLI.tsv", "qnli", "test", 5463),
    Part("RTE.tsv", "rte", "test", 3000),
    Part("WNLI.tsv", "wnli", "test", 146),
    Part("AX.tsv", "mnli", "diagnostic", 1104),
)


def write_archive(
    files: Mapping[str, Sequence[tuple[int, str]]], path: str
) -> None:
    """Writes the zip file that the GLUE benchmark's server takes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, rows in files.items():
            lines = [_HEADER, *(f"{index}\t{text}" for index, text in rows)]
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, "\n".join([*lines, ""]))
    write_atomically(path, buffer.getvalue())


_NUMPY_CORES = ("numpy.core", "numpy._core")
_ADMITTED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
    *((f"{core}.multiarray", "_reconstruct") for core in _NUMPY_CORES),
    *((f"{core}.multiarray", "scalar") for core in _NUMPY_CORES),
    *((f"{core}.numeric", "_frombuffer") for core in _NUMPY_CORES),
}


class _NumbersOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Refuses what arrays of numbers do not need."""
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"{module}.{name} is not admitted")
        return super().find_class(module, name)


def read_predictions(path: str) -> dict[int, Any]:
    """Reads a file of test predictions."""
    data = read_bytes(path)
    try:
        found = _NumbersOnly(io.BytesIO(data)).load()
        return {int(eid): value for eid, value in found.items()}
    except Exception as error:  # what broken pickles raise is not limited
        raise UserError(
            f"{path}: no file of test predictions ({error}); predict the test"
            " set again with write_test_outputs"
        ) from error


@dataclasses.dataclass
class Submission:
    """What a submission holds, and what it lacks."""

    # File -> (index, prediction) in the order of the data.
    rows: dict[str, list[tuple[int, str]]]
    trials: dict[str, int]  # task -> the trial whose predictions are taken
    missing: dict[str, str]  # file -> why it is not among `rows`
    notes: list[str]  # what the user should know of the rest


class _MissingError(Exception):
    """A file cannot be made; says why."""


def collect(
    model_name: str, data_dir: str, trial: int | None = None, run_name: str = ""
) -> Submission:
    """A model's test predictions: of `trial`, or each task's best on dev."""
    found = Submission({}, {}, {}, [])
    for part in PARTS:
        config, best = _settings(model_name, data_dir, part.task, run_name)
        chosen = trial or best
        found.trials[part.task] = chosen
        try:
            found.rows[part.file] = _rows(config, part, chosen, found.notes)
        except _MissingError as error:
            found.missing[part.file] = str(error)
    return found


def _settings(
    model_name: str, data_dir: str, task: str, run_name: str
) -> tuple[FinetuningConfig, int]:
    """Where a task's data is, and the trial that is best on the dev set."""
    config = FinetuningConfig.create(
        model_name, data_dir, task_names=[task], run_name=run_name
    )
    if not filesystem.exists(config.results_json):
        return config, 1
    try:
        results = read_json(config.results_json)
        names = ("data_source", "tfds_data_dir")
        used = {name: results["config"][name] for name in names}
        best = int(results["best_trial"] or 1)
        return dataclasses.replace(config, **used), best
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{config.results_json} is no results file of this program"
            f" ({error!r}); move it away, or give --trial"
        ) from error


def _rows(
    config: FinetuningConfig, part: Part, trial: int, notes: list[str]
) -> list[tuple[int, str]]:
    indices = _indices(config, part)
    path = config.test_predictions(part.task, part.split, trial)
    if not filesystem.exists(path):
        raise _MissingError(
            f"no {path}; predict with --write_test_outputs (of the first"
            f" n_writes_test trials), or choose a --trial"
        )
    predictions = read_predictions(path)
    without = [eid for eid in indices if eid not in predictions]
    if without:
        index, place = indices[without[0]]
        raise _MissingError(
            f"{path}: {len(without)} of {len(indices)} rows have no"
            f" prediction; the first is index {index}, {place}"
        )
    if len(predictions) > len(indices):
        raise _MissingError(
            f"{path}: {len(predictions)} predictions, but the test set has"
            f" {len(indices)} rows; it is of other data"
        )
    if len(indices) != part.server_rows:
        notes.append(
            f"{part.file}: {len(indices)} rows, as in the test set that was"
            f" predicted; the server expects {part.server_rows}"
        )
    texts = _texts(part, {e: predictions[e] for e in indices}, path, notes)
    return [(indices[eid][0], texts[eid]) for eid in indices]


def _texts(
    part: Part, predictions: Mapping[int, Any], path: str, notes: list[str]
) -> dict[int, str]:
    """Predictions in the server's words."""
    spec = GLUE_TASKS[part.task]
    count = len(spec.labels or ())
    expected = f"{count} finite logits" if count else "a finite number"
    texts, clipped = {}, 0
    for eid, value in predictions.items():
        try:
            values = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            values = np.asarray(math.nan)
        shape = (count,) if count else ()
        if values.shape != shape or not np.isfinite(values).all():
            raise _MissingError(
                f"{path}: example {eid}: found {value!r}; expected {expected}"
            )
        if count:
            texts[eid] = spec.labels[int(np.argmax(values))]
        else:
            low, high = spec.range  # Predictions are from 0 to 1.
            values = values * (high - low) + low
            inside = np.clip(values, low, high)
            clipped += bool(inside != values)
            texts[eid] = f"{float(inside):.4f}"
    if clipped:
        low, high = spec.range
        notes.append(
            f"{part.file}: {clipped} predictions were outside {low:g} to"
            f" {high:g} and are set to the nearer end"
        )
    return texts


def _indices(
    config: FinetuningConfig, part: Part
) -> dict[int, tuple[int, str]]:
    """Example number -> the server's index, and where the example stands."""
    spec = GLUE_TASKS[part.task]
    if config.data_source == "tfds":
        name, split = spec.tfds.place(part.split)
        rows = tables.read_tfds_rows(name, split, config.tfds_data_dir)
        found = {
            number: (int(row.cells["idx"]), f"tfds:{name}/{split}:{row.line}")
            for number, row in enumerate(rows)
        }
    else:
        place = spec.split(part.split, config.raw_data_dir(part.task))
        if not filesystem.exists(place.path):
            raise _MissingError(f"no {place.path}")
        found = dict(_indices_of_file(place.path))
    if len({index for index, _ in found.values()}) != len(found):
        raise UserError(
            f"the {part.split} split of {part.task} has an index twice"
        )
    return found


def _indices_of_file(path: str) -> Iterator[tuple[int, tuple[int, str]]]:
    """As `_indices`; by position where no column holds an index."""
    rows = tables.read_rows(path, "tsv")
    header = next(rows, None)
    names = header.cells if header is not None else []
    has_index = bool(names) and names[0].strip().lower() in ("index", "id")
    # A blank line is no row to the server.
    used = ((n, row) for n, row in enumerate(rows) if row.cells or row.expected)
    for index, (number, row) in enumerate(used):
        place = f"{path}:{row.line}"
        if has_index:
            cell = row.cells[0] if row.cells else ""
            if not cell.strip().isdigit():
                shown = row.found or repr(cell)
                raise UserError(f"{place}: found {shown}; expected an index")
            index = int(cell)
        yield number, (index, place)
