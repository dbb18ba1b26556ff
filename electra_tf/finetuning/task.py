# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The contracts of fine-tuning: example, task, and what is wrong with data.

Data of plain columns needs no Python: see `registry`. Another task is a
subclass of `ClassificationTask`, `TaggingTask` ... among `registry.TASKS`.
"""

from __future__ import annotations

import abc
import dataclasses
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from configure.errors import UserError
from electra_tf.checkpoints.contents import TaskHead
from electra_tf.data import tables, tfds_data
from electra_tf.data.columns import column_indices, refuse_unnamed
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.digests import add_digest, check_digest
from electra_tf.files.reading import read_bytes
from electra_tf.finetuning.row_report import RowReport
from electra_tf.text.tokenization import Tokenizer
from electra_tf.text.vocabulary import require_wordpiece

if TYPE_CHECKING:
    from configure.finetuning import FinetuningConfig
    from electra_tf.finetuning.heads import Head
    from electra_tf.finetuning.task_spec import TaskSpec
    from electra_tf.metrics.scorers import Scorer
    from electra_tf.modeling.encoder_config import EncoderConfig

TASK_FILE = "task.json"  # the description, beside a model of one's own task
# Rows read in debug mode, a header among them, as in the original.
DEBUG_ROWS = 100
Columns = Mapping[str, int | str]


def is_whole(text: str) -> bool:
    """Whether UTF-8 can write it; JSON may hold halves of characters."""
    return not re.search("[\ud800-\udfff]", text)


# A whole number, whatever its notation.
_WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)(?:\.0+)?")


def refuse_equal_labels(task_name: str, labels: Iterable[str]) -> None:
    """Raise a UserError for two labels of one meaning, such as "1", "1.0"."""
    by_meaning: dict[str, str] = {}
    for label in labels:
        meaning = label.strip()
        how = "by spaces alone"
        if number := _WHOLE_NUMBER.fullmatch(meaning):
            meaning, how = number[1], "as numbers in their notation alone"
        elif meaning.lower() in ("true", "false"):
            meaning, how = meaning.lower(), "in upper and lower case alone"
        first = by_meaning.setdefault(meaning, label)
        if first != label:
            raise UserError(
                f"task {task_name}: its labels {first!r} and {label!r} differ"
                f" {how}. Write them alike, or list the labels under labels in"
                " the task's description"
            )


@dataclasses.dataclass(kw_only=True)
class Example:
    """One example of a task, as read."""

    eid: int  # the example's number within its split; bad rows leave gaps
    task_name: str  # the task it belongs to
    line: int = 0  # its (first) line in the split's file; 0 where not known
    # Fields that hold its text: a string, or a list of them.
    text_fields: ClassVar[tuple[str, ...]] = ()

    def texts(self) -> Iterator[str]:
        """Yield the texts that become wordpieces."""
        for name in self.text_fields:
            value = getattr(self, name) or ()
            yield from (value,) if isinstance(value, str) else value


class Task(abc.ABC):
    """One task, made of its description: data, head and scorer.

    Source: google-research/electra, finetune/task.py.
    Differs: `featurize` and `get_scorer` are told the split they need, heads
      are layers, and bad rows are collected.
    """

    # Whether text must be traced to words, which byte-level BPE has not.
    needs_words = False
    finds_files = False  # whether the description need not name any
    given_labels: Any = None  # by the description; None: the data is asked
    # Splits whose labels are collected; their files decide the features, too.
    label_splits: tuple[str, ...] = ()

    def __init__(
        self,
        config: FinetuningConfig,
        spec: TaskSpec,
        tokenizer: Tokenizer,
        directory: str | None = None,
    ) -> None:
        """`directory` is where the description's paths begin."""
        if self.needs_words:
            what = f"task {spec.name} ({spec.type.replace('_', ' ')})"
            require_wordpiece(config.vocab_file, what)
        self.config, self.spec, self.name = config, spec, spec.name
        self.tokenizer = tokenizer
        self.row_report = RowReport(config.strict_rows or config.strict)
        self._known_labels: Any = None
        self._labels_of_model = False
        self.directory = directory or config.raw_data_dir(spec.name)
        special = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
        self._cls_id, self._sep_id = special
        # Where TensorFlow Datasets has the data; None: they are files.
        self._tfds = spec.tfds if config.data_source == "tfds" else None
        if config.data_source == "tfds" and spec.tfds is None:
            raise UserError(
                f"task {self.name}: not known to TensorFlow Datasets; use"
                " data_source=files"
            )

    @property
    def head(self) -> TaskHead:
        """What a checkpoint's shapes do not show of its head."""
        return TaskHead(self.spec.type)

    @abc.abstractmethod
    def get_examples(self, split: str) -> list[Example]:
        """Reads a split; its examples are in the order of the data.

        Decorated with `explains_bad_rows`, it adds the bad rows to errors.
        """

    @property
    def main_metric(self) -> str | None:
        """The figure that counts when runs are compared; None: the first."""
        return self.spec.metric

    @property
    def measure(self) -> str | None:
        """How texts are compared, for the results; None: no texts are."""
        return None

    @property
    def min_length(self) -> int:
        """The fewest places that a row of a batch must have."""
        return 1

    def get_test_splits(self) -> list[str]:
        """The splits that predictions are made for."""
        return [s for s in self.spec.files or ["test"] if "test" in s]

    def get_dev_splits(self) -> list[str]:
        """The labelled splits to evaluate on, the main one first."""
        known = ("train", "dev", "dev_matched", *self.get_test_splits())
        others = [s for s in self.spec.files if s not in known]
        return ["dev", *filter(self.spec.has_labels, others)]

    def has_split(self, split: str) -> bool:
        """Whether the split's data is there."""
        if self.spec.resolve_split(split) not in self.spec.files:
            return False
        return self._tfds is not None or filesystem.exists(self._path(split))

    def check_split(self, split: str) -> None:
        """Raises a UserError where its data is missing."""
        # A class of one's own may read what no description names.
        if (self.spec.files or self.finds_files) and not self.has_split(split):
            self._existing_path(split)

    @abc.abstractmethod
    def get_feature_specs(self) -> list[FeatureSpec]:
        """Returns the features besides the shared ones, `<name>_eid` first."""

    @abc.abstractmethod
    def featurize(
        self, example: Example, is_training: bool
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """Turns an example into numbers.

        The shared features (`input_ids`, `input_mask`, `segment_ids`,
        `task_id`) and the task's own by name; a list of them where one
        example makes several (windows).
        """

    @abc.abstractmethod
    def build_head(self, encoder_config: EncoderConfig, seed: int) -> Head:
        """Returns a freshly initialized head."""

    @abc.abstractmethod
    def get_scorer(self, split: str = "dev") -> Scorer:
        """Returns a fresh scorer for predictions on a split."""

    def metric_names(self) -> tuple[str, ...]:
        """Return the names of the figures that a dev evaluation gives."""
        return self.get_scorer("dev").metric_names

    def data_files(self, split: str) -> list[str] | None:
        """The files that a split's features depend on, its own first.

        Cached records are used again only while these files stay the same;
        None means unknown, and nothing is used again.
        """
        if self._tfds is not None:
            return []
        if not self.has_split(split):
            return None
        splits = [split, *filter(self.has_split, self.label_splits)]
        return list(dict.fromkeys(map(self._path, splits)))

    def fingerprint(self) -> dict[str, Any]:
        """Plain values, besides hparams, that decide the features."""
        facts = {"class": type(self).__name__, "name": self.name}
        same = {"hparams": {}, "metric": None, "files": {}}  # no feature's
        facts["spec"] = repr(dataclasses.replace(self.spec, **same))
        if self._labels_of_model:  # Else the data say what they are.
            facts["labels"] = self.known_labels
        if self._tfds is not None:
            name, data_dir = self._tfds.name, self.config.tfds_data_dir
            facts["tfds"] = tfds_data.identify(name, data_dir)
        return facts

    def labels_of(self, example: Example) -> Iterable[str]:
        """Names of an example's labels, to be counted; none of other kinds."""
        del example
        return ()

    # Labels that are found in the data, as a JSON value.

    def labels_path(self) -> str | None:
        """Where labels found in data are kept; None if none are."""
        return None

    def find_labels(self) -> Any | None:
        """Looks for labels in the data; None if no file of it exists."""
        return None

    def use_labels(self, found: Any) -> None:
        """Takes labels as a run found them, instead of looking for them."""
        self._known_labels = found

    def load_labels(self, path: str) -> None:
        """Take the labels that an earlier run kept in a file.

        Raises a UserError if it differs from its folder's digests, if any.
        """
        check_digest(path)
        with filesystem.open_file(path, "rb") as file:
            try:
                self.use_labels(json.loads(file.read()))
            except (ValueError, RecursionError) as error:
                raise UserError(f"{path}: not valid JSON: {error}") from None

    def labels_name(self) -> str:
        """The name of their file in a model's folder; "" for none."""
        return os.path.basename(self.labels_path() or "")

    def _keep_labels(self, folder: str) -> None:
        if name := self.labels_name():
            text = json.dumps(self.known_labels, indent=1, ensure_ascii=False)
            write_atomically(os.path.join(folder, name), f"{text}\n")

    def keep(self, folder: str) -> None:
        """Writes labels and description into a model's folder."""
        self._keep_labels(folder)
        own = self.config.task_config
        if own is not None and filesystem.exists(own):
            text = read_bytes(own)
            write_atomically(os.path.join(folder, TASK_FILE), text)

    def take_labels_of(self, folder: str) -> bool:
        """Takes those that a model learned; the description's must be them."""
        path = os.path.join(folder, name := self.labels_name())
        if not name or not filesystem.exists(path):
            return False
        self.load_labels(path)
        self._labels_of_model = self.given_labels is None
        self._compare(self._known_labels, self.given_labels, path)
        return True

    def check_head(self, head: TaskHead | None, path: str) -> None:
        """Raises where a model's classes are in another order than here."""
        own, pooling = self.head.labels, self.head.pooling
        if head and head.pooling != pooling:
            raise UserError(
                f"{path}: its head learned pooling {head.pooling}; got"
                f" {pooling}"
            )
        # Names that are all others, such as LABEL_0, say nothing.
        if head and {*head.labels} & {*own}:
            self._compare([*head.labels], own, path)

    def _compare(self, kept: Any, own: Any, path: str) -> None:
        if own is not None and kept != [*own]:
            raise UserError(
                f"{path}: the model learned {kept}; task {self.name} now has"
                f" {[*own]}. Put labels (or range) back, or train anew"
            )

    @property
    def known_labels(self) -> Any:
        """The given labels; without, the data's; without, an earlier run's."""
        if self.given_labels is not None:
            return self.given_labels
        if self._known_labels is None:
            self._determine_labels()
        return self._known_labels

    def _determine_labels(self) -> None:
        path, labels = self.labels_path(), self.find_labels()
        if labels is not None:
            self.use_labels(labels)
            self._keep_labels(os.path.dirname(path))
            if path:
                add_digest(path)
        elif filesystem.exists(path):
            self.load_labels(path)
        else:
            splits = [s for s in self.label_splits if s in self.spec.files]
            raise UserError(
                f"task {self.name}: cannot determine the labels: none of the"
                f" data files exist ({', '.join(map(self._path, splits))})."
                f" Add them, or copy {os.path.basename(path)} of the trained"
                " model next to the checkpoint."
            )

    # Files and rows, and features of them.

    def _require_some(
        self, examples: Sequence[Example], split: str, what: str
    ) -> None:
        """Raises where no row of a split makes an example."""
        if not examples:
            raise UserError(
                f"task {self.name}: no usable {what} in its {split} split"
                f" ({self._place(split)}; {self._lost_rows()})"
            )

    def _lost_rows(self) -> str:
        """Return the counts of bad rows and of other lost parts."""
        report = self.row_report
        losses = [f"{what}: {n}" for what, n in report.losses.items() if n]
        return ", ".join([f"bad rows: {len(report.rows)}", *losses])

    def _path(self, split: str) -> str:
        return self.spec.find_split(split, self.directory).path

    def _existing_path(self, split: str) -> str:
        path = self._path(split)
        if not filesystem.exists(path):
            remedy = ""
            if split == "dev":
                remedy = (
                    ". Put it there, or do without evaluations: do_eval false,"
                    " eval_every_n_steps 0"
                )
            raise UserError(
                f"{path}: no such file; the {split} split of task {self.name}"
                f" is read from there{remedy}"
            )
        return path

    def _place(self, split: str) -> str:
        """The file of a split, or the name that messages have for it."""
        if self._tfds is None:
            return self._path(split)
        name, theirs = self._tfds.locate(self.spec.resolve_split(split))
        return f"tfds:{name}/{theirs}"

    def _open(
        self, split: str
    ) -> tuple[Iterator[tables.Row], Columns, list[str] | None]:
        """A split's rows, their columns, and the names of TFDS's classes."""
        most = DEBUG_ROWS if self.config.debug else None
        if self._tfds is not None:
            data_dir = self.config.tfds_data_dir
            name, theirs = self._tfds.locate(split)
            columns, class_names = self._tfds.columns, None
            if self._tfds.label_names:
                label = columns["label"]
                class_names = tfds_data.label_names(name, label, data_dir)
            rows = tfds_data.read_rows(name, theirs, data_dir, most)
            return rows, columns, class_names
        path = self._existing_path(split)
        place = self.spec.find_split(split, self.directory)
        kind = tables.resolve_format(path, self.spec.format)
        if kind == "conll":
            raise UserError(
                f"{path}: a task of type {self.spec.type} is read from tsv,"
                " csv or jsonl; give its format"
            )
        rows = tables.read_rows(path, kind, most)
        columns = dict(place.columns)
        if not place.labelled:
            columns.pop("label", None)
        if kind != "jsonl":
            header = next(rows, None) if place.header else None
            names = header.cells if header is not None else []
            options = {name: [column] for name, column in columns.items()}
            remedy = "Correct columns in the description of the task"
            if kind == "tsv":
                remedy += ", or its format"
            columns = column_indices(options, names, path, lambda _: remedy)
            refuse_unnamed(columns, names, path)
            if any(isinstance(c, str) for c in place.columns.values()):
                rows = (tables.limit_cells(row, len(names)) for row in rows)
        if place.labelled and "label" not in columns:
            raise UserError(
                f"{path}: no column holds the label; name it in columns, or"
                " set labelled to false for this split"
            )
        return rows, columns, None

    def _inputs(
        self, input_ids: list[int], segment_ids: list[int], eid: int
    ) -> dict[str, Any]:
        """The features that every task has, padded, and `<name>_eid`."""
        padding = [0] * (self.config.max_seq_length - len(input_ids))
        return {
            "input_ids": input_ids + padding,
            "input_mask": [1] * len(input_ids) + padding,
            "segment_ids": segment_ids + padding,
            "task_id": self.config.task_names.index(self.name),
            f"{self.name}_eid": eid,
        }

    def _padded(self, **values: list[Any]) -> dict[str, Any]:
        """Features of this task of a value a token or word, padded."""
        length = self.config.max_seq_length
        return {
            f"{self.name}_{name}": own + [0] * (length - len(own))
            for name, own in values.items()
        }

    def _per_token(self, *names: str) -> list[FeatureSpec]:
        """`<name>_eid`, and the features that `_padded` gives."""
        length = [self.config.max_seq_length]
        lists = (
            (f"{self.name}_{name}", length, not name.endswith("_mask"))
            for name in names
        )
        return [
            FeatureSpec(f"{self.name}_eid", []),
            *(FeatureSpec(*each, per_token=True) for each in lists),
        ]
