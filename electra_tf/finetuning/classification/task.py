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

from typing import Any

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.evaluation.scorer import Scorer
from electra_tf.finetuning import label_store
from electra_tf.finetuning.classification.text_task import (
    BadLabelError,
    TextTask,
)
from electra_tf.finetuning.schema import TaskSpec
from electra_tf.finetuning.task import Head
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.text.tokenization import FullTokenizer


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
            self._labels = label_store.find_or_load(
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
        from electra_tf.finetuning.classification import head

        return head.ClassificationHead(
            self.name,
            encoder_config.hidden_size,
            len(self.labels),
            pooling=self.config.pooling,
            seed=seed,
        )

    def get_scorer(self, split: str = "dev") -> Scorer:
        """Returns the scorer of the task's metric (default: accuracy)."""
        from electra_tf.evaluation import classification

        scorers = {
            "accuracy": classification.AccuracyScorer,
            "f1": classification.F1Scorer,
            "mcc": classification.MCCScorer,
        }
        return scorers[self.spec.metric or "accuracy"]()

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
            FeatureSpec(
                f"{self.name}_label_ids", [len(self.labels)], per_token=False
            ),
        ]

    def build_head(self, encoder_config: EncoderConfig, seed: int) -> Head:
        """Returns one yes or no per label; see `Task.build_head`."""
        from electra_tf.finetuning.classification import head

        return head.MultiLabelHead(
            self.name,
            encoder_config.hidden_size,
            len(self.labels),
            pooling=self.config.pooling,
            seed=seed,
        )

    def get_scorer(self, split: str = "dev") -> Scorer:
        """Returns micro and macro F1 and exact match."""
        from electra_tf.evaluation import classification

        return classification.MultiLabelScorer(self.labels)

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
