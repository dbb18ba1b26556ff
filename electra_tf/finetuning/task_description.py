# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The description of a task as data, and its validation."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Annotated, Any

from configure.bounds import NonEmpty, Positive, one_of
from configure.errors import UserError
from configure.hparams_json import read_hparams
from configure.validation import check_object
from electra_tf.metrics.matching import MATCHES
from electra_tf.metrics.summaries import ROUGE


@dataclasses.dataclass(frozen=True)
class TaskType:
    """A type of task: the settings that descriptions of the type may have."""

    metrics: tuple[str, ...]  # accepted values of `metric`
    keys: frozenset[str]  # keys that only some types have
    reads_text: bool  # whether columns must name `text_a`


# The types of tasks. Tagging has no key `tfds`, because tags have a different
# form in TensorFlow Datasets.
TASK_TYPES: Mapping[str, TaskType] = {
    "classification": TaskType(
        metrics=("accuracy", "f1", "mcc"),
        keys=frozenset({"labels", "both_orders", "tfds"}),
        reads_text=True,
    ),
    "regression": TaskType(
        metrics=("pearson", "spearman", "mse"),
        keys=frozenset({"range", "both_orders", "tfds"}),
        reads_text=True,
    ),
    "multilabel": TaskType(
        metrics=("micro_f1", "macro_f1", "exact_match"),
        keys=frozenset({"labels", "both_orders", "label_separator", "tfds"}),
        reads_text=True,
    ),
    "tagging": TaskType(
        metrics=("f1", "accuracy"),
        keys=frozenset({"labels", "tags"}),
        reads_text=False,
    ),
    "question_answering": TaskType(
        metrics=("f1", "exact_match"),
        keys=frozenset({"version", "match", "tfds"}),
        reads_text=False,
    ),
    "summarization": TaskType(
        metrics=ROUGE,
        keys=frozenset({"sentences", "tfds"}),
        reads_text=True,
    ),
}

_COLUMNS = ("text_a", "text_b", "label", "word", "tag")
# The types of the values of `columns`: the name or the index of a column; null
# if the split has no such column.
_COLUMN_KEYS = dict.fromkeys(_COLUMNS, int | str | None)
# The declared types of keys: of a task, of one of its splits, and of tfds.
_TASK_KEYS = {
    "name": NonEmpty,
    "type": Annotated[str, one_of(*TASK_TYPES)],
    "format": NonEmpty,
    "label_separator": NonEmpty,
    "tags": Annotated[str, one_of("spans", "words")],
    "metric": NonEmpty,
    "version": Annotated[str, one_of("squad1", "squad2", "mrqa")],
    "match": Annotated[str, one_of(*MATCHES)],
    "files": dict[str, NonEmpty],
    "columns": dict,
    "splits": dict[str, dict],
    "hparams": dict,
    "tfds": dict,
    "labels": list[str],
    "range": list[float],
    "header": bool,
    "both_orders": bool,
    "sentences": Positive,
}
_SPLIT_KEYS = {"header": bool, "columns": dict, "labelled": bool}
_REQUIRED_TFDS_KEYS = {
    "name": NonEmpty,
    "splits": dict[str, str],
    "columns": dict,
}
_TFDS_KEYS = {
    **_REQUIRED_TFDS_KEYS,
    "label_names": bool,
    "splits_of": dict[str, str],
}
_FLOAT32_BOUND = 3e38  # float32 cannot hold larger numbers


@dataclasses.dataclass(frozen=True)
class SplitSpec:
    """The file of a split and its format."""

    path: str
    header: bool  # whether the first row names columns
    columns: Mapping[str, int | str]  # purpose -> name or index
    labelled: bool  # whether the labels of the split are used


