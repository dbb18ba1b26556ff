# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks with a class, a number or several labels per text or pair.

Source: google-research/electra, finetune/classification/
classification_tasks.py.
"""

import abc
import dataclasses
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

from configure.errors import UserError, listed
from electra_tf import files
from electra_tf.data import tables
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.finetuning.model import (
    ClassificationHead,
    MultiLabelHead,
    RegressionHead,
    SentenceHead,
)
from electra_tf.finetuning.task import DescribedTask, Example, RowReport
from electra_tf.metrics import scorers
from electra_tf.modeling.encoder_config import EncoderConfig

# Rows read in debug mode, a header among them, as in the original.
DEBUG_ROWS = 100
_SHOWN_LABELS = 12
# Number of a row from 0 (bad ones counted, a header not), its line from 1, and
# its text_a, text_b and label, as far as there are such columns.
_Row = tuple[int, int, dict[str, Any]]


@dataclasses.dataclass(kw_only=True)
class TextExample(Example):
    """A text or a pair of texts."""

    text_a: str
    text_b: str | None = None  # the second text; None or "" for single texts
    # A class, a number, or a tuple of labels, by the task's type.
    label: Any = None


class BadLabelError(ValueError):
    """A label's cell that means none; the text says what was expected."""


class TextTask(DescribedTask):
    """Reads texts and labels and makes the inputs of them.

    Attributes:
      n_outputs: units of the head's dense layer.

    Differs: labels are checked when they are read, so that a bad one costs a
      row and not the run.
    """

    _HEAD: type[SentenceHead]
    n_outputs = 1

    @abc.abstractmethod
    def read_label(self, cell: Any) -> Any:
        """Returns a label from its cell; BadLabelError if it is none."""

    @abc.abstractmethod
    def label_spec(self) -> FeatureSpec:
        """Returns the feature that is made of a label."""

    @abc.abstractmethod
    def label_features(self, label: Any) -> dict[str, Any]:
        """Returns its values by full name; None has some, too."""

    @property
    def labels_are_found(self) -> bool:
        """Whether the labels come from the data."""
        return self.spec.labels is None

    def get_examples(self, split: str) -> list[TextExample]:
        """Reads a split; see `Task.get_examples`.

        Pairs whose order means nothing are trained on in both orders: all
        once more with the texts exchanged, and ids that go on.
        """
        split = self._file_split(split)
        examples = []
        for number, line, cells in self._read(split):
            try:
                if "label" in cells:
                    cells["label"] = self.read_label(cells["label"])
            except BadLabelError as problem:
                found = f"label {cells['label']!r}"
                path = self._place(split)
                self.row_report.add(path, line, found, f"{problem}")
                continue
            examples.append(
                TextExample(eid=number, task_name=self.name, **cells)
            )
        if not examples:
            raise UserError(
                f"task {self.name}: no usable example in its {split} split"
                f" ({self._place(split)}; bad rows:"
                f" {len(self.row_report.rows)})"
            )
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
        """Returns the splits without labels, in the order of the files."""
        return [s for s in self.spec.files if not self.spec.labelled(s)]

    def get_dev_splits(self) -> list[str]:
        """Returns the labelled splits besides train, "dev" first."""
        own = [s for s in self.spec.files if self.spec.labelled(s)]
        others = [s for s in own if s not in ("train", "dev", "dev_matched")]
        return ["dev", *others]

    def has_split(self, split: str) -> bool:
        """Returns whether the split's file is there (TFDS: is known)."""
        split = self._file_split(split)
        if split not in self.spec.files:
            return False
        if self.config.data_source == "tfds":
            return self.spec.tfds is not None
        return files.exists(self._place(split))

    def featurize(
        self, example: TextExample, is_training: bool, log: bool = False
    ) -> dict[str, Any]:
        """Turns a text or pair into the inputs of the encoder."""
        first = self.tokenizer.encode(example.text_a)
        second = self.tokenizer.encode(example.text_b or "")
        length = self.config.max_seq_length
        room = length - (3 if second else 2)
        if len(first) + len(second) > room:
            self.row_report.count_loss("examples cut to max_seq_length")
            first, second = _cut(first, second, room)
        input_ids = [self._cls_id, *first, self._sep_id]
        segment_ids = [0] * len(input_ids)
        if second:
            input_ids += [*second, self._sep_id]
            segment_ids += [1] * (len(second) + 1)
        padding = [0] * (length - len(input_ids))
        if log:
            tokens = self.tokenizer.convert_ids_to_tokens(input_ids)
            print(
                f"{self.name} example {example.eid}\n"
                f"  tokens: {' '.join(tokens)}\n"
                f"  input_ids: {' '.join(map(str, input_ids))}\n"
                f"  label: {example.label}"
            )
        return {
            "input_ids": input_ids + padding,
            "input_mask": [1] * len(input_ids) + padding,
            "segment_ids": segment_ids + padding,
            "task_id": self.config.task_names.index(self.name),
            f"{self.name}_eid": example.eid,
            **self.label_features(example.label),
        }

    def get_feature_specs(self) -> list[FeatureSpec]:
        """Returns scalar `<task>_eid`, and the label's feature."""
        return [FeatureSpec(f"{self.name}_eid", []), self.label_spec()]

    def build_head(
        self, encoder_config: EncoderConfig, seed: int
    ) -> SentenceHead:
        """Returns a dense layer; see `Task.build_head`."""
        return self._HEAD(
            self.name,
            encoder_config.hidden_size,
            self.n_outputs,
            pooling=self.config.pooling,
            seed=seed,
        )

    def data_files(self, split: str) -> list[str] | None:
        """Returns the files that a split's features depend on."""
        if self.config.data_source == "tfds":
            return []
        splits = [self._file_split(split)]
        if splits[0] not in self.spec.files:
            return None
        if self.labels_are_found:
            splits += [s for s in ("train", "dev") if s in self.spec.files]
        paths = [self._place(s) for s in dict.fromkeys(splits)]
        return [path for path in paths if files.exists(path)]

    def fingerprint(self) -> dict[str, Any]:
        """Returns the description, and which data set TFDS gives."""
        facts = super().fingerprint() | {"spec": repr(self.spec)}
        if self.config.data_source == "tfds" and self.spec.tfds:
            name = self.spec.tfds.name
            data_dir = self.config.tfds_data_dir
            facts["tfds"] = tables.tfds_identity(name, data_dir)
        return facts

    def labels_path(self) -> str | None:
        """Returns where labels are kept; None if the description has them."""
        if not self.labels_are_found:
            return None
        return os.path.join(
            self.config.preprocessed_data_dir, f"{self.name}_labels.json"
        )

    def label_cells(self, *splits: str) -> list[Any] | None:
        """Returns the label cells of splits; None if no split is there."""
        there = [s for s in splits if self.has_split(s)]
        if not there:
            return None
        return [
            cells["label"]
            for split in there
            if self.spec.labelled(split)
            for _, _, cells in self._read(split)
        ]

    def _file_split(self, split: str) -> str:
        """Returns the split's name among the files."""
        matched = f"{split}_matched"
        there = self.spec.files
        return matched if split not in there and matched in there else split

    def _place(self, split: str) -> str:
        if self.config.data_source == "tfds" and self.spec.tfds:
            return "tfds:" + "/".join(self.spec.tfds.place(split))
        return self.spec.split(split, self.directory).path

    def _read(self, split: str) -> Iterator[_Row]:
        most = DEBUG_ROWS if self.config.debug else None
        if self.config.data_source == "tfds":
            return self._read_tfds(split, most)
        return self._read_file(split, most)

    def _read_file(self, split: str, most: int | None) -> Iterator[_Row]:
        place = self.spec.existing_split(split, self.directory)
        kind = tables.file_format(place.path, self.spec.format)
        if kind == "conll":
            raise UserError(
                f"{place.path}: a task of type {self.spec.type} is read from"
                " tsv, csv or jsonl; give its format"
            )
        rows = tables.read_rows(place.path, kind, most)
        columns = {
            column: where
            for column, where in place.columns.items()
            if column != "label" or place.labelled
        }
        if kind != "jsonl":
            header = next(rows, None) if place.header else None
            names = header.cells if header is not None else []
            columns = _positions(place.path, columns, names, kind)
        yield from _pick(
            rows, columns, place.path, place.labelled, self.row_report
        )

    def _read_tfds(self, split: str, most: int | None) -> Iterator[_Row]:
        spec, data_dir = self.spec.tfds, self.config.tfds_data_dir
        if spec is None:
            raise UserError(
                f"task {self.name}: not known to TensorFlow Datasets; use"
                " data_source=files"
            )
        name, theirs = spec.place(split)
        rows = tables.read_tfds_rows(name, theirs, data_dir, most)
        names = None
        if spec.label_names:
            label = spec.columns["label"]
            names = tables.tfds_label_names(name, label, data_dir)
        labelled = self.spec.labelled(split)
        for row in _pick(
            rows, spec.columns, self._place(split), labelled, self.row_report
        ):
            label_id = row[2].get("label", -1)
            if names is not None and 0 <= label_id < len(names):
                row[2]["label"] = names[label_id]
            yield row


