# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks with a class, or several labels, per text or pair.

A class of one's own:

    class Reviews(ClassificationTask):
        def __init__(self, config, tokenizer):
            spec = TaskSpec("reviews", labels=("bad", "good"))
            super().__init__(config, spec, tokenizer)

        def get_examples(self, split):
            return [
                TextExample(eid=i, task_name="reviews", text_a=text, label=l)
                for i, (text, l) in enumerate(my_reviews(split))
            ]
"""

import abc
import dataclasses
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf import files
from electra_tf.data import tables, tfds_tables
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.finetuning import heads, task
from electra_tf.finetuning.heads import Head
from electra_tf.finetuning.schema import TaskSpec
from electra_tf.finetuning.task import Example, RowReport, Task
from electra_tf.metrics import scorers
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text.tokenization import FullTokenizer

# Rows of a split with their texts and labels picked out.

# Rows read in debug mode, a header among them, as in the original.
DEBUG_ROWS = 100


class TextRow(NamedTuple):
    """One readable row.

    Attributes:
      path: the file, or the name of a TFDS split.
      line: line number in it, from 1.
      number: number of the row from 0, bad rows counted, header not.
      text_a: the text.
      text_b: the second text, or None for single texts.
      label: the label's cell, or None in a split without labels.
    """

    path: str
    line: int
    number: int
    text_a: str
    text_b: str | None
    label: Any


def read_files(
    spec: TaskSpec,
    split: str,
    directory: str,
    report: RowReport,
    debug: bool = False,
) -> Iterator[TextRow]:
    """Reads a split from a file."""
    place = spec.split(split, directory)
    if not files.exists(place.path):
        raise UserError(
            f"{place.path}: no such file; the {split} split of task"
            f" {spec.name} is read from there"
        )
    kind = tables.file_format(place.path, spec.format)
    if kind == "conll":
        raise UserError(
            f"{place.path}: a task of type {spec.type} is read from tsv, csv or"
            " jsonl; give its format"
        )
    rows = tables.read_rows(place.path, kind, DEBUG_ROWS if debug else None)
    columns = {
        column: where
        for column, where in place.columns.items()
        if column != "label" or place.labelled
    }
    if kind != "jsonl":
        header = next(rows, None) if place.header else None
        names = header.cells if header is not None else []
        columns = _positions(place.path, columns, names, kind)
    yield from _pick(rows, columns, place.path, place.labelled, report)


def read_tfds(
    spec: TaskSpec,
    split: str,
    data_dir: str | None,
    report: RowReport,
    debug: bool = False,
) -> Iterator[TextRow]:
    """Reads a split from TensorFlow Datasets; see `read_files`.

    Args:
      data_dir: where TFDS keeps its data; None for its default.
    """
    if spec.tfds is None:
        raise UserError(
            f"task {spec.name}: not known to TensorFlow Datasets; use"
            " data_source=files"
        )
    name, theirs = spec.tfds.place(split)
    rows = tfds_tables.read_rows(
        name, theirs, data_dir, DEBUG_ROWS if debug else None
    )
    names = None
    if spec.tfds.label_names:
        label = spec.tfds.columns["label"]
        names = tfds_tables.label_names(name, label, data_dir)
    path = f"tfds:{name}/{theirs}"
    labelled = spec.labelled(split)
    for row in _pick(rows, spec.tfds.columns, path, labelled, report):
        if names is not None and row.label is not None:
            known = 0 <= row.label < len(names)
            row = row._replace(label=names[row.label] if known else row.label)
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
) -> Iterator[TextRow]:
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
            cells["text_a"] = _text(cells["text_a"])
            if "text_b" in cells:
                cells["text_b"] = _text(cells["text_b"])
        except (IndexError, KeyError, TypeError):
            report.add(path, row.line, _shown(row), _expected(columns, wanted))
            continue
        if not cells["text_a"].strip():
            report.add(path, row.line, _shown(row), "a text", skipped=False)
        yield TextRow(
            path,
            row.line,
            number,
            cells["text_a"],
            cells.get("text_b"),
            cells.get("label"),
        )


def _text(cell: Any) -> str:
    if not isinstance(cell, str):
        raise TypeError
    return cell


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


# What all tasks with one output per text or pair have in common.

CUT_TEXTS = "examples cut to max_seq_length"


@dataclasses.dataclass(kw_only=True)
class TextExample(Example):
    """A text or a pair of texts.

    Attributes:
      text_a: the text.
      text_b: the second text; None or "" for single texts.
      label: a class, a number, or a tuple of labels, by the task's type.
    """

    text_a: str
    text_b: str | None = None
    label: Any = None


class BadLabelError(ValueError):
    """A label's cell that means none; the text says what was expected."""


