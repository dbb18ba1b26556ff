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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from configure.errors import UserError
from configure.formatting import join_names
from electra_tf.checkpoints.contents import TaskHead
from electra_tf.data import list_cells, tables, values
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.finetuning import heads
from electra_tf.finetuning.equal_labels import refuse_equal_labels
from electra_tf.finetuning.row_report import explains_bad_rows
from electra_tf.finetuning.task import (
    Columns,
    Example,
    Table,
    Task,
    is_encodable,
)
from electra_tf.metrics import classification as scorers
from electra_tf.metrics.scorers import Scorer
from electra_tf.modeling.encoder_config import EncoderConfig

_TEXTS = ("text_a", "text_b")
_SHOWN_LABELS = 12  # the maximum number of labels in a message
_SINGLE_LABEL = (
    "one label instead of a list (to read lists, set type to multilabel; to use"
    " the text itself as a label, add it to labels in the description)"
)


@dataclasses.dataclass(kw_only=True)
class TextExample(Example):
    """A text or a pair of texts, and its label."""

    text_fields = ("text_a", "text_b")
    text_a: str
    text_b: str | None = None  # the second text; None or "" for single texts
    # Depending on the type of the task: a class, a number or a tuple of labels;
    # None: unknown.
    label: Any = None


class TextRow(NamedTuple):
    """A usable row of a split."""

    number: int  # row number from 0, which also counts unusable rows
    line: int  # line number from 1
    cells: dict[str, Any]  # purpose (text_a, text_b, label) -> text or label


class LabelCell(NamedTuple):
    """A cell that holds a label, and its location in the data."""

    path: str
    line: int  # line number from 1
    value: Any


class BadLabelError(ValueError):
    """An error for a cell without a valid label.

    The message of the error describes the expected content.
    """