def _positions(
    path: str, columns: Mapping[str, int | str], names: list[str], kind: str
) -> dict[str, int]:
    """Turns column names into numbers."""
    positions = {}
    for column, where in columns.items():
        if isinstance(where, str):
            if where not in names:
                raise UserError(
                    f"{path}:1: no column {where!r} for {column}; the"
                    f" header names: {', '.join(names) or 'nothing'}"
                    + (" (is the format right?)" if kind == "tsv" else "")
                )
            where = names.index(where)
        positions[column] = where
    return positions


def _pick(
    rows: Iterator[tables.Row],
    columns: Mapping[str, int | str],
    path: str,
    labelled: bool,
    report: RowReport,
) -> Iterator[_Row]:
    """Picks out texts and labels."""
    wanted = ["text_a", "text_b"] + ["label"] * labelled
    wanted = [column for column in wanted if column in columns]
    if labelled and "label" not in columns:
        raise UserError(
            f"{path}: no column holds the label; name it in columns, or set"
            " labelled to false for this split"
        )
    for number, row in enumerate(rows):
        if row.expected:
            report.add(path, row.line, row.found, row.expected)
            continue
        try:
            cells = {column: row.cells[columns[column]] for column in wanted}
            texts = cells["text_a"], cells.get("text_b", "")
            if not all(isinstance(text, str) for text in texts):
                raise TypeError
        except (IndexError, KeyError, TypeError):
            report.add(path, row.line, _shown(row), _expected(columns, wanted))
            continue
        if not cells["text_a"].strip():
            report.add(path, row.line, _shown(row), "a text", skipped=False)
        yield number, row.line, cells