@dataclasses.dataclass(frozen=True)
class TfdsSpec:
    """The data set of TensorFlow Datasets that holds the data of a task."""

    name: str  # the data set, such as "glue/mrpc"
    splits: Mapping[str, str]  # split -> its name in TFDS, if the names differ
    columns: Mapping[str, str]  # column -> feature of the data set
    # True: labels are the names of classes; False: labels are class indices.
    label_names: bool = False
    # split -> the data set that contains the split, for splits outside `name`
    splits_of: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def locate(self, split: str) -> tuple[str, str]:
        """Return a split's data set, and the split's name in the data set."""
        name = self.splits_of.get(split, self.name)
        return name, self.splits.get(split, split)


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """The description of a task; its fields are the keys of the JSON file."""

    name: str
    type: str = "classification"  # one of TASK_TYPES
    # Split -> file; splits are train, dev, test, and any others. Paths are
    # relative to the folder of the JSON file, and must stay inside this folder
    # unless --allow_outside_files is set. For built-in tasks, the folder is
    # <data_dir>/finetuning_data/<name>.
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # tsv, csv, jsonl or conll; None: the name of the file determines the format
    format: str | None = None
    header: bool = True  # whether the first row of csv and tsv names columns
    # Purpose -> column. Purposes are text_a, text_b and label; in tagging, word
    # and tag (default: the first and the last column). A column is a name or an
    # index from 0; negative indices count from the end. In jsonl, words and
    # tags are lists. In summarization, text_a is a document, and label is the
    # summary of the document with one sentence per line.
    columns: Mapping[str, int | str] = dataclasses.field(default_factory=dict)
    # Split -> settings of the split: header, columns, labelled (default: false
    # for splits with "test" or "diagnostic" in their name, true for others).
    splits: Mapping[str, Mapping[str, Any]] = dataclasses.field(
        default_factory=dict
    )
    # the labels, in order; None: the labels in the data, sorted
    labels: tuple[str, ...] | None = None
    label_separator: str = ","  # multilabel: text between the labels of a cell
    # regression: the lowest and the highest value; None: from the training data
    range: tuple[float, float] | None = None
    both_orders: bool = False  # whether training uses pairs in both orders
    tags: str = "spans"  # tagging: spans, or words (each word has a class)
    # The metric by which runs are compared, and which in classification also
    # determines the reported metrics; None: the type's default.
    metric: str | None = None
    version: str = "squad1"  # question_answering: squad1, squad2 or mrqa
    # question_answering: the units that F1 and exact match compare, words or
    # characters; None: words, and in built-in tasks the words of the official
    # script.
    match: str | None = None
    # summarization: the maximum number of sentences in a summary
    sentences: int = 3
    # Default values of hparams for this task.
    hparams: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    tfds: TfdsSpec | None = None
    # True for built-in tasks; not a key of a description.
    original: bool = dataclasses.field(default=False, repr=False)

    @classmethod
    def from_dict(
        cls, description: Mapping[str, Any], where: str = "task"
    ) -> TaskSpec:
        """Validate the description of a task and fill in defaults.

        Args:
          description: the content of a JSON file.
          where: the name of the file for messages.
        """
        check_object(description, _TASK_KEYS, f"{where}: ")
        values = dict(description)
        if "tfds" in values:
            values["tfds"] = _make_tfds_spec(values["tfds"], f"{where}: tfds")
        for key in ("labels", "range"):
            if key in values:
                values[key] = tuple(values[key])
        if "name" not in values:
            raise UserError(
                f"{where}: name: missing; expected the name of the task. Add a"
                " name."
            )
        spec = cls(**values)
        _check_spec(spec, where)
        all_keys = frozenset().union(*(t.keys for t in TASK_TYPES.values()))
        foreign_keys = all_keys - TASK_TYPES[spec.type].keys
        for key in sorted(foreign_keys & {*description}):
            raise UserError(
                f"{where}: {key}: not a setting of tasks of type {spec.type}"
                f" (got {description[key]!r}). Remove the setting."
            )
        return spec

    @classmethod
    def built_in(cls, name: str, description: Mapping[str, Any]) -> TaskSpec:
        """Validate the description of a built-in task."""
        spec = cls.from_dict({"name": name, **description})
        return dataclasses.replace(spec, original=True)

    def resolve_split(self, split: str) -> str:
        """Return a split's key in `files`; for MNLI's dev, dev_matched."""
        matched = f"{split}_matched"
        if split not in self.files and matched in self.files:
            return matched
        return split

    def find_split(self, split: str, directory: str) -> SplitSpec:
        """Return the file of a split in `directory`, and the file's format.

        Raises:
          UserError: the task has no such split.
        """
        split = self.resolve_split(split)
        if split not in self.files:
            raise UserError(
                f"task {self.name} has no {split} split (it has:"
                f" {', '.join(self.files)}). Choose one of these splits."
            )
        settings = self.splits.get(split, {})
        columns = {**self.columns, **settings.get("columns", {})}
        return SplitSpec(
            os.path.join(directory, self.files[split]),
            settings.get("header", self.header),
            {name: c for name, c in columns.items() if c is not None},
            self.has_labels(split),
        )

    def has_labels(self, split: str) -> bool:
        """Return whether a split's labels are used."""
        default = not ("test" in split or "diagnostic" in split)
        return self.splits.get(split, {}).get("labelled", default)