class TextTask(Task):
    """Reads texts and labels and makes the inputs of them.

    Source: google-research/electra, finetune/classification/
      classification_tasks.py, SingleOutputTask.
    Differs: labels are checked when they are read, so that a bad one costs a
      row and not the run.
    """

    def __init__(
        self,
        config: FinetuningConfig,
        spec: TaskSpec,
        tokenizer: FullTokenizer,
        directory: str | None = None,
    ) -> None:
        super().__init__(config, spec.name, tokenizer)
        self.spec = spec
        self.directory = directory or config.raw_data_dir(spec.name)
        special = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
        self._cls_id, self._sep_id = special
        # What an example without a label is given.
        self._no_label: Any = None

    @abc.abstractmethod
    def read_label(self, cell: Any) -> Any:
        """Returns a label from its cell.

        Raises:
          BadLabelError: it is none; says what was expected.
        """

    @abc.abstractmethod
    def label_features(self, label: Any) -> dict[str, Any]:
        """Returns a label's features by full name."""

    def get_examples(self, split: str) -> list[TextExample]:
        """Reads a split; see `Task.get_examples`.

        Pairs whose order means nothing are trained on in both orders: all
        once more with the texts exchanged, and ids that go on.
        """
        split = self._file_split(split)
        examples = []
        for row in self._read(split):
            try:
                label = self._label(row, split)
            except BadLabelError as problem:
                found = f"label {row.label!r}"
                self.row_report.add(row.path, row.line, found, f"{problem}")
                continue
            examples.append(
                TextExample(
                    eid=row.number,
                    task_name=self.name,
                    text_a=row.text_a,
                    text_b=row.text_b,
                    label=label,
                )
            )
        if not examples:
            raise UserError(
                f"task {self.name}: no usable example in its {split} split"
                f" ({self._place(split)}; bad rows:"
                f" {len(self.row_report.rows)})"
            )
        doubles = self.spec.both_orders and self.config.double_unordered
        if doubles and split == "train":
            examples += _exchanged(examples)
        return examples

    @property
    def main_metric(self) -> str | None:
        """The metric that the description names; None: the first."""
        return self.spec.metric

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
        """Turns a text or pair into the inputs of the encoder.

        Source: google-research/electra, finetune/classification/
          classification_tasks.py, featurize.
        """
        first = self.tokenizer.encode(example.text_a)
        second = self.tokenizer.encode(example.text_b or "")
        length = self.config.max_seq_length
        room = length - (3 if second else 2)
        if len(first) + len(second) > room:
            self.row_report.count_loss(CUT_TEXTS)
            first, second = _cut(first, second, room)
        input_ids = [self._cls_id, *first, self._sep_id]
        segment_ids = [0] * len(input_ids)
        if second:
            input_ids += [*second, self._sep_id]
            segment_ids += [1] * (len(second) + 1)
        padding = [0] * (length - len(input_ids))
        features = {
            "input_ids": input_ids + padding,
            "input_mask": [1] * len(input_ids) + padding,
            "segment_ids": segment_ids + padding,
            "task_id": self.config.task_names.index(self.name),
            f"{self.name}_eid": example.eid,
            **self.label_features(example.label),
        }
        if log:
            self._print(example, input_ids)
        return features

    def data_files(self, split: str) -> list[str] | None:
        """Returns the files that a split's features depend on."""
        if self.config.data_source == "tfds":
            return []
        splits = [self._file_split(split)]
        if splits[0] not in self.spec.files:
            return None
        if self.labels_are_found():
            splits += [s for s in ("train", "dev") if s in self.spec.files]
        paths = [self._place(s) for s in dict.fromkeys(splits)]
        return [path for path in paths if files.exists(path)]

    def fingerprint(self) -> dict[str, Any]:
        """Returns the description, and which data set TFDS gives."""
        facts = super().fingerprint() | {"spec": repr(self.spec)}
        if self.config.data_source == "tfds" and self.spec.tfds:
            name = self.spec.tfds.name
            data_dir = self.config.tfds_data_dir
            facts["tfds"] = tfds_tables.identity(name, data_dir)
        return facts

    def labels_are_found(self) -> bool:
        """Returns whether the labels come from the data."""
        return self.spec.labels is None

    def _file_split(self, split: str) -> str:
        """Returns the split's name among the files."""
        if split not in self.spec.files and f"{split}_matched" in (
            self.spec.files
        ):
            return f"{split}_matched"
        return split

    def _place(self, split: str) -> str:
        if self.config.data_source == "tfds" and self.spec.tfds:
            return "tfds:" + "/".join(self.spec.tfds.place(split))
        return self.spec.split(split, self.directory).path

    def _read(self, split: str) -> Iterator[TextRow]:
        if self.config.data_source == "tfds":
            return read_tfds(
                self.spec,
                split,
                self.config.tfds_data_dir,
                self.row_report,
                self.config.debug,
            )
        return read_files(
            self.spec,
            split,
            self.directory,
            self.row_report,
            self.config.debug,
        )

    def _label(self, row: TextRow, split: str) -> Any:
        if not self.spec.labelled(split):
            return self._no_label
        return self.read_label(row.label)

    def labels_in(self, splits: tuple[str, ...]) -> list[Any] | None:
        """Returns the label cells of splits; None if no split is there."""
        there = [s for s in splits if self.has_split(s)]
        if not there:
            return None
        cells = []
        for split in there:
            if self.spec.labelled(split):
                cells += [row.label for row in self._read(split)]
        return cells

    def labels_path(self) -> str | None:
        """Returns where labels are kept; None if the description has them."""
        if not self.labels_are_found():
            return None
        return os.path.join(
            self.config.preprocessed_data_dir, f"{self.name}_labels.json"
        )

    def _print(self, example: TextExample, input_ids: list[int]) -> None:
        tokens = self.tokenizer.convert_ids_to_tokens(input_ids)
        print(f"{self.name} example {example.eid}")
        print(f"  tokens: {' '.join(tokens)}")
        print(f"  input_ids: {' '.join(map(str, input_ids))}")
        print(f"  label: {example.label}")