def _shown(row: tables.Row) -> str:
    if not row.cells:
        return "an empty line"
    if isinstance(row.cells, dict):
        return f"{row.cells}"
    return f"{len(row.cells)} columns: {row.cells}"


def _expected(columns: Mapping[str, int | str], wanted: list[str]) -> str:
    places = [columns[column] for column in wanted]
    if all(isinstance(place, int) for place in places):
        least = max(p + 1 if p >= 0 else -p for p in places)
        return f"at least {least} columns"
    return f"texts under {', '.join(map(str, places))}"


def _cut(
    first: list[int], second: list[int], room: int
) -> tuple[list[int], list[int]]:
    """Drops from the end of the longer text, of the second where equal."""
    a, b = len(first), len(second)
    while a + b > room:
        if a > b:
            a -= 1
        else:
            b -= 1
    return first[:a], second[:b]


class ClassificationTask(TextTask):
    """One class per text or pair."""

    _HEAD = ClassificationHead
    _FEWEST = 2
    _ids: dict[str, int] | None = None

    @property
    def labels(self) -> list[str]:
        """The classes in order; the class of id i is the i-th."""
        return list(self._label_ids())

    def use_labels(self, found: Any) -> None:
        """Takes the classes in order; see `Task.use_labels`."""
        self._ids = {name: i for i, name in enumerate(found)}

    def read_label(self, cell: Any) -> Any:
        """Returns the class named by a cell."""
        label = _label_text(cell)
        if label not in self._label_ids():
            raise BadLabelError(f"one of: {listed(self.labels, _SHOWN_LABELS)}")
        return label

    def label_features(self, label: Any) -> dict[str, Any]:
        """Returns `<task>_label_ids`; the first class where there is none."""
        label_id = 0 if label is None else self._label_ids()[label]
        return {f"{self.name}_label_ids": label_id}

    @property
    def n_outputs(self) -> int:
        """One for each label."""
        return len(self._label_ids())

    def label_spec(self) -> FeatureSpec:
        """Returns scalar `<task>_label_ids`."""
        return FeatureSpec(f"{self.name}_label_ids", [])

    def get_scorer(self, split: str = "dev") -> scorers.Scorer:
        """Returns the scorer of the task's metric (default: accuracy)."""
        by_metric = {
            "accuracy": scorers.AccuracyScorer,
            "f1": scorers.F1Scorer,
            "mcc": scorers.MCCScorer,
        }
        return by_metric[self.spec.metric or "accuracy"]()

    def _label_ids(self) -> dict[str, int]:
        if self._ids is None and self.spec.labels is not None:
            self.use_labels(self.spec.labels)
        elif self._ids is None:
            self.settle_labels(self._find_labels)
        return self._ids

    def _split_cell(self, cell: Any) -> list[str]:
        return [_label_text(cell)]

    def _find_labels(self) -> list[str] | None:
        cells = self.label_cells("train", "dev")
        if cells is None:
            return None
        found = {label for cell in cells for label in self._split_cell(cell)}
        found -= {""}
        if len(found) < self._FEWEST:
            raise UserError(
                f"task {self.name}: its data has {len(found)} different"
                f" labels ({', '.join(sorted(found))}); at least"
                f" {self._FEWEST} are needed"
            )
        return sorted(found)


