# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks with a class, a number or several labels per text or pair.

Source: google-research/electra, finetune/classification/
classification_tasks.py.
"""

import abc
import dataclasses
import functools
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from configure.errors import UserError
from configure.formatting import join_names
from electra_tf.checkpoints.contents import TaskHead
from electra_tf.data import list_cells, tables, values
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.finetuning import heads
from electra_tf.finetuning.row_report import explains_bad_rows
from electra_tf.finetuning.task import (
    Columns,
    Example,
    Task,
    is_whole,
    refuse_equal_labels,
)
from electra_tf.metrics import classification as scorers
from electra_tf.metrics.scorers import Scorer
from electra_tf.modeling.encoder_config import EncoderConfig

_SHOWN_LABELS = 12


@dataclasses.dataclass(kw_only=True)
class TextExample(Example):
    """A text or a pair of texts."""

    text_fields = ("text_a", "text_b")
    text_a: str
    text_b: str | None = None  # the second text; None or "" for single texts
    # A class, a number, or a tuple of labels, by the task's type.
    label: Any = None


class LabelCell(NamedTuple):
    """A label as it stands in a file."""

    path: str
    line: int  # from 1
    value: Any


class BadLabelError(ValueError):
    """A label's cell that means none; the text says what was expected."""


class TextTask(Task):
    """Reads texts and labels and makes the inputs of them.

    Differs: labels are checked when they are read, so that a bad one costs a
      row and not the run.
    """

    _HEAD: type[heads.SentenceHead]
    n_outputs = 1  # units of the head's dense layer

    @abc.abstractmethod
    def read_label(self, cell: Any) -> Any:
        """Returns a label from its cell; BadLabelError if it is none."""

    @abc.abstractmethod
    def label_spec(self) -> FeatureSpec:
        """Returns the feature that is made of a label."""

    @abc.abstractmethod
    def label_value(self, label: Any) -> Any:
        """Returns its value; None has one, too."""

    @property
    def given_labels(self) -> tuple[Any, ...] | None:
        """What the description says of labels; None: the data is asked."""
        return self.spec.labels

    @property
    def label_splits(self) -> tuple[str, ...]:
        return ("train", "dev") if self.given_labels is None else ()

    @property
    def may_have_pairs(self) -> bool:
        """Whether an example may have a second text."""
        return self.pairs_are_optional or "text_b" in self._columns

    @property
    def pairs_are_optional(self) -> bool:
        """Whether an example has one text or two, as it comes.

        So it is where nothing but a checkpoint describes the task.
        """
        return not self._columns

    @property
    def _columns(self) -> Columns:
        columns = self.spec.columns
        return {n: c for n, c in columns.items() if c is not None}

    @explains_bad_rows
    def get_examples(self, split: str) -> list[TextExample]:
        """Reads a split; unordered training pairs come in both orders."""
        place = self._place(split)
        examples = []
        for number, line, cells in self._read(split):
            try:
                if "label" in cells:
                    cells["label"] = self.read_label(cells["label"])
            except BadLabelError as problem:
                found = _shown_label(cells["label"])
                self.row_report.add(place, line, found, f"{problem}")
                continue
            examples.append(
                TextExample(eid=number, task_name=self.name, line=line, **cells)
            )
        self._require_some(examples, split, "example")
        doubles = self.spec.both_orders and self.config.double_unordered
        if doubles and split == "train":
            examples += [
                dataclasses.replace(
                    example,
                    eid=example.eid + len(examples),
                    text_a=example.text_b,
                    text_b=example.text_a,
                )
                for example in examples
            ]
        return examples

    def get_test_splits(self) -> list[str]:
        return [s for s in self.spec.files if not self.spec.has_labels(s)]

    def featurize(
        self, example: TextExample, is_training: bool
    ) -> dict[str, Any]:
        """Joins the texts; what does not fit is cut off the longer's end."""
        first = [*self.tokenizer.encode(example.text_a)]
        second = [*self.tokenizer.encode(example.text_b or "")]
        room = self.config.max_seq_length - (3 if second else 2)
        if len(first) + len(second) > room:
            self.row_report.losses["examples cut to max_seq_length"] += 1
        while len(first) + len(second) > room:
            (first if len(first) > len(second) else second).pop()
        input_ids = [self._cls_id, *first, self._sep_id]
        segment_ids = [0] * len(input_ids)
        if second:
            input_ids += [*second, self._sep_id]
            segment_ids += [1] * (len(second) + 1)
        value = self.label_value(example.label)
        inputs = self._inputs(input_ids, segment_ids, example.eid)
        return inputs | {self.label_spec().name: value}

    def get_feature_specs(self) -> list[FeatureSpec]:
        return [FeatureSpec(f"{self.name}_eid", []), self.label_spec()]

    def build_head(
        self, encoder_config: EncoderConfig, seed: int
    ) -> heads.SentenceHead:
        return self._HEAD(
            self.name,
            encoder_config.hidden_size,
            self.n_outputs,
            pooling=self.config.pooling,
            seed=seed,
            layers=self.config.classification_head_layers,
        )

    @property
    def head(self) -> TaskHead:
        labels = getattr(self, "labels", ())
        pooling = self.config.pooling
        return TaskHead(self.spec.type, tuple(labels), pooling)

    def labels_path(self) -> str | None:
        """Where labels are kept; None if the description has them."""
        if self.given_labels is not None:
            return None
        folder = self.config.preprocessed_data_dir
        return os.path.join(folder, self.labels_name())

    def labels_name(self) -> str:
        return f"{self.name}_labels.json"

    def label_cells(self, *splits: str) -> list[LabelCell] | None:
        """Returns the label cells of splits; None if no split is there."""
        there = [s for s in splits if self.has_split(s)]
        if not there:
            return None
        return [
            LabelCell(self._place(split), line, cells["label"])
            for split in there
            if self.spec.has_labels(split)
            for _, line, cells in self._read(split)
        ]

    def _report_label(self, cell: LabelCell, expected: str) -> None:
        shown = _shown_label(cell.value)
        self.row_report.add(cell.path, cell.line, shown, expected)

    def _read(self, split: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Rows' numbers (from 0, bad ones counted), lines, texts and labels."""
        split = self.spec.resolve_split(split)
        path, labelled = self._place(split), self.spec.has_labels(split)
        rows, columns, class_names = self._open(split)
        wanted = ["text_a", "text_b"] + ["label"] * labelled
        wanted = [column for column in wanted if column in columns]
        for number, row in enumerate(rows):
            report = functools.partial(self.row_report.add, path, row.line)
            if row.expected and not row.cells:
                report(row.content, row.expected)
                continue
            try:
                cells = {name: row.cells[columns[name]] for name in wanted}
            except (IndexError, KeyError, TypeError):
                expected = row.expected or _expected(columns, wanted)
                report(row.content or _shown(row), expected)
                continue
            if row.expected:  # Half a row, which the original uses.
                report(row.content, row.expected, skipped=False)
            if column := _unreadable_text(cells):
                found = values.describe(cells[column])
                report(f"{columns[column]} is {found}", "a text")
                continue
            if not cells["text_a"].strip():
                report(_shown(row), "a text", skipped=False)
            if class_names and 0 <= cells.get("label", -1) < len(class_names):
                cells["label"] = class_names[cells["label"]]
            yield number, row.line, cells


def _unreadable_text(cells: dict[str, Any]) -> str | None:
    """Reads the texts in place; returns the first column that has none."""
    for name in ("text_a", "text_b"):
        if name in cells:
            text = values.as_text(cells[name])
            if text is None:
                return name
            cells[name] = text
    return None


def _shown(row: tables.Row) -> str:
    if not row.cells:
        return "an empty line"
    if isinstance(row.cells, dict):
        return f"{row.cells}"
    return f"{len(row.cells)} columns: {row.cells}"


def _expected(columns: Columns, wanted: list[str]) -> str:
    places = [columns[column] for column in wanted]
    if all(isinstance(place, int) for place in places):
        least = max(p + 1 if p >= 0 else -p for p in places)
        return f"at least {least} columns"
    return f"texts under {', '.join(map(str, places))}"


class ClassificationTask(TextTask):
    """One class per text or pair."""

    _HEAD = heads.ClassificationHead
    _FEWEST = 2

    @property
    def labels(self) -> list[str]:
        """The classes in order; the class of id i is the i-th."""
        return list(self.known_labels)

    @property
    def n_outputs(self) -> int:
        return len(self.labels)

    def labels_of(self, example: TextExample) -> Iterable[str]:
        return [] if example.label is None else [example.label]

    def read_label(self, cell: Any) -> Any:
        label = _known_label(cell, self.labels)
        if label not in self.labels:
            if isinstance(cell, str) and _list_in(cell) is not None:
                raise BadLabelError(_NO_LIST)
            raise BadLabelError(
                f"one of: {join_names(self.labels, _SHOWN_LABELS)}"
            )
        return label

    def label_value(self, label: Any) -> Any:
        """Returns a class's number; that of the first where there is none."""
        return 0 if label is None else self.labels.index(label)

    def label_spec(self) -> FeatureSpec:
        return FeatureSpec(f"{self.name}_label_ids", [])

    def get_scorer(self, split: str = "dev") -> Scorer:
        """Returns the scorer of the task's metric (default: accuracy)."""
        if self.spec.metric == "f1":
            if self.n_outputs > 2:
                raise UserError(
                    f"task {self.name}: metric f1 is of the second of two"
                    f" classes, and there are {self.n_outputs}; use accuracy or"
                    " mcc"
                )
            return scorers.F1Scorer()
        if self.spec.metric == "mcc":
            return scorers.MCCScorer(self.n_outputs)
        return scorers.AccuracyScorer(self.n_outputs)

    @explains_bad_rows
    def find_labels(self) -> list[str] | None:
        if (cells := self.label_cells("train", "dev")) is None:
            return None
        labels: set[str] = set()
        problems: list[tuple[LabelCell, str]] = []
        for cell in cells:
            try:
                labels.update(self._split_cell(cell.value))
            except BadLabelError as problem:  # Else reported when it is read.
                problems.append((cell, f"{problem}"))
        refuse_equal_labels(self.name, sorted(labels))
        if len(labels) < self._FEWEST:
            for cell, expected in problems:
                self._report_label(cell, expected)
            raise UserError(
                f"task {self.name}: its data has {len(labels)} different"
                f" labels ({', '.join(sorted(labels)) or 'none'}); at least"
                f" {self._FEWEST} are needed"
            )
        return sorted(labels)

    def _split_cell(self, cell: Any) -> list[str]:
        label = _label_text(cell)
        if not label:
            raise BadLabelError("a label")
        if isinstance(cell, str) and _list_in(cell) is not None:
            raise BadLabelError(_NO_LIST)
        return [label]


class MultiLabelTask(ClassificationTask):
    """Any number of labels per text or pair."""

    _HEAD = heads.MultiLabelHead
    _FEWEST = 1

    def labels_of(self, example: TextExample) -> Iterable[str]:
        return example.label or ()

    def read_label(self, cell: Any) -> Any:
        """Returns the labels in a cell, in the order of `labels`."""
        given = self._split_cell(cell)
        if set(given) - set(self.labels):
            raise BadLabelError(
                f"only one of: {join_names(self.labels, _SHOWN_LABELS)}"
            )
        return tuple(label for label in self.labels if label in given)

    def label_value(self, label: Any) -> Any:
        """Returns int [number of labels], 1 where given."""
        return [int(name in (label or ())) for name in self.labels]

    def label_spec(self) -> FeatureSpec:
        return FeatureSpec(f"{self.name}_label_ids", [len(self.labels)])

    def get_scorer(self, split: str = "dev") -> Scorer:
        return scorers.MultiLabelScorer(self.labels)

    def _split_cell(self, cell: Any) -> list[str]:
        """Returns the labels of a list, or of a text with separators.

        A text that is a list in Python's or JSON's notation, which other
        programs write into tables, is that list.
        """
        if isinstance(cell, list):
            return [self._part(part) for part in cell]
        parts = _label_text(cell).split(self.spec.label_separator)
        parts = [part.strip() for part in parts if part.strip()]
        if not isinstance(cell, str) or {*parts} <= {*self._given_names}:
            return parts
        try:
            found = list_cells.read_list(cell)
        except list_cells.UnreadableListError:
            raise BadLabelError(
                f"labels with {self.spec.label_separator!r} between, or a list"
                " in JSON or Python"
            ) from None
        return parts if found is None else [self._part(part) for part in found]

    def _part(self, value: Any) -> str:
        return _known_label(value, self._given_names)

    @property
    def _given_names(self) -> Sequence[str]:
        """The description's labels, or a model's, if known."""
        return self.given_labels or self._known_labels or ()


class RegressionTask(TextTask):
    """One number per text or pair.

    Differs: any range is mapped to 0 ... 1 (the original divides by the
      highest value, which is the same for ranges from 0), and `unscale` maps
      predictions back.
    """

    _HEAD = heads.RegressionHead

    @property
    def given_labels(self) -> tuple[Any, ...] | None:
        return self.spec.range

    @property
    def head(self) -> TaskHead:
        limits = self.given_labels or self._known_labels
        limits = None if limits is None else tuple(limits)
        return dataclasses.replace(super().head, range=limits)

    @property
    def value_range(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        low, high = self.known_labels
        return low, high

    def unscale(self, predictions: Any) -> Any:
        """Maps predictions, array or number, to the task's own range."""
        low, high = self.value_range
        return predictions * (high - low) + low

    def read_label(self, cell: Any) -> float:
        # TFDS and JSON have numbers, other files texts; TFDS's are float32.
        low, high = self.value_range
        number = _number(cell)
        if number is None or not low <= number <= high:
            raise BadLabelError(f"a number from {low:g} to {high:g}")
        return number

    def label_value(self, label: float | None) -> float:
        """Returns the number mapped to 0 ... 1."""
        low, high = self.value_range
        if label is None:
            label = 0.0 if low <= 0.0 <= high else low
        return (label - low) / (high - low)

    def label_spec(self) -> FeatureSpec:
        return FeatureSpec(f"{self.name}_targets", [], is_int_feature=False)

    def get_scorer(self, split: str = "dev") -> Scorer:
        return scorers.RegressionScorer()

    @explains_bad_rows
    def find_labels(self) -> list[float] | None:
        if (cells := self.label_cells("train")) is None:
            return None
        numbers = [n for c in cells if (n := _number(c.value)) is not None]
        if not numbers or min(numbers) == max(numbers):
            for cell in cells:
                if _number(cell.value) is None:
                    self._report_label(cell, "a number")
            raise UserError(
                f"task {self.name}: its training labels hold"
                f" {len(set(numbers))} different numbers; give range, or"
                " check columns"
            )
        return [min(numbers), max(numbers)]


_NO_LIST = (
    "one label, not a list of them (type multilabel reads lists; labels in the"
    " task's description may be of any form)"
)


def _shown_label(cell: Any) -> str:
    if isinstance(cell, str | int | float) and not isinstance(cell, bool):
        return f"label {cell!r}"
    return f"label is {values.describe(cell)}"


def _list_in(text: str) -> list[Any] | None:
    """Returns the list that a text is, if any."""
    try:
        return list_cells.read_list(text)
    except list_cells.UnreadableListError:
        return None


def _known_label(cell: Any, labels: Sequence[str]) -> str:
    """Returns a label as text: 1.0 is "1", unless "1.0" alone is a label."""
    label = _label_text(cell)
    if label not in labels and isinstance(cell, float) and str(cell) in labels:
        return str(cell)
    return label


def _label_text(cell: Any) -> str:
    """Returns a label as text: true is "true", 1 and 1.0 are "1"."""
    text = values.as_id(cell)
    if isinstance(cell, bool):
        text = str(cell).lower()
    elif text is None and isinstance(cell, float) and math.isfinite(cell):
        text = str(cell)
    if text is None:
        raise BadLabelError("a text, a number, true or false")
    if not is_whole(text):
        raise BadLabelError("a text of whole characters")
    return text


def _number(cell: Any) -> float | None:
    """Returns a finite number, or that of a text; Python's 1_000 is none."""
    if isinstance(cell, bool) or (isinstance(cell, str) and "_" in cell):
        return None
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