def _exchanged(examples: list[TextExample]) -> list[TextExample]:
    """Returns the examples with their texts exchanged and new ids."""
    return [
        dataclasses.replace(
            example,
            eid=example.eid + len(examples),
            text_a=example.text_b,
            text_b=example.text_a,
        )
        for example in examples
    ]


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
    """One class per text or pair.

    Source: google-research/electra, finetune/classification/
      classification_tasks.py, ClassificationTask.
    """

    def __init__(
        self,
        config: FinetuningConfig,
        spec: TaskSpec,
        tokenizer: FullTokenizer,
        directory: str | None = None,
    ) -> None:
        super().__init__(config, spec, tokenizer, directory)
        self._labels: list[str] | None = None
        if spec.labels is not None:
            self._labels = list(spec.labels)

    @property
    def labels(self) -> list[str]:
        """The classes in order; the class of id i is the i-th."""
        if self._labels is None:
            self._labels = task.find_or_load(
                self.labels_path(), self._find_labels, self.name
            )
        return self._labels

    def use_labels(self, found: Any) -> None:
        """Takes the classes in order; see `Task.use_labels`."""
        self._labels = list(found)

    def read_label(self, cell: Any) -> str:
        """Returns the class named by a cell."""
        label = _label_text(cell)
        if label not in self._ids:
            raise BadLabelError(_one_of(self.labels))
        return label

    def label_features(self, label: str | None) -> dict[str, Any]:
        """Returns `<task>_label_ids`; the first class where there is none."""
        label_id = 0 if label is None else self._ids[label]
        return {f"{self.name}_label_ids": label_id}

    def get_feature_specs(self) -> list[FeatureSpec]:
        """Returns `<task>_eid` and `<task>_label_ids`, both scalar."""
        return [
            FeatureSpec(f"{self.name}_eid", []),
            FeatureSpec(f"{self.name}_label_ids", []),
        ]

    def build_head(self, encoder_config: EncoderConfig, seed: int) -> Head:
        """Returns a dense layer to the classes; see `Task.build_head`."""
        return heads.ClassificationHead(
            self.name,
            encoder_config.hidden_size,
            len(self.labels),
            pooling=self.config.pooling,
            seed=seed,
        )

    def get_scorer(self, split: str = "dev") -> scorers.Scorer:
        """Returns the scorer of the task's metric (default: accuracy)."""
        by_metric = {
            "accuracy": scorers.AccuracyScorer,
            "f1": scorers.F1Scorer,
            "mcc": scorers.MCCScorer,
        }
        return by_metric[self.spec.metric or "accuracy"]()

    @property
    def _ids(self) -> dict[str, int]:
        if not hasattr(self, "_label_ids"):
            self._label_ids = {n: i for i, n in enumerate(self.labels)}
        return self._label_ids

    def _find_labels(self) -> list[str] | None:
        cells = self.labels_in(("train", "dev"))
        if cells is None:
            return None
        found = {_label_text(cell) for cell in cells} - {""}
        if len(found) < 2:
            raise UserError(
                f"task {self.name}: its data has {len(found)} different"
                f" labels ({', '.join(sorted(found))}); at least 2 are needed"
            )
        return sorted(found)


