# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The records of trials in a results file, and its reader."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from configure.errors import UserError, append_to_errors
from configure.formatting import join_names
from electra_tf.files.json_fields import (
    Fields,
    check_fields,
    is_groups_of_metrics,
    is_integer,
    is_object,
    is_text,
)
from electra_tf.files.json_files import read_json
from electra_tf.metrics import trial_statistics

FORMAT = 1  # the version of the results file's format


@dataclasses.dataclass(frozen=True)
class TrialRecord:
    """The results of one trial."""

    trial: int  # from 1
    seed: int  # the seed of the trial's random draws
    # The folder to which the trial's model was written, or from which the
    # evaluated model was read.
    model_dir: str
    global_step: int  # number of updates of the evaluated weights
    results: dict[str, dict[str, float]]  # task -> the original's metrics
    details: dict[str, dict[str, float]]  # task -> further metrics
    other_splits: dict[str, dict[str, float]]  # "task/split" -> metrics
    collapsed: dict[str, str]  # task -> sentence about equal predictions
    # "task/chance", "task/majority" -> the metrics of these baselines; empty in
    # files of earlier versions.
    baselines: dict[str, dict[str, float]] = dataclasses.field(
        default_factory=dict
    )


def read_results(path: str) -> tuple[dict[str, Any], list[TrialRecord]]:
    """Return the content of a results file, and the records of its trials.

    Raises:
      UserError: the file cannot be read, or this program cannot have written
        it.
    """
    with append_to_errors(lambda: [_REMEDY]):
        contents = read_json(path)
    check_fields(
        contents, _FILE_FIELDS, path, _REMEDY, optional=("data", "metrics")
    )
    records: list[TrialRecord] = []
    for index, values in enumerate(contents["trials"]):
        location = f"{path}: trials[{index}]"
        records.append(_read_record(values, location))
        _check_against_first(records, location)
    numbers = [record.trial for record in records]
    if len(set(numbers)) < len(numbers):
        raise UserError(
            f"{path}: the numbers of the trials are {numbers}; expected each"
            f" number once. {_REMEDY}"
        )
    return contents, records


def _read_record(values: dict[str, Any], location: str) -> TrialRecord:
    """Return the record of a trial, with NaN for undefined values.

    Args:
      values: the trial in the results file.
      location: the file and the position of the trial, for messages.
    """
    check_fields(
        values, _RECORD_FIELDS, location, _REMEDY, optional=("baselines",)
    )
    if unknown := values.keys() - _RECORD_FIELDS.keys():
        raise UserError(
            f"{location}: found the fields {join_names(sorted(unknown))};"
            f" expected only {', '.join(_RECORD_FIELDS)}. {_REMEDY}"
        )
    for group in ("results", "details", "other_splits"):
        for metrics in values[group].values():
            # The file stores undefined values as null.
            numbers = trial_statistics.from_json(metrics.values())
            metrics.update(zip(metrics, numbers, strict=True))
    return TrialRecord(**values)


def _check_against_first(records: Sequence[TrialRecord], location: str) -> None:
    """Raise a UserError if names differ between the first and last record.

    All trials of a run have the same tasks and metrics.
    """
    first = _metric_names(records[0].results)
    results = _metric_names(records[-1].results)
    details = records[-1].details
    if not results or results != first or results.keys() != details.keys():
        expected = first or "at least one task"
        raise UserError(
            f"{location}: results have the metrics {results}, and details have"
            f" the tasks {list(details)}; expected the metrics {expected} and"
            f" details of the same tasks. {_REMEDY}"
        )


def _metric_names(
    results: trial_statistics.TrialResults,
) -> dict[str, list[str]]:
    return {task: sorted(metrics) for task, metrics in results.items()}


def _is_config(value: Any) -> bool:
    """Return whether a value is an object with a text or no data_dir."""
    return isinstance(value, dict) and isinstance(
        value.get("data_dir", ""), str
    )


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, dict) for v in value)


def _is_object_of_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_text, value.values()))


_REMEDY = (
    "This is not a results file of this program, or it is damaged. Move the"
    " file away, or pass --overwrite to the fine-tuning."
)
_FILE_FIELDS: Fields = {
    "format": (lambda value: value == FORMAT, str(FORMAT)),
    "config": (_is_config, "an object of hparams with the text data_dir"),
    "trials": (_is_list_of_objects, "a list of objects"),
    "data": (is_object, "an object"),
    "metrics": (is_object, "an object that maps tasks to metrics"),
}
_METRICS = (
    is_groups_of_metrics,
    "an object that maps names to objects of metrics and numbers",
)
_RECORD_FIELDS: Fields = {
    "trial": (
        lambda value: is_integer(value) and value > 0,
        "an integer above 0",
    ),
    "seed": (is_integer, "an integer"),
    "model_dir": (lambda value: isinstance(value, str), "a text"),
    "global_step": (is_integer, "an integer"),
    "results": _METRICS,
    "details": _METRICS,
    "other_splits": _METRICS,
    "collapsed": (_is_object_of_texts, "an object that maps tasks to texts"),
    "baselines": _METRICS,
}