class TextTask(Task):
    """Base class of tasks that read texts and labels.

    Differs: labels are checked when they are read, so that a bad label loses
      one row and does not stop the run.
    """

    _HEAD: type[heads.SentenceHead]
    n_outputs = 1  # units of the head's dense layer

    @abc.abstractmethod
    def read_label(self, cell: Any) -> Any:
        """Return a cell's label; raise BadLabelError for an invalid label."""

    @abc.abstractmethod
    def label_spec(self) -> FeatureSpec:
        """Return the specification of the label feature."""

    @abc.abstractmethod
    def label_value(self, label: Any) -> Any:
        """Return the label feature's value, or a placeholder for None."""

    @property
    def described_labels(self) -> tuple[Any, ...] | None:
        return self.spec.labels

    @property
    def label_splits(self) -> tuple[str, ...]:
        return ("train", "dev") if self.described_labels is None else ()

    @property
    def may_have_pairs(self) -> bool:
        """Return whether an example may have a second text."""
        return self.pairs_are_optional or "text_b" in self._columns

    @property
    def pairs_are_optional(self) -> bool:
        """Return whether each example may be a single text or a pair of texts.

        Pairs are optional if only a checkpoint describes the task.
        """
        return not self._columns

    @property
    def _columns(self) -> Columns:
        columns = self.spec.columns
        return {n: c for n, c in columns.items() if c is not None}

    @explains_bad_rows
    def get_examples(self, split: str) -> list[TextExample]:
        """Return the examples of a split.

        If `double_unordered` and the task's `both_orders` are set, training
        pairs are returned in both orders.
        """
        table, location = self._open(split), self._location(split)
        if self._has_labels(split):
            self.resolve_labels()
            self._check_header(split, table)
        examples = []
        for number, line, cells in self._read_rows(split, table):
            try:
                if "label" in cells:
                    cells["label"] = self.read_label(cells["label"])
            except BadLabelError as error:
                content = _describe_label(cells["label"])
                self.row_report.add(location, line, content, f"{error}")
                continue
            examples.append(
                TextExample(eid=number, task_name=self.name, line=line, **cells)
            )
        self._require_examples(examples, split, "example")
        doubles = self.spec.both_orders and self.config.double_unordered
        if doubles and split == "train":
            examples += _swap_texts(examples)
        return examples

    def get_test_splits(self) -> list[str]:
        return [s for s in self.spec.files if not self.spec.has_labels(s)]

    def featurize(
        self, example: TextExample, is_training: bool
    ) -> dict[str, Any]:
        """Return the features of an example, whose texts are joined.

        If there are more than `max_seq_length` tokens, the longer text is cut.
        """
        first = [*self.tokenizer.encode(example.text_a)]
        second = [*self.tokenizer.encode(example.text_b or "")]
        n_special = 3 if second else 2  # [CLS] and each [SEP]
        max_tokens = self.config.max_seq_length - n_special
        if len(first) + len(second) > max_tokens:
            self.row_report.losses["examples cut to max_seq_length"] += 1
        while len(first) + len(second) > max_tokens:
            (first if len(first) > len(second) else second).pop()
        input_ids = [self._cls_id, *first, self._sep_id]
        segment_ids = [0] * len(input_ids)
        if second:
            input_ids += [*second, self._sep_id]
            segment_ids += [1] * (len(second) + 1)
        features = self._shared_features(input_ids, segment_ids, example.eid)
        features[self.label_spec().name] = self.label_value(example.label)
        return features

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
        return TaskHead(self.spec.type, tuple(labels), self.config.pooling)

    def labels_path(self) -> str | None:
        if self.described_labels is not None:
            return None
        folder = self.config.preprocessed_data_dir
        return os.path.join(folder, self.labels_file_name())

    def labels_file_name(self) -> str:
        return f"{self.name}_labels.json"

    def label_cells(self, *splits: str) -> list[LabelCell] | None:
        """Return the cells of labels in `splits`; None if no split exists."""
        existing_splits = [s for s in splits if self.has_split(s)]
        if not existing_splits:
            return None
        return [
            LabelCell(self._location(split), row.line, row.cells["label"])
            for split in existing_splits
            if self.spec.has_labels(split)
            for row in self._read_rows(split, self._open(split))
        ]

    def _report_label(self, cell: LabelCell, expected: str) -> None:
        content = _describe_label(cell.value)
        self.row_report.add(cell.path, cell.line, content, expected)

    def _has_labels(self, split: str) -> bool:
        return self.spec.has_labels(self.spec.resolve_split(split))

    def _check_header(self, split: str, table: Table) -> None:
        """Report a label in the header, which may be the first row of data.

        If columns are names, they show that the row is a header.
        """
        columns = self.spec.find_split(split, self.directory).columns
        if table.header is None or not isinstance(columns.get("label"), int):
            return
        index, cells = table.columns["label"], table.header.cells
        cell = cells[index].strip() if -len(cells) <= index < len(cells) else ""
        # pandas may number columns in the header.
        if cell in ("", str(index)):
            return
        try:
            self.read_label(cell)
        except BadLabelError:
            return
        self.row_report.add(
            self._location(split),
            table.header.line,
            f"label {cell!r} in the header",
            "another name (if the row is data, set header to false; otherwise"
            " put the name of the column into columns)",
        )

    def _read_rows(self, split: str, table: Table) -> Iterator[TextRow]:
        """Yield the usable rows of a split and report unusable rows."""
        columns, location = table.columns, self._location(split)
        names = [name for name in _TEXTS if name in columns]
        if self._has_labels(split) and "label" in columns:
            names.append("label")
        for number, row in enumerate(table.rows):
            report = functools.partial(self.row_report.add, location, row.line)
            if row.expected and not row.cells:
                report(row.content, row.expected)
                continue
            try:
                cells = {name: row.cells[columns[name]] for name in names}
            except (IndexError, KeyError, TypeError):
                report(
                    row.content or _describe_row(row),
                    row.expected or _describe_columns(columns, names),
                )
                continue
            if row.expected:  # The original also uses parts of quoted cells.
                report(row.content, row.expected, skipped=False)
            if name := _first_unreadable(cells):
                content = values.describe(cells[name])
                report(f"{columns[name]} is {content}", "a text")
                continue
            cells |= {n: values.as_text(cells[n]) for n in names if n in _TEXTS}
            if not cells["text_a"].strip():
                report(_describe_row(row), "a text", skipped=False)
            if table.class_names and "label" in cells:
                label_id = cells["label"]
                if 0 <= label_id < len(table.class_names):
                    cells["label"] = table.class_names[label_id]
            yield TextRow(number, row.line, cells)


def _swap_texts(examples: Sequence[TextExample]) -> list[TextExample]:
    """Return copies of pairs with swapped texts and with other numbers.

    The number of a copy is the number of the pair plus the count of pairs.
    """
    return [
        dataclasses.replace(
            example,
            eid=example.eid + len(examples),
            text_a=example.text_b,
            text_b=example.text_a,
        )
        for example in examples
    ]


def _first_unreadable(cells: Mapping[str, Any]) -> str | None:
    """Return the purpose of the first cell without a valid text, or None."""
    for name in _TEXTS:
        if name in cells and values.as_text(cells[name]) is None:
            return name
    return None


