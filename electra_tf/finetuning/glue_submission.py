# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Test predictions in the format of the GLUE benchmark's server."""

import dataclasses
import io
import math
import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from configure.errors import UserError, append_to_errors
from configure.finetuning import FinetuningConfig
from electra_tf.data import tables, tfds_data
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_fields import (
    Fields,
    check_fields,
    is_integer,
    is_object,
    is_text,
)
from electra_tf.files.json_files import read_json
from electra_tf.files.reading import read_bytes
from electra_tf.finetuning.glue_tasks import GLUE_TASKS

_HEADER = "index\tprediction"
_INDEX = re.compile(r"[0-9]{1,18}")
# The date of all files in a submission: the earliest that zip files support.
# The date is fixed, so that equal predictions give equal bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclasses.dataclass(frozen=True)
class Part:
    """One file of a submission."""

    file: str
    task: str
    split: str
    server_rows: int  # number of rows that the server expects


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
    rows: Mapping[str, Sequence[tuple[int, str]]], path: str
) -> None:
    """Write the zip file that the server accepts.

    Args:
      rows: file -> (index, prediction) pairs.
      path: the zip file.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, pairs in rows.items():
            lines = [_HEADER, *(f"{index}\t{text}" for index, text in pairs)]
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, "\n".join([*lines, ""]))
    write_atomically(path, buffer.getvalue())


# The functions that pickle calls to load an array of numbers, in NumPy 1 and 2.
_ALLOWED = frozenset(
    {
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("_codecs", "encode"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy.core.multiarray", "scalar"),
        ("numpy.core.numeric", "_frombuffer"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy._core.numeric", "_frombuffer"),
    }
)


class _NumbersOnly(pickle.Unpickler):
    """An unpickler that accepts only arrays of numbers."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not admitted")
        return super().find_class(module, name)


def read_predictions(path: str) -> dict[int, Any]:
    """Return the predictions in a file, keyed by example number."""
    data = read_bytes(path)
    try:
        predictions = _NumbersOnly(io.BytesIO(data)).load()
        return {int(eid): value for eid, value in predictions.items()}
    # Unpickling a broken file may raise any exception.
    except Exception as error:
        raise UserError(
            f"{path}: not a file of test predictions ({error}). Predict the"
            " test set again with --write_test_outputs."
        ) from error


@dataclasses.dataclass
class Submission:
    """The content of a submission, and its missing files."""

    # File -> (index, prediction) in the order of the data.
    rows: dict[str, list[tuple[int, str]]]
    trials: dict[str, int]  # task -> the trial that made the predictions
    missing: dict[str, str]  # file -> the reason for its absence from `rows`
    notes: list[str]  # warnings about the files


# example number -> (the server's index, the row's location)
Indices = dict[int, tuple[int, str]]


class _MissingError(Exception):
    """An error for a file that cannot be added to the submission."""


def collect(
    model_name: str, data_dir: str, trial: int | None = None, run_name: str = ""
) -> Submission:
    """Collect the test predictions of a model.

    Args:
      model_name: the model in `data_dir`.
      data_dir: the directory of data and models.
      trial: the trial for all tasks; None: each task's best trial on the dev
        set.
      run_name: the name of the run; "": the unnamed run.
    """
    submission = Submission({}, {}, {}, [])
    for part in PARTS:
        config, best = _open_results(model_name, data_dir, part.task, run_name)
        chosen = trial or best
        submission.trials[part.task] = chosen
        try:
            if config.data_source == "tfds":
                indices = _read_tfds_indices(part, config.tfds_data_dir)
            else:
                directory = config.raw_data_dir(part.task)
                indices = _read_file_indices(part, directory)
            path = config.test_predictions(part.task, part.split, chosen)
            submission.rows[part.file] = _read_rows(
                path, part, indices, submission.notes
            )
        except _MissingError as error:
            submission.missing[part.file] = str(error)
    return submission


def _open_results(
    model_name: str, data_dir: str, task: str, run_name: str
) -> tuple[FinetuningConfig, int]:
    """Return a run's settings and the number of the trial that is best on dev.

    Without results, the number is 1.
    """
    config = FinetuningConfig.create(
        model_name, data_dir, task_names=[task], run_name=run_name
    )
    if not filesystem.exists(config.results_json):
        return config, 1
    with append_to_errors(lambda: [_RESULTS_REMEDY]):
        results = read_json(config.results_json)
    path, hparams = config.results_json, results.get("config")
    check_fields(results, _RESULTS_FIELDS, path, _RESULTS_REMEDY)
    check_fields(hparams, _SOURCE_FIELDS, f"{path}: config", _RESULTS_REMEDY)
    source = {name: hparams[name] for name in _SOURCE_FIELDS}
    return dataclasses.replace(config, **source), results["best_trial"] or 1


_RESULTS_REMEDY = (
    "This is not a results file of this program, or it is damaged. Move the"
    " file away."
)
_RESULTS_FIELDS: Fields = {
    "config": (is_object, "an object of hparams"),
    "best_trial": (
        lambda value: value is None or (is_integer(value) and value > 0),
        "an integer above 0, or null",
    ),
}
_SOURCE_FIELDS: Fields = {
    "data_source": (is_text, "a text"),
    "tfds_data_dir": (
        lambda value: value is None or isinstance(value, str),
        "a text, or null",
    ),
}