def read_task_config(path: str) -> TaskSpec:
    """Return the description of a task in a JSON file.

    Raises:
      UserError: a value is not valid, or train or dev is missing.
    """
    if not path.endswith(".json"):
        raise UserError(
            "hparam task_config: expected the path of a .json file, got"
            f" {path!r}. Pass the path of a .json file."
        )
    spec = TaskSpec.from_dict(read_hparams(path, "--task_config"), path)
    for split in ("train", "dev"):
        if split not in spec.files:
            raise UserError(
                f"{path}: files.{split}: missing; expected the file of the"
                f" {split} split. Add the file."
            )
        if not spec.has_labels(split):
            raise UserError(
                f"{path}: splits.{split}.labelled: expected true, got false."
                " Set labelled to true, or rename the split if it has no"
                " labels."
            )
    return spec


def _require(condition: bool, where: str, expected: str, value: object) -> None:
    if not condition:
        raise UserError(
            f"{where}: expected {expected}, got {value!r}. Correct the value."
        )


def _make_tfds_spec(description: Any, where: str) -> TfdsSpec:
    check_object(description, _TFDS_KEYS, f"{where}.")
    for key in _REQUIRED_TFDS_KEYS.keys() - description.keys():
        raise UserError(f"{where}.{key}: missing. Add the key.")
    return TfdsSpec(**description)


def _check_spec(spec: TaskSpec, where: str) -> None:
    """Refuse a description with missing or contradictory settings."""
    _check_metric(spec, where)
    check_object(spec.columns, _COLUMN_KEYS, f"{where}: columns.")
    for split, settings in spec.splits.items():
        if split not in spec.files:
            raise UserError(
                f"{where}: splits.{split!r}: no such split in files"
                f" ({', '.join(spec.files)}). Add the split to files, or remove"
                " it from splits."
            )
        prefix = f"{where}: splits.{split}."
        check_object(settings, _SPLIT_KEYS, prefix)
        columns = settings.get("columns", {})
        check_object(columns, _COLUMN_KEYS, f"{prefix}columns.")
    reads_text = TASK_TYPES[spec.type].reads_text
    if reads_text and spec.files and "text_a" not in spec.columns:
        raise UserError(
            f"{where}: columns.text_a: missing; expected the column with the"
            " text. Add text_a to columns."
        )
    if spec.tfds:
        prefix = f"{where}: tfds.columns."
        check_object(spec.tfds.columns, _COLUMN_KEYS, prefix)
        for name in sorted(spec.columns.keys() - spec.tfds.columns.keys()):
            raise UserError(f"{prefix}{name}: missing. Add the column.")
    train_columns = spec.splits.get("train", {}).get("columns", {})
    columns = {**spec.columns, **train_columns}
    if spec.both_orders and columns.get("text_b") is None:
        raise UserError(
            f"{where}: both_orders: needs pairs, but columns has no text_b."
            " Add text_b to columns, or remove both_orders."
        )
    _check_labels(spec, where)


def _check_metric(spec: TaskSpec, where: str) -> None:
    """Refuse a metric that tasks of this type do not have."""
    metrics = TASK_TYPES[spec.type].metrics
    if (spec.type, spec.tags) == ("tagging", "words"):
        metrics = ("accuracy",)
    expected = f"one of {', '.join(metrics)}"
    is_known = spec.metric in (None, *metrics)
    _require(is_known, f"{where}: metric", expected, spec.metric)


def _check_labels(spec: TaskSpec, where: str) -> None:
    """Refuse repeated or too few labels, and an empty range."""
    if spec.labels is not None:
        labels = list(spec.labels)
        minimum = 2 if spec.type == "classification" else 1
        are_valid = len(set(labels)) == len(labels) >= minimum
        expected = f"{minimum} or more distinct texts"
        _require(are_valid, f"{where}: labels", expected, labels)
    if spec.range is not None:
        limits = list(spec.range)
        is_valid = len(limits) == 2 and limits[0] < limits[1]
        is_valid = is_valid and all(abs(n) < _FLOAT32_BOUND for n in limits)
        expected = "[lowest, highest] below 3e38"
        _require(is_valid, f"{where}: range", expected, limits)
