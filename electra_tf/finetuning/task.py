# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The contracts of fine-tuning: example and task.

A task of one's own takes ten lines: subclass a base of the rooms below
(`ClassificationTask`, `TaggingTask` ...), say where its examples come from,
and pass it to `Preprocessor` and `FinetuningModel` with its name among the
config's `task_names`. Where the data has plain columns, no Python is needed
at all: see `custom`.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import TYPE_CHECKING, Any

from electra_tf.finetuning.rows import RowReport

if TYPE_CHECKING:
    from configure.finetuning import FinetuningConfig
    from electra_tf.data.feature_spec import FeatureSpec
    from electra_tf.finetuning.heads import Head
    from electra_tf.metrics.scorers import Scorer
    from electra_tf.modeling.encoder_config import EncoderConfig
    from electra_tf.text.tokenization import FullTokenizer


@dataclasses.dataclass(kw_only=True)
class Example:
    """One example of a task, as read.

    Attributes:
      eid: the example's number within its split; bad rows leave gaps.
      task_name: the task it belongs to.
    """

    eid: int
    task_name: str


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
        """Reads a split.

        Returns:
          Its examples, in the order of the data.
        """

    @property
    def main_metric(self) -> str | None:
        """The figure that counts when runs are compared; None: the first."""
        return None

    def get_test_splits(self) -> list[str]:
        """Returns the splits without labels that predictions are made for."""
        return ["test"]

    @property
    def min_length(self) -> int:
        """The fewest places that a row of a batch must have."""
        return 1

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

        Returns:
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

    def __repr__(self) -> str:
        return f"Task({self.name})"
