# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What all tasks with one output per text or pair have in common."""

import abc
import dataclasses
import os
from collections.abc import Iterator
from typing import Any

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.data import storage, tfds_tables
from electra_tf.finetuning.classification import rows as row_reading
from electra_tf.finetuning.classification.rows import TextRow
from electra_tf.finetuning.schema import TaskSpec
from electra_tf.finetuning.task import Example, Task
from electra_tf.text.tokenization import FullTokenizer

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

    Args:
      config: the resolved hparams.
      spec: the task as data.
      tokenizer: splits the texts.
      directory: what the paths in `spec` start from; the task's own in the
        data directory by default.

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

        Args:
          cell: text, or any JSON value.

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
        return storage.exists(self._place(split))

    def featurize(
        self, example: TextExample, is_training: bool, log: bool = False
    ) -> dict[str, Any]:
        """Turns a text or pair into the inputs of the encoder.

        Args:
          example: one of `get_examples`.
          is_training: makes no difference here.
          log: whether to print it.

        Returns:
          The shared features, `<task>_eid`, and the label's features.

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
        return [path for path in paths if storage.exists(path)]

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
            return row_reading.read_tfds(
                self.spec,
                split,
                self.config.tfds_data_dir,
                self.row_report,
                self.config.debug,
            )
        return row_reading.read_files(
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
        """Returns the label cells of splits; None if no split is there.

        Args:
          splits: names of splits.
        """
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
