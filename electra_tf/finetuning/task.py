# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The contracts of fine-tuning: example, task, and what is wrong with data.

A task of one's own takes ten lines: subclass `ClassificationTask`,
`TaggingTask` ..., say where its examples come from, and pass it to
`Preprocessor` and `FinetuningModel` with its name among the config's
`task_names`. Where the data has plain columns, no Python is needed at all: see
`schema`.
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from configure.errors import UserError, first_lines
from electra_tf import files

if TYPE_CHECKING:
    from configure.finetuning import FinetuningConfig
    from electra_tf.data.feature_spec import FeatureSpec
    from electra_tf.finetuning.model import Head
    from electra_tf.finetuning.schema import TaskSpec
    from electra_tf.metrics.scorers import Scorer
    from electra_tf.modeling.encoder_config import EncoderConfig
    from electra_tf.text.tokenization import FullTokenizer


@dataclasses.dataclass(frozen=True)
class BadRow:
    """One row of a file that is not what it should be."""

    path: str  # the file
    line: int  # its line number, from 1 (0: the file as a whole)
    found: str  # what stands there, shortened
    expected: str  # what should stand there
    # Whether the row makes no example (else it is used as it is).
    skipped: bool = True

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        end = " (skipped)" if self.skipped else " (kept)"
        return f"{place}: found {self.found}; expected {self.expected}{end}"


class RowReport:
    """Collects bad rows, and counts what is lost for other reasons.

    A row is counted once however often its file is read.
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self._rows: dict[BadRow, None] = {}
        self._losses: dict[str, int] = {}

    @property
    def rows(self) -> list[BadRow]:
        """The bad rows, in the order met."""
        return list(self._rows)

    @property
    def losses(self) -> dict[str, int]:
        """What else was lost (words cut off ...), and how often."""
        return dict(self._losses)

    def add(
        self,
        path: str,
        line: int,
        found: object,
        expected: str,
        skipped: bool = True,
    ) -> None:
        """Notes one bad row."""
        row = BadRow(path, line, files.shortened(found), expected, skipped)
        if self.strict:
            place = f"{path}:{line}" if line else path
            raise UserError(
                f"{place}: found {row.found}; expected {expected}. (Stopped"
                " by strict_rows; without it the row is"
                f" {'skipped' if skipped else 'kept'} and counted.)"
            )
        self._rows.setdefault(row)

    def set_loss(self, what: str, count: int) -> None:
        """Sets how often something was lost; nothing is shown for 0."""
        self._losses[what] = count

    def count_loss(self, what: str, count: int = 1) -> None:
        """Adds to how often something was lost."""
        self._losses[what] = self._losses.get(what, 0) + count

    def summary(self, title: str = "") -> list[str]:
        """Returns lines for the console: first rows in full, then counts."""
        lines = []
        by_file = collections.Counter(row.path for row in self._rows)
        for path, count in by_file.items():
            rows = [row for row in self._rows if row.path == path]
            skipped = sum(row.skipped for row in rows)
            lines.append(
                f"{path}: {count} bad row{'s' * (count != 1)},"
                f" {skipped} skipped, {count - skipped} kept"
            )
            lines += first_lines([str(row) for row in rows])
        lines += [f"{what}: {n}" for what, n in self._losses.items() if n]
        return [f"{title}: {line}" if title else line for line in lines]

    def as_dict(self) -> dict[str, Any]:
        """Returns everything as plain values, for a JSON file."""
        return {
            "rows": [dataclasses.asdict(row) for row in self._rows],
            "losses": {k: v for k, v in self._losses.items() if v},
        }

    def absorb(self, rows: Iterable[dict], losses: dict[str, int]) -> None:
        """Takes over what `as_dict` of another report gave."""
        self._rows.update(dict.fromkeys(BadRow(**row) for row in rows))
        for what, count in losses.items():
            self.count_loss(what, count)


@dataclasses.dataclass(kw_only=True)
class Example:
    """One example of a task, as read."""

    eid: int  # the example's number within its split; bad rows leave gaps
    task_name: str  # the task it belongs to


class Task(abc.ABC):
    """One task: data, head and scorer.

    Attributes:
      row_report: what was found wrong with the data so far.

    Source: google-research/electra, finetune/task.py.
    Differs: `featurize` and `get_scorer` are told the split they need, heads
      are layers, and bad rows are collected.
    """

    def __init__(
        self,
        config: FinetuningConfig,
        name: str,
        tokenizer: FullTokenizer | None = None,
    ) -> None:
        self.config = config
        self.name = name
        self.tokenizer = tokenizer
        self.row_report = RowReport(config.strict_rows)

    @abc.abstractmethod
    def get_examples(self, split: str) -> list[Example]:
        """Reads a split; its examples are in the order of the data."""

    @property
    def main_metric(self) -> str | None:
        """The figure that counts when runs are compared; None: the first."""
        return None

    @property
    def min_length(self) -> int:
        """The fewest places that a row of a batch must have."""
        return 1

    def get_test_splits(self) -> list[str]:
        """Returns the splits without labels that predictions are made for."""
        return ["test"]

    def get_dev_splits(self) -> list[str]:
        """Returns the labelled splits to evaluate on, the main one first."""
        return ["dev"]

    def has_split(self, split: str) -> bool:
        """Returns whether the split's data is there."""
        return True

    @abc.abstractmethod
    def get_feature_specs(self) -> list[FeatureSpec]:
        """Returns the features besides the shared ones, `<name>_eid` first."""

    @abc.abstractmethod
    def featurize(
        self, example: Example, is_training: bool, log: bool = False
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

    def data_files(self, split: str) -> list[str] | None:
        """Returns the files that a split's features depend on.

        Cached records are used again only while these files stay the same;
        None (the default) means unknown, and nothing is used again.
        """
        return None

    def fingerprint(self) -> dict[str, Any]:
        """Returns plain values, besides hparams, that decide the features."""
        return {"class": type(self).__name__, "name": self.name}

    def labels_path(self) -> str | None:
        """Returns where labels found in data are kept; None if none are."""
        return None

    def use_labels(self, found: Any) -> None:
        """Takes labels as a run found them, instead of looking for them."""
        del found
        raise TypeError(f"{self} does not find its labels in data")

    def load_labels(self, path: str) -> None:
        """Takes the labels that an earlier run kept in a file."""
        with files.open_file(path, "rb") as file:
            try:
                found = json.loads(file.read())
            except ValueError as error:
                raise UserError(f"{path}: not valid JSON: {error}") from None
        self.use_labels(found)

    def settle_labels(self, find: Callable[[], Any | None]) -> None:
        """Finds labels in the data and keeps them, or loads those kept.

        The data wins, so what is kept cannot be stale while the data is there;
        `find` gives None where there is none.
        """
        path = self.labels_path()
        found = find()
        if found is not None:
            text = json.dumps(found, indent=1, ensure_ascii=False)
            files.write_atomically(path, f"{text}\n")
            self.use_labels(found)
        elif files.exists(path):
            self.load_labels(path)
        else:
            raise UserError(
                f"task {self.name}: its labels are not known: there is no"
                f" labelled data to take them from, and no {path} of an"
                " earlier run"
            )

    def __repr__(self) -> str:
        return f"Task({self.name})"


class DescribedTask(Task):
    """A task made of its description; `directory` is where its paths begin."""

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

    @property
    def main_metric(self) -> str | None:
        """The metric that the description names; None: the first."""
        return self.spec.metric