def _describe_row(row: tables.Row) -> str:
    if not row.cells:
        return "an empty line"
    if isinstance(row.cells, dict):
        return f"{row.cells}"
    return f"{len(row.cells)} columns: {row.cells}"


def _describe_columns(columns: Columns, names: Sequence[str]) -> str:
    """Return a description of a row that contains the named columns."""
    options = [columns[name] for name in names]
    if all(isinstance(option, int) for option in options):
        count = max(i + 1 if i >= 0 else -i for i in options)
        return f"at least {count} columns"
    return f"texts under {', '.join(map(str, options))}"


class ClassificationTask(TextTask):
    """A task with one class per text or pair."""

    _HEAD = heads.ClassificationHead
    _MIN_LABELS = 2

    @property
    def labels(self) -> list[str]:
        """The names of the classes; a name's index is the id of the class."""
        return list(self.resolved_labels)

    @property
    def n_outputs(self) -> int:
        return len(self.labels)

    def label_names(self, example: TextExample) -> Iterable[str]:
        """Return the name of an example's class in a list; [] if unknown."""
        return [] if example.label is None else [example.label]

    def read_label(self, cell: Any) -> Any:
        """Return a cell's class; raise BadLabelError for an unknown class."""
        label = _match_label(cell, self.labels)
        if label not in self.labels:
            if isinstance(cell, str) and _parse_list(cell) is not None:
                raise BadLabelError(_SINGLE_LABEL)
            names = join_names(self.labels, _SHOWN_LABELS)
            raise BadLabelError(f"one of: {names}")
        return label

    def label_value(self, label: Any) -> Any:
        """Return the id of a class; 0 for None."""
        return 0 if label is None else self.labels.index(label)

    def label_spec(self) -> FeatureSpec:
        """Return the specification of the feature of class ids."""
        return FeatureSpec(f"{self.name}_label_ids", [])

    def get_scorer(self, split: str = "dev") -> Scorer:
        """Return the scorer of the task's metric (default: accuracy)."""
        if self.spec.metric == "f1":
            if self.n_outputs > 2:
                raise UserError(
                    f"task {self.name}: metric f1 scores the second of two"
                    f" classes, but the task has {self.n_outputs} classes. Set"
                    " metric to accuracy or mcc."
                )
            return scorers.F1Scorer()
        if self.spec.metric == "mcc":
            return scorers.MCCScorer(self.n_outputs)
        return scorers.AccuracyScorer(self.n_outputs)

    @explains_bad_rows
    def find_labels(self) -> list[str] | None:
        """Return the classes in the train and dev data; None without data."""
        cells = self.label_cells("train", "dev")
        if cells is None:
            return None
        labels: set[str] = set()
        problems: list[tuple[LabelCell, str]] = []
        for cell in cells:
            try:
                labels.update(self._split_cell(cell.value))
            except BadLabelError as error:
                # A bad cell is an error here only if too few labels remain;
                # otherwise `get_examples` reports the cell.
                problems.append((cell, f"{error}"))
        refuse_equal_labels(self.name, sorted(labels))
        if len(labels) < self._MIN_LABELS:
            for cell, expected in problems:
                self._report_label(cell, expected)
            raise UserError(
                f"task {self.name}: its data has {len(labels)} distinct"
                f" labels ({', '.join(sorted(labels)) or 'none'}); expected at"
                f" least {self._MIN_LABELS}. Correct the data, or the columns"
                " in the description."
            )
        return sorted(labels)

    def _split_cell(self, cell: Any) -> list[str]:
        """Return the labels in a cell of the data."""
        label = _label_text(cell)
        if not label:
            raise BadLabelError("a label")
        if isinstance(cell, str) and _parse_list(cell) is not None:
            raise BadLabelError(_SINGLE_LABEL)
        return [label]