class MultiLabelTask(ClassificationTask):
    """Any number of labels per text or pair."""

    _HEAD = MultiLabelHead
    _FEWEST = 1

    def read_label(self, cell: Any) -> Any:
        """Returns the labels in a cell, in the order of `labels`."""
        given = self._split_cell(cell)
        if set(given) - set(self.labels):
            raise BadLabelError(
                f"only one of: {listed(self.labels, _SHOWN_LABELS)}"
            )
        return tuple(label for label in self.labels if label in given)

    def label_features(self, label: Any) -> dict[str, Any]:
        """Returns `<task>_label_ids`: int [number of labels], 1 where given."""
        ids = [int(name in (label or ())) for name in self.labels]
        return {f"{self.name}_label_ids": ids}

    def label_spec(self) -> FeatureSpec:
        """Returns `<task>_label_ids` [number of labels]."""
        return FeatureSpec(f"{self.name}_label_ids", [len(self.labels)])

    def get_scorer(self, split: str = "dev") -> scorers.Scorer:
        """Returns micro and macro F1 and exact match."""
        return scorers.MultiLabelScorer(self.labels)

    def _split_cell(self, cell: Any) -> list[str]:
        if isinstance(cell, list):
            return [_label_text(part) for part in cell]
        parts = _label_text(cell).split(self.spec.label_separator)
        return [part.strip() for part in parts if part.strip()]


class RegressionTask(TextTask):
    """One number per text or pair.

    Differs: any range is mapped to 0 ... 1 (the original divides by the
      highest value, which is the same for ranges from 0), and `unscale` maps
      predictions back.
    """

    _HEAD = RegressionHead
    _range: tuple[float, float] | None = None

    @property
    def labels_are_found(self) -> bool:
        """Whether the range comes from the data."""
        return self.spec.range is None

    @property
    def value_range(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        if self._range is None and self.spec.range is not None:
            self.use_labels(self.spec.range)
        elif self._range is None:
            self.settle_labels(self._find_range)
        return self._range

    def use_labels(self, found: Any) -> None:
        """Takes the lowest and the highest value; see `Task.use_labels`."""
        low, high = found
        self._range = (low, high)

    def unscale(self, predictions: Any) -> Any:
        """Maps predictions, array or number, to the task's own range."""
        low, high = self.value_range
        return predictions * (high - low) + low

    def read_label(self, cell: Any) -> float:
        """Returns the number in a cell."""
        # TFDS and JSON have numbers, other files texts; TFDS's are float32.
        low, high = self.value_range
        number = _number(cell)
        if number is None or not low <= number <= high:
            raise BadLabelError(f"a number from {low:g} to {high:g}")
        return number

    def label_features(self, label: float | None) -> dict[str, Any]:
        """Returns `<task>_targets`, the number mapped to 0 ... 1."""
        low, high = self.value_range
        if label is None:
            label = 0.0 if low <= 0.0 <= high else low
        return {f"{self.name}_targets": (label - low) / (high - low)}

    def label_spec(self) -> FeatureSpec:
        """Returns float scalar `<task>_targets`."""
        return FeatureSpec(f"{self.name}_targets", [], is_int_feature=False)

    def get_scorer(self, split: str = "dev") -> scorers.Scorer:
        """Returns Pearson, Spearman and squared error."""
        return scorers.RegressionScorer()

    def _find_range(self) -> list[float] | None:
        cells = self.label_cells("train")
        if cells is None:
            return None
        numbers = [n for n in map(_number, cells) if n is not None]
        if not numbers or min(numbers) == max(numbers):
            raise UserError(
                f"task {self.name}: its training labels hold"
                f" {len(set(numbers))} different numbers; give range, or"
                " check columns"
            )
        return [min(numbers), max(numbers)]


def _label_text(cell: Any) -> str:
    """Returns a label as text: JSON's true is "true", 1 is "1"."""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _number(cell: Any) -> float | None:
    if isinstance(cell, bool):
        return None
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
