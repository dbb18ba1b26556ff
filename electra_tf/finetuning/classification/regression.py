# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks with one number per text or pair."""

import math
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
            low, high = label_store.find_or_load(
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

        Returns:
          The same in units of the labels, not clipped.
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
        from electra_tf.finetuning.classification import head

        return head.RegressionHead(
            self.name,
            encoder_config.hidden_size,
            pooling=self.config.pooling,
            seed=seed,
        )

    def get_scorer(self, split: str = "dev") -> Scorer:
        """Returns Pearson, Spearman and squared error."""
        from electra_tf.evaluation import classification

        return classification.RegressionScorer()

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