class MultiLabelTask(ClassificationTask):
    """A task with any number of labels per text or pair."""

    _HEAD = heads.MultiLabelHead
    _MIN_LABELS = 1

    def label_names(self, example: TextExample) -> Iterable[str]:
        return example.label or ()

    def read_label(self, cell: Any) -> Any:
        """Return the labels in a cell, in the order of `labels`."""
        cell_labels = self._split_cell(cell)
        if set(cell_labels) - set(self.labels):
            names = join_names(self.labels, _SHOWN_LABELS)
            raise BadLabelError(f"labels from this list: {names}")
        return tuple(label for label in self.labels if label in cell_labels)

    def label_value(self, label: Any) -> Any:
        """Return 1 or 0 for each label: 1 if the example has the label."""
        return [int(name in (label or ())) for name in self.labels]

    def label_spec(self) -> FeatureSpec:
        return FeatureSpec(f"{self.name}_label_ids", [len(self.labels)])

    def get_scorer(self, split: str = "dev") -> Scorer:
        return scorers.MultiLabelScorer(self.labels)

    def _split_cell(self, cell: Any) -> list[str]:
        """Return the labels in a cell, which holds a list or a text.

        In a text, `label_separator` separates the labels.

        A text in Python's or JSON's list notation is parsed as a list, because
        other programs write lists into tables in this way.
        """
        if isinstance(cell, list):
            return [self._item_label(item) for item in cell]
        parts = _label_text(cell).split(self.spec.label_separator)
        parts = [part.strip() for part in parts if part.strip()]
        if not isinstance(cell, str) or {*parts} <= {*self._set_labels}:
            return parts
        try:
            items = list_cells.read_list(cell)
        except list_cells.UnreadableListError:
            raise BadLabelError(
                f"labels separated by {self.spec.label_separator!r}, or a list"
                " in the notation of JSON or Python"
            ) from None
        if items is None:
            return parts
        return [self._item_label(item) for item in items]

    def _item_label(self, item: Any) -> str:
        return _match_label(item, self._set_labels)

    @property
    def _set_labels(self) -> Sequence[str]:
        """The labels of the description, or the labels that were set."""
        return self.described_labels or self._resolved_labels or ()


class RegressionTask(TextTask):
    """A task with one number per text or pair.

    Differs: any range is mapped to [0, 1] (the original divides by the highest
      value, which is the same for ranges from 0), and `unscale` maps
      predictions back.
    """

    _HEAD = heads.RegressionHead

    @property
    def described_labels(self) -> tuple[Any, ...] | None:
        return self.spec.range

    @property
    def head(self) -> TaskHead:
        limits = self.described_labels or self._resolved_labels
        limits = None if limits is None else tuple(limits)
        return dataclasses.replace(super().head, range=limits)

    @property
    def value_range(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        low, high = self.resolved_labels
        return low, high

    def unscale(self, predictions: Any) -> Any:
        """Return predictions (an array or a number) in the task's own range."""
        low, high = self.value_range
        return predictions * (high - low) + low

    def read_label(self, cell: Any) -> float:
        # JSON and TFDS (float32) contain numbers; other formats contain texts.
        low, high = self.value_range
        number = _parse_number(cell)
        if number is None or not low <= number <= high:
            raise BadLabelError(f"a number from {low:g} to {high:g}")
        return number

    def label_value(self, label: float | None) -> float:
        """Return a label on the scale from 0 to 1.

        None counts as 0, or as the lowest value if the range excludes 0.
        """
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
        cells = self.label_cells("train")
        if cells is None:
            return None
        numbers = [_parse_number(cell.value) for cell in cells]
        valid_numbers = {number for number in numbers if number is not None}
        if len(valid_numbers) < 2:
            for cell, number in zip(cells, numbers, strict=True):
                if number is None:
                    self._report_label(cell, "a number")
            raise UserError(
                f"task {self.name}: its training data has"
                f" {len(valid_numbers)} distinct numbers as labels; expected 2"
                " or more. In the description, set range or correct columns."
            )
        return [min(valid_numbers), max(valid_numbers)]


def _describe_label(cell: Any) -> str:
    if isinstance(cell, str | int | float) and not isinstance(cell, bool):
        return f"label {cell!r}"
    return f"label is {values.describe(cell)}"


def _parse_list(text: str) -> list[Any] | None:
    """Return the list that a text represents; None for any other text."""
    try:
        return list_cells.read_list(text)
    except list_cells.UnreadableListError:
        return None


def _match_label(cell: Any, labels: Sequence[str]) -> str:
    """Return a label as text; 1.0 becomes "1" unless only "1.0" is a label."""
    label = _label_text(cell)
    if label not in labels and isinstance(cell, float) and str(cell) in labels:
        return str(cell)
    return label


def _label_text(cell: Any) -> str:
    """Return a label as text; true becomes "true", 1 and 1.0 become "1"."""
    text = values.as_id(cell)
    if isinstance(cell, bool):
        text = str(cell).lower()
    elif text is None and isinstance(cell, float) and math.isfinite(cell):
        text = str(cell)
    if text is None:
        raise BadLabelError("a text, a number, true or false")
    if not is_encodable(text):
        raise BadLabelError("a text of valid Unicode characters")
    return text


def _parse_number(cell: Any) -> float | None:
    """Return a cell as a finite number, or None; 1_000 is not a number."""
    if isinstance(cell, bool) or (isinstance(cell, str) and "_" in cell):
        return None
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
