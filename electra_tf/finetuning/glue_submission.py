# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Test predictions in the format of the GLUE benchmark's server."""

import dataclasses
import io
import json
import math
import pickle
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf import files as storage
from electra_tf.data import tables
from electra_tf.finetuning.registry import GLUE_TASKS

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
    storage.write_atomically(path, buffer.getvalue())


_NUMPY_CORES = ("numpy.core", "numpy._core")
_ADMITTED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
    *((f"{core}.multiarray", "_reconstruct") for core in _NUMPY_CORES),
    *((f"{core}.multiarray", "scalar") for core in _NUMPY_CORES),
    *((f"{core}.numeric", "_frombuffer") for core in _NUMPY_CORES),
}


def read_predictions(path: str) -> dict[int, Any]:
    """Reads a file of predictions."""
    with storage.open_file(path, "rb") as file:
        data = file.read()
    try:
        found = _NumbersOnly(io.BytesIO(data)).load()
        return {int(eid): value for eid, value in found.items()}
    except Exception as error:  # what broken pickles raise is not limited
        raise UserError(
            f"{path}: no file of test predictions ({error}); predict the test"
            " set again with write_test_outputs"
        ) from error


class _NumbersOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Refuses what arrays of numbers do not need."""
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"{module}.{name} is not admitted")
        return super().find_class(module, name)


_INDEX_COLUMNS = ("index", "id")


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
    model_name: str, data_dir: str, trial: int | None = None
) -> Submission:
    """Collects a model's test predictions for all tasks.

    Of a `trial`, or (None) of each task's best one on the dev set.
    """
    found = Submission({}, {}, {}, [])
    for part in PARTS:
        config, best = _settings(model_name, data_dir, part.task)
        chosen = trial or best
        found.trials[part.task] = chosen
        try:
            found.rows[part.file] = _rows(config, part, chosen, found.notes)
        except _MissingError as error:
            found.missing[part.file] = str(error)
    return found


def _settings(
    model_name: str, data_dir: str, task: str
) -> tuple[FinetuningConfig, int]:
    """Where a task's data is, and the trial that is best on the dev set."""
    config = FinetuningConfig.create(model_name, data_dir, task_names=[task])
    if not storage.exists(config.results_json):
        return config, 1
    try:
        with storage.open_file(config.results_json, "rb") as file:
            results = json.load(file)
        used = results["config"]
        config = dataclasses.replace(
            config,
            data_source=used["data_source"],
            tfds_data_dir=used["tfds_data_dir"],
        )
        return config, int(results["best_trial"] or 1)
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
    if not storage.exists(path):
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
    texts, clipped = {}, 0
    for eid, value in predictions.items():
        try:
            values = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            values = np.asarray(math.nan)
        expected = () if spec.labels is None else (len(spec.labels),)
        if values.shape != expected or not np.isfinite(values).all():
            raise _MissingError(
                f"{path}: example {eid}: found {value!r}; expected"
                + (
                    " a finite number"
                    if spec.labels is None
                    else f" {len(spec.labels)} finite logits"
                )
            )
        if spec.labels is not None:
            texts[eid] = spec.labels[int(np.argmax(values))]
        else:
            inside = np.clip(values, *spec.range)
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
        if not storage.exists(place.path):
            raise _MissingError(f"no {place.path}")
        found = _indices_of_file(place.path)
    if len({index for index, _ in found.values()}) != len(found):
        raise UserError(
            f"the {part.split} split of {part.task} has an index twice"
        )
    return found


def _indices_of_file(path: str) -> dict[int, tuple[int, str]]:
    """As `_indices`; by position where no column holds an index."""
    rows = tables.read_rows(path, "tsv")
    header = next(rows, None)
    names = header.cells if header is not None else []
    has_index = bool(names) and names[0].strip().lower() in _INDEX_COLUMNS
    found = {}
    for number, row in enumerate(rows):
        place = f"{path}:{row.line}"
        if not row.cells and not row.expected:
            continue  # A blank line is no row to the server.
        if not has_index:
            found[number] = (number, place)
        elif row.cells and row.cells[0].strip().isdigit():
            found[number] = (int(row.cells[0]), place)
        else:
            shown = row.found or repr(row.cells[0])
            raise UserError(f"{place}: found {shown}; expected an index")
    return found
