# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The base classes of tasks and examples.

A task with data in plain columns needs no Python: see `task_description`. For
any other task, write a subclass of a task's class, such as `TaggingTask`, and
add the subclass to `registry.TASKS`.
"""

from __future__ import annotations

import abc
import dataclasses
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from configure.errors import UserError
from electra_tf.checkpoints.contents import TaskHead
from electra_tf.data import tables, tfds_data
from electra_tf.data.columns import (
    column_indices,
    count_from_start,
    refuse_unnamed,
)
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import add_digest
from electra_tf.files.reading import read_bytes
from electra_tf.finetuning.label_files import read_labels
from electra_tf.finetuning.row_report import RowReport
from electra_tf.text.tokenization import Tokenizer
from electra_tf.text.vocabulary import require_wordpiece

if TYPE_CHECKING:
    from configure.finetuning import FinetuningConfig
    from electra_tf.finetuning.heads import Head
    from electra_tf.finetuning.task_description import TaskSpec
    from electra_tf.metrics.scorers import Scorer
    from electra_tf.modeling.encoder_config import EncoderConfig

# the name of the file that holds your task's description in a model's folder
TASK_FILE = "task.json"
# the number of rows that debug mode reads, including a header, as in the
# original
DEBUG_ROWS = 100
Columns = Mapping[str, int | str]
_SURROGATES = re.compile("[\ud800-\udfff]")


def is_encodable(text: str) -> bool:
    """Return whether UTF-8 can encode a text.

    JSON may contain halves of characters (lone surrogates).
    """
    return not _SURROGATES.search(text)


@dataclasses.dataclass(kw_only=True)
class Example:
    """One example of a task, as read from its data."""

    eid: int  # number in the split; unusable rows leave gaps
    task_name: str
    line: int = 0  # first line in the file of the split; 0: unknown
    # The names of the fields that hold text: a string or a list of strings.
    text_fields: ClassVar[tuple[str, ...]] = ()

    def texts(self) -> Iterator[str]:
        """Yield the texts that become wordpieces."""
        for name in self.text_fields:
            value = getattr(self, name) or ()
            yield from (value,) if isinstance(value, str) else value


class Table(NamedTuple):
    """The rows of a split, before they become examples."""

    rows: Iterator[tables.Row]
    columns: Columns  # purpose -> name or index of the column
    # TFDS stores classes as indices into these names.
    class_names: list[str] | None = None
    header: tables.Row | None = None  # the row with the names of the columns


class Task(abc.ABC):
    """Base class of tasks, which provide data, a head and a scorer.

    Source: google-research/electra, finetune/task.py.
    Differs: `featurize` and `get_scorer` take a split, heads are layers, and
      bad rows are collected.
    """

    # True if wordpieces must map to words, which byte-level BPE does not allow.
    needs_words = False
    finds_files = False  # True if a description without files is complete
    # The labels in the description; None: the labels are read from the data.
    described_labels: Any = None
    # The splits whose labels are collected. The features of every split also
    # depend on the files of these splits.
    label_splits: tuple[str, ...] = ()

    def __init__(
        self,
        config: FinetuningConfig,
        spec: TaskSpec,
        tokenizer: Tokenizer,
        directory: str | None = None,
    ) -> None:
        """Create the task without reading data.

        Args:
          config: the settings.
          spec: the description.
          tokenizer: the tokenizer of the model.
          directory: the folder that the paths of the description are relative
            to; None: the folder of the built-in task.
        """
        if self.needs_words:
            kind = spec.type.replace("_", " ")
            require_wordpiece(config.vocab_file, f"task {spec.name} ({kind})")
        self.config, self.spec, self.name = config, spec, spec.name
        self.tokenizer = tokenizer
        self.row_report = RowReport(config.strict_rows or config.strict)
        self._resolved_labels: Any = None
        self._has_model_labels = False
        self.directory = directory or config.raw_data_dir(spec.name)
        special_ids = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
        self._cls_id, self._sep_id = special_ids
        # the data set of TensorFlow Datasets; None: the data is in files
        self._tfds = spec.tfds if config.data_source == "tfds" else None
        if config.data_source == "tfds" and spec.tfds is None:
            raise UserError(
                f"task {self.name}: data_source is tfds, but the task names no"
                " data set of TensorFlow Datasets. Set data_source to files."
            )

    @property
    def head(self) -> TaskHead:
        """The properties of the head that variables' shapes do not show."""
        return TaskHead(self.spec.type)

    @abc.abstractmethod
    def get_examples(self, split: str) -> list[Example]:
        """Return the examples of a split, in the order of the data.

        Implementations use the decorator `explains_bad_rows`, which adds the
        bad rows to error messages.
        """

    @property
    def main_metric(self) -> str | None:
        """The metric by which runs are compared; None: the first metric."""
        return self.spec.metric

    @property
    def measure(self) -> str | None:
        """The description of how texts are compared; None: no description."""
        return None

    @property
    def min_length(self) -> int:
        """The minimum length of the rows of a batch, in tokens."""
        return 1

    def get_test_splits(self) -> list[str]:
        """Return the names of the splits to predict."""
        return [s for s in self.spec.files or ["test"] if "test" in s]

    def get_dev_splits(self) -> list[str]:
        """Return the labelled splits to evaluate, the main split first."""
        known = ("train", "dev", "dev_matched", *self.get_test_splits())
        others = [s for s in self.spec.files if s not in known]
        return ["dev", *filter(self.spec.has_labels, others)]

    def has_split(self, split: str) -> bool:
        """Return whether the data of a split exists."""
        if self.spec.resolve_split(split) not in self.spec.files:
            return False
        return self._tfds is not None or filesystem.exists(self._path(split))

    def check_split(self, split: str) -> None:
        """Raise a UserError if the data of a split is missing."""
        # A task in Python may read data that the description does not name.
        if (self.spec.files or self.finds_files) and not self.has_split(split):
            self._existing_path(split)

    @abc.abstractmethod
    def get_feature_specs(self) -> list[FeatureSpec]:
        """Return the specifications of the features that only this task has.

        The specification of `<name>_eid` comes first.
        """

    @abc.abstractmethod
    def featurize(
        self, example: Example, is_training: bool
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """Return the features of an example.

        The result contains, by name, the shared features (`input_ids`,
        `input_mask`, `segment_ids`, `task_id`) and the features of this task.
        If an example makes several rows (windows), the result is a list.
        """

    @abc.abstractmethod
    def build_head(self, encoder_config: EncoderConfig, seed: int) -> Head:
        """Return a freshly initialized head."""

    @abc.abstractmethod
    def get_scorer(self, split: str = "dev") -> Scorer:
        """Return a new scorer of predictions on a split."""

    def metric_names(self) -> tuple[str, ...]:
        """Return the names of the metrics of a dev evaluation."""
        self.resolve_labels()
        return self.get_scorer("dev").metric_names

    def data_files(self, split: str) -> list[str] | None:
        """Return the files that the features of a split depend on.

        The first file contains the split. Cached records are reused only while
        these files do not change. If the files are unknown, the result is None,
        and records are never reused.
        """
        if self._tfds is not None:
            return []
        if not self.has_split(split):
            return None
        splits = [split, *filter(self.has_split, self.label_splits)]
        return list(dict.fromkeys(map(self._path, splits)))

    def fingerprint(self) -> dict[str, Any]:
        """Return the facts, apart from hparams, on which features depend."""
        facts = {"class": type(self).__name__, "name": self.name}
        # These fields do not change features.
        irrelevant = {"hparams": {}, "metric": None, "files": {}}
        facts["spec"] = repr(dataclasses.replace(self.spec, **irrelevant))
        # Labels that the data defines are left out, because the digest of the
        # data covers them.
        if self._has_model_labels:
            facts["labels"] = self.resolved_labels
        if self._tfds is not None:
            name, data_dir = self._tfds.name, self.config.tfds_data_dir
            facts["tfds"] = tfds_data.identify(name, data_dir)
        return facts

    def label_names(self, example: Example) -> Iterable[str]:
        """Return the names of an example's labels, which are counted.

        The result is empty for tasks without names of labels.
        """
        del example
        return ()

    def labels_path(self) -> str | None:
        """Return the path of the label cache; None if the task has no cache."""
        return None

    def labels_file_name(self) -> str:
        """Return the name of the label file in a model's folder, or ""."""
        return os.path.basename(self.labels_path() or "")

    def find_labels(self) -> Any | None:
        """Read the labels from the data; return None if no file exists."""
        return None

    def set_labels(self, labels: Any) -> None:
        """Set the labels, instead of reading them from the data."""
        self._resolved_labels = labels

    def resolve_labels(self) -> None:
        """Determine the labels unless they are described or set.

        Labels are read from the data and written to `labels_path`. If there is
        no data, the labels are read from the file that an earlier run wrote.

        Raises:
          UserError: neither the data nor the file of labels exists.
        """
        path = self.labels_path()
        if path is None or self.described_labels is not None:
            return
        if self._resolved_labels is not None:
            return
        labels = self.find_labels()
        if labels is not None:
            self.set_labels(labels)
            self._write_labels(os.path.dirname(path))
            add_digest(path)
        elif filesystem.exists(path):
            self.load_labels(path)
        else:
            splits = [s for s in self.label_splits if s in self.spec.files]
            raise UserError(
                f"task {self.name}: cannot determine the labels: none of the"
                f" data files exist ({', '.join(map(self._path, splits))})."
                f" Add a file, or copy {os.path.basename(path)} of the trained"
                " model next to the checkpoint."
            )

    @property
    def resolved_labels(self) -> Any:
        """The labels of the description, or the labels that were set."""
        if self.described_labels is not None:
            return self.described_labels
        if self._resolved_labels is None:
            raise RuntimeError(
                f"task {self.name}: its labels are used before they are read."
                " Call resolve_labels() first"
            )
        return self._resolved_labels

    def load_labels(self, path: str) -> None:
        """Set the labels to the content of a file.

        Raises:
          UserError: the file is damaged, or it differs from the digests of its
            folder.
        """
        self.set_labels(read_labels(path, self.spec.type))

    def load_model_labels(self, folder: str) -> bool:
        """Load the labels from a model's folder; return whether labels exist.

        Raises:
          UserError: the folder's labels differ from the description's.
        """
        name = self.labels_file_name()
        path = os.path.join(folder, name)
        if not name or not filesystem.exists(path):
            return False
        self.load_labels(path)
        self._has_model_labels = self.described_labels is None
        self._compare(self._resolved_labels, self.described_labels, path)
        return True

    def write_to_model(self, folder: str) -> None:
        """Write labels and description into a model's folder."""
        self._write_labels(folder)
        description = self.config.task_config
        if description is not None and filesystem.exists(description):
            text = read_bytes(description)
            write_atomically(os.path.join(folder, TASK_FILE), text)

    def _write_labels(self, folder: str) -> None:
        if name := self.labels_file_name():
            labels = self.resolved_labels
            text = json.dumps(labels, indent=1, ensure_ascii=False)
            write_atomically(os.path.join(folder, name), f"{text}\n")

    def check_head(self, head: TaskHead | None, path: str) -> None:
        """Raise a UserError unless a model's head fits the task.

        Args:
          head: the properties of the head; None: unknown.
          path: the checkpoint, for messages.
        """
        if head is None:
            return
        if head.pooling != self.head.pooling:
            raise UserError(
                f"{path}: its head was trained with pooling {head.pooling},"
                f" but the task sets {self.head.pooling}. Set pooling to"
                f" {head.pooling}."
            )
        labels = self.head.labels
        # Placeholders such as LABEL_0 are not compared with the task's labels.
        if {*head.labels} & {*labels}:
            self._compare([*head.labels], labels, path)

    def _compare(
        self, model_labels: Any, task_labels: Sequence[Any] | None, path: str
    ) -> None:
        if task_labels is not None and model_labels != [*task_labels]:
            raise UserError(
                f"{path}: the model was trained with {model_labels}, but task"
                f" {self.name} now defines {[*task_labels]}. Restore the labels"
                " (or the range), or retrain."
            )

    def _require_examples(
        self, examples: Sequence[Example], split: str, kind: str
    ) -> None:
        """Raise a UserError if a split has no usable row."""
        if not examples:
            raise UserError(
                f"task {self.name}: no usable {kind} in its {split} split"
                f" ({self._location(split)}; {self._lost_rows()}). Correct the"
                " data, or the columns in the description."
            )

    def _lost_rows(self) -> str:
        """Return the counts of bad rows and of other losses, as text."""
        report = self.row_report
        losses = [f"{kind}: {n}" for kind, n in report.losses.items() if n]
        return ", ".join([f"bad rows: {len(report.rows)}", *losses])

    def _path(self, split: str) -> str:
        return self.spec.find_split(split, self.directory).path

    def _existing_path(self, split: str) -> str:
        path = self._path(split)
        if not filesystem.exists(path):
            remedy = "Add the file."
            if split == "dev":
                remedy = (
                    "Add the file, or turn evaluations off: set do_eval to"
                    " false and eval_every_n_steps to 0."
                )
            raise UserError(
                f"{path}: no such file; it is the {split} split of task"
                f" {self.name}. {remedy}"
            )
        return path

    def _location(self, split: str) -> str:
        """Return the file of a split, or its name in TFDS, for messages."""
        if self._tfds is None:
            return self._path(split)
        name, tfds_split = self._tfds.locate(self.spec.resolve_split(split))
        return f"tfds:{name}/{tfds_split}"

    def _open(self, split: str) -> Table:
        """Open the data of a split."""
        max_rows = DEBUG_ROWS if self.config.debug else None
        if self._tfds is not None:
            return self._open_tfds(split, max_rows)
        return self._open_file(split, max_rows)

    def _open_tfds(self, split: str, max_rows: int | None) -> Table:
        data_dir = self.config.tfds_data_dir
        name, tfds_split = self._tfds.locate(self.spec.resolve_split(split))
        columns = self._tfds.columns
        class_names = None
        if self._tfds.label_names:
            class_names = tfds_data.label_names(
                name, columns["label"], data_dir
            )
        rows = tfds_data.read_rows(name, tfds_split, data_dir, max_rows)
        return Table(rows, columns, class_names)

    def _open_file(self, split: str, max_rows: int | None) -> Table:
        path = self._existing_path(split)
        split_spec = self.spec.find_split(split, self.directory)
        file_format = tables.resolve_format(path, self.spec.format)
        if file_format == "conll":
            raise UserError(
                f"{path}: the format is conll; expected tsv, csv or jsonl for a"
                f" task of type {self.spec.type}. Set format in the"
                " description."
            )
        rows = tables.read_rows(path, file_format, max_rows)
        columns = dict(split_spec.columns)
        if not split_spec.labelled:
            columns.pop("label", None)
        if split_spec.labelled and "label" not in columns:
            raise UserError(
                f"{path}: the description names no column of the labels. Add"
                " label to columns, or set labelled to false for this split."
            )
        if file_format == "jsonl":
            return Table(rows, columns)
        if split_spec.header and not self.spec.original:
            # A blank line before the header is not the header.
            rows = itertools.dropwhile(tables.is_blank, rows)
        header = next(rows, None) if split_spec.header else None
        names = header.cells if header is not None else []
        indices = _find_columns(columns, names, path, file_format)
        # The original ignores surplus cells, which some of its files have.
        if self.spec.original:
            return Table(rows, indices, header=header)
        width, rows = tables.limit_rows(rows, header)
        indices = count_from_start(indices, width)
        return Table(rows, indices, header=header)

    def _shared_features(
        self, input_ids: list[int], segment_ids: list[int], eid: int
    ) -> dict[str, Any]:
        """Return the padded features that all tasks share, and `<name>_eid`."""
        padding = [0] * (self.config.max_seq_length - len(input_ids))
        return {
            "input_ids": input_ids + padding,
            "input_mask": [1] * len(input_ids) + padding,
            "segment_ids": segment_ids + padding,
            "task_id": self.config.task_names.index(self.name),
            f"{self.name}_eid": eid,
        }

    def _token_features(self, **features: list[Any]) -> dict[str, Any]:
        """Return padded features that have one value per token or word."""
        length = self.config.max_seq_length
        return {
            f"{self.name}_{name}": values + [0] * (length - len(values))
            for name, values in features.items()
        }

    def _token_feature_specs(self, *names: str) -> list[FeatureSpec]:
        """Return the specifications of `<name>_eid` and `_token_features`."""
        specs = [FeatureSpec(f"{self.name}_eid", [])]
        for name in names:
            specs.append(
                FeatureSpec(
                    f"{self.name}_{name}",
                    [self.config.max_seq_length],
                    is_int_feature=not name.endswith("_mask"),
                    per_token=True,
                )
            )
        return specs


def _find_columns(
    columns: Columns, header: Sequence[str], path: str, file_format: str
) -> dict[str, int]:
    """Return the index of each column; `header` contains the names."""
    options = {purpose: [column] for purpose, column in columns.items()}
    remedy = "Correct columns in the description of the task"
    if file_format == "tsv":
        remedy = "Correct columns or format in the description of the task"
    indices = column_indices(options, header, path, lambda purpose: remedy)
    refuse_unnamed(indices, header, path)
    return indices