class MultiLabelTask(ClassificationTask):
    """Any number of labels per text or pair."""

    def read_label(self, cell: Any) -> tuple[str, ...]:
        """Returns the labels in a cell, in the order of `labels`."""
        given = self._split_cell(cell)
        unknown = [label for label in given if label not in self._ids]
        if unknown:
            raise BadLabelError(f"only {_one_of(self.labels)}")
        return tuple(label for label in self.labels if label in given)

    def label_features(self, label: tuple[str, ...] | None) -> dict[str, Any]:
        """Returns `<task>_label_ids`: int [number of labels], 1 where given."""
        given = label or ()
        ids = [int(name in given) for name in self.labels]
        return {f"{self.name}_label_ids": ids}

    def get_feature_specs(self) -> list[FeatureSpec]:
        """Returns `<task>_eid` and `<task>_label_ids` [number of labels]."""
        return [
            FeatureSpec(f"{self.name}_eid", []),
            FeatureSpec(f"{self.name}_label_ids", [len(self.labels)]),
        ]

    def build_head(self, encoder_config: EncoderConfig, seed: int) -> Head:
        """Returns one yes or no per label; see `Task.build_head`."""
        return heads.MultiLabelHead(
            self.name,
            encoder_config.hidden_size,
            len(self.labels),
            pooling=self.config.pooling,
            seed=seed,
        )

    def get_scorer(self, split: str = "dev") -> scorers.Scorer:
        """Returns micro and macro F1 and exact match."""
        return scorers.MultiLabelScorer(self.labels)

    def _split_cell(self, cell: Any) -> list[str]:
        if isinstance(cell, list):
            return [_label_text(part) for part in cell]
        parts = _label_text(cell).split(self.spec.label_separator)
        return [part.strip() for part in parts if part.strip()]

    def _find_labels(self) -> list[str] | None:
        cells = self.labels_in(("train", "dev"))
        if cells is None:
            return None
        found = {label for cell in cells for label in self._split_cell(cell)}
        if not found:
            raise UserError(f"task {self.name}: its data has no labels")
        return sorted(found)


def _label_text(cell: Any) -> str:
    """Returns a label as text: JSON's true is "true", 1 is "1"."""
    if isinstance(cell, bool):
        return str(cell).lower()
    return cell if isinstance(cell, str) else str(cell)


def _one_of(labels: list[str], shown: int = 12) -> str:
    more = f" ... ({len(labels)} in all)" if len(labels) > shown else ""
    return f"one of: {', '.join(labels[:shown])}{more}"


# Tasks with one number per text or pair.


class RegressionTask(TextTask):
    """One number per text or pair.

    Source: google-research/electra, finetune/classification/
      classification_tasks.py, RegressionTask.
    Differs: any range is mapped to 0 ... 1 (the original divides by the
      highest value, which is the same for ranges from 0), and `unscale` maps
      predictions back.
    """

    def __init__(
        self,
        config: FinetuningConfig,
        spec: TaskSpec,
        tokenizer: FullTokenizer,
        directory: str | None = None,
    ) -> None:
        super().__init__(config, spec, tokenizer, directory)
        self._range = spec.range

    @property
    def value_range(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        if self._range is None:
            low, high = task.find_or_load(
                self.labels_path(), self._find_range, self.name
            )
            self._range = (low, high)
        return self._range

    def use_labels(self, found: Any) -> None:
        """Takes the lowest and the highest value; see `Task.use_labels`."""
        low, high = found
        self._range = (low, high)

    def unscale(self, predictions: Any) -> Any:
        """Maps what the head predicts to the task's own range.

        Args:
          predictions: float, array or number, on the scale of the targets.
        """
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

    def get_feature_specs(self) -> list[FeatureSpec]:
        """Returns `<task>_eid` and float `<task>_targets`, both scalar."""
        return [
            FeatureSpec(f"{self.name}_eid", []),
            FeatureSpec(f"{self.name}_targets", [], is_int_feature=False),
        ]

    def build_head(self, encoder_config: EncoderConfig, seed: int) -> Head:
        """Returns a dense layer to one number; see `Task.build_head`."""
        return heads.RegressionHead(
            self.name,
            encoder_config.hidden_size,
            pooling=self.config.pooling,
            seed=seed,
        )

    def get_scorer(self, split: str = "dev") -> scorers.Scorer:
        """Returns Pearson, Spearman and squared error."""
        return scorers.RegressionScorer()

    def labels_are_found(self) -> bool:
        """Returns whether the range comes from the data."""
        return self.spec.range is None

    def _find_range(self) -> list[float] | None:
        cells = self.labels_in(("train",))
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


def _number(cell: Any) -> float | None:
    if isinstance(cell, bool):
        return None
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
