# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Classes, numbers and label sets of texts and pairs."""

import abc
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from electra_tf.finetuning.classification.task import (
    ClassificationTask,
    MultiLabelTask,
    RegressionTask,
    TextExample,
    TextTask,
)
from electra_tf.prediction.request import Asked, BadInputError, texts_of

_FIRST = ("text", "text_a", "sentence", "sentence1")
_SECOND = ("text_pair", "text_b", "sentence2")


class TextAnswerer(abc.ABC):
    """Asks about texts or pairs of texts.

    An item is a text, a pair `("one", "two")`, or a mapping with `text` (or
    `text_a`) and, for pairs, `text_pair` (or `text_b`).
    """

    fed: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("logits",)

    def __init__(self, task: TextTask) -> None:
        self._task = task
        self.takes_pairs = "text_b" in task.spec.columns
        self._names = [_FIRST, _SECOND if self.takes_pairs else ("text_pair?",)]
        self._expected = "a pair of texts" if self.takes_pairs else "a text"

    def column_names(self) -> dict[str, tuple[str, ...]]:
        """See `Answerer.column_names`."""
        names = {"text_a": _FIRST}
        return names | ({"text_b": _SECOND} if self.takes_pairs else {})

    def example(self, item: Any, number: int) -> TextExample:
        """See `Answerer.example`."""
        first, second = texts_of(item, self._names, self._expected)
        if second is not None and not self.takes_pairs:
            raise BadInputError(item, self._expected)
        return TextExample(
            eid=number,
            task_name=self._task.name,
            text_a=first,
            text_b=second,
            label=None,
        )

    def is_single(self, item: Any) -> bool:
        """Whether it is a text, a mapping, or the tuple of a pair."""
        if isinstance(item, tuple) and self.takes_pairs:
            return len(item) == 2 and all(isinstance(t, str) for t in item)
        return isinstance(item, str | bytes | Mapping)

    def answers(self, asked: Sequence[Asked]) -> list[dict[str, Any]]:
        """See `Answerer.answers`."""
        return [self.answer(one.rows[0]) for one in asked]

    @abc.abstractmethod
    def answer(self, outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Returns the answer to one question."""


class ClassAnswerer(TextAnswerer):
    """`label`, its `probability`, and the `probabilities` of all labels."""

    def __init__(self, task: ClassificationTask) -> None:
        super().__init__(task)
        self._labels = list(task.labels)

    def answer(self, outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Returns the likeliest class."""
        logits = outputs["logits"].astype(np.float64)
        odds = np.exp(logits - logits.max())
        shares = (odds / odds.sum()).tolist()
        best = int(logits.argmax())
        return {
            "label": self._labels[best],
            "probability": shares[best],
            "probabilities": dict(zip(self._labels, shares, strict=True)),
        }


class LabelSetAnswerer(TextAnswerer):
    """`labels` that are likelier than not, and all `probabilities`."""

    def __init__(self, task: MultiLabelTask) -> None:
        super().__init__(task)
        self._labels = list(task.labels)

    def answer(self, outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Returns the labels whose logit is above 0."""
        logits = outputs["logits"].astype(np.float64)
        shares = (0.5 * (1.0 + np.tanh(0.5 * logits))).tolist()
        chosen = logits > 0.0
        return {
            "labels": [
                label
                for label, yes in zip(self._labels, chosen, strict=True)
                if yes
            ],
            "probabilities": dict(zip(self._labels, shares, strict=True)),
        }


class NumberAnswerer(TextAnswerer):
    """`value`, in the units of the labels; not clipped to their range."""

    outputs = ("predictions",)

    def __init__(self, task: RegressionTask) -> None:
        super().__init__(task)
        self._unscale = task.unscale

    def answer(self, outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Returns the number."""
        return {"value": float(self._unscale(float(outputs["predictions"])))}