def _read_rows(
    path: str, part: Part, indices: Indices, notes: list[str]
) -> list[tuple[int, str]]:
    """Return the rows of a file; raise _MissingError if a row is missing.

    Args:
      path: the path of the predictions.
      part: the file of the submission.
      indices: the indices of the predicted examples.
      notes: a list, to which warnings about the file are added.
    """
    if not filesystem.exists(path):
        raise _MissingError(
            f"{path} does not exist. Predict the test set with"
            " --write_test_outputs, which predicts the first n_writes_test"
            " trials, or pass another --trial"
        )
    predictions = read_predictions(path)
    without = [eid for eid in indices if eid not in predictions]
    if without:
        index, location = indices[without[0]]
        raise _MissingError(
            f"{path}: {len(without)} of {len(indices)} rows have no"
            f" prediction; the first such row has index {index} ({location})."
            " Predict the test set again with --write_test_outputs"
        )
    if len(predictions) > len(indices):
        raise _MissingError(
            f"{path}: found {len(predictions)} predictions; expected"
            f" {len(indices)}, one for each row of the test set. Predict the"
            " test set again with --write_test_outputs"
        )
    if len(indices) != part.server_rows:
        notes.append(
            f"{part.file} has {len(indices)} rows, but the server expects"
            f" {part.server_rows}. Predict the original test set"
        )
    texts = _format_predictions(
        part, {eid: predictions[eid] for eid in indices}, path, notes
    )
    return [(indices[eid][0], texts[eid]) for eid in indices]


def _format_predictions(
    part: Part, predictions: Mapping[int, Any], path: str, notes: list[str]
) -> dict[int, str]:
    """Return predictions in the server's format, keyed by example number."""
    spec = GLUE_TASKS[part.task]
    count = len(spec.labels or ())
    expected = f"{count} finite logits" if count else "a finite number"
    shape = (count,) if count else ()
    texts, n_clipped = {}, 0
    for eid, value in predictions.items():
        try:
            values = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            values = np.asarray(math.nan)
        if values.shape != shape or not np.isfinite(values).all():
            raise _MissingError(
                f"{path}: example {eid}: found {value!r}; expected"
                f" {expected}. Predict the test set again with"
                " --write_test_outputs"
            )
        if count:
            texts[eid] = spec.labels[int(np.argmax(values))]
        else:
            low, high = spec.range  # predictions are on the scale from 0 to 1
            values = values * (high - low) + low
            inside = np.clip(values, low, high)
            n_clipped += int(inside != values)
            texts[eid] = f"{float(inside):.4f}"
    if n_clipped:
        low, high = spec.range
        notes.append(
            f"{part.file}: {n_clipped} predictions were outside the range from"
            f" {low:g} to {high:g} and were clipped"
        )
    return texts


def _read_tfds_indices(part: Part, data_dir: str | None) -> Indices:
    """Return the indices of a split of TensorFlow Datasets."""
    name, split = GLUE_TASKS[part.task].tfds.locate(part.split)
    rows = tfds_data.read_rows(name, split, data_dir)
    indices = {
        number: (int(row.cells["idx"]), f"tfds:{name}/{split}:{row.line}")
        for number, row in enumerate(rows)
    }
    return _check_indices(part, indices)


def _read_file_indices(part: Part, directory: str) -> Indices:
    """Return the indices of a split from its file in the task's directory."""
    path = GLUE_TASKS[part.task].find_split(part.split, directory).path
    if not filesystem.exists(path):
        raise _MissingError(f"{path} does not exist. Add the file")
    return _check_indices(part, dict(_indices_of_file(path)))


def _check_indices(part: Part, indices: Indices) -> Indices:
    """Return the indices of a split; raise a UserError if an index repeats."""
    if len({index for index, _ in indices.values()}) != len(indices):
        raise UserError(
            f"{part.task}: the {part.split} split contains an index twice;"
            " expected unique indices. Restore the file as GLUE published"
            " it."
        )
    return indices


def _indices_of_file(path: str) -> Iterator[tuple[int, tuple[int, str]]]:
    """Yield the items of `Indices` for the rows of a file.

    In a file without an index column, the rows are numbered.
    """
    rows = tables.read_rows(path, "tsv")
    header = next(rows, None)
    names = header.cells if header is not None else []
    has_index = bool(names) and names[0].strip().lower() in ("index", "id")
    index = -1
    for number, row in enumerate(rows):
        if not (row.cells or row.expected):
            continue  # The server does not count blank lines.
        index += 1
        location = f"{path}:{row.line}"
        if has_index:
            cell = row.cells[0] if row.cells else ""
            if not _INDEX.fullmatch(cell.strip()):
                content = row.content or repr(cell)
                raise UserError(
                    f"{location}: found {content}; expected an index (a"
                    " whole number). Restore the file as GLUE published"
                    " it."
                )
            index = int(cell)
        yield number, (index, location)
