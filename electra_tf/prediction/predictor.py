# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A fine-tuned model, loaded once, that answers as often as it is asked.

predictor = Predictor.from_pretrained("models/reviews_model_1")
predictor("A fine film.")["label"]
predictor(["A fine film.", "Never again."])
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.data.records import FEATURE_NAMES
from electra_tf.prediction.answers import BadInputError, make_answerer
from electra_tf.prediction.batch_runner import PackedFunction, run_in_batches
from electra_tf.prediction.loading import FinetunedModel, load_finetuned

# Rows sorted by length among each other; the first pool is one batch.
_BATCHES_PER_POOL = 32
_GROWTH = 4


class Predictor:
    """Answers with one task of a fine-tuned model.

    `task.row_report.losses` says what was cut off so far, the class of
    `answerer` what can be asked and what an answer holds.
    """

    def __init__(
        self,
        loaded: FinetunedModel,
        task: str | None = None,
        batch_size: int = 32,
        n_best: int = 3,
    ) -> None:
        index = loaded.task_index(task)
        self.loaded, self.batch_size = loaded, batch_size
        self.task = loaded.tasks[index]
        self.answerer = make_answerer(self.task, n_best)

        def compute(features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            model = loaded.model
            encoded = model.encoder(*(features[n] for n in FEATURE_NAMES))
            found = model.heads[index].logits(encoded, features)
            return {name: found[name] for name in self.answerer.outputs}

        names = (*FEATURE_NAMES, *self.answerer.fed)
        self._function = PackedFunction(names, compute)

    @classmethod
    def from_pretrained(
        cls,
        folder: str,
        task: str | None = None,
        batch_size: int = 32,
        n_best: int = 3,
        **overrides: Any,
    ) -> "Predictor":
        loaded = load_finetuned(folder, **overrides)
        return cls(loaded, task, batch_size, n_best)

    def __call__(self, texts: Any) -> dict[str, Any] | list[dict[str, Any]]:
        if self.answerer.is_single(texts):
            return self._ask([self.answerer.example(texts, 0)])[0]
        if not isinstance(texts, Iterable):
            raise BadInputError(texts, "a text or a list of them")
        return [answer for _, answer in self.stream(texts)]

    def stream(
        self,
        items: Iterable[Any],
        on_error: Callable[[int, BadInputError], None] | None = None,
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Answers one by one; memory does not grow with their number."""
        numbered = enumerate(items)
        size = self.batch_size
        while pool := list(itertools.islice(numbered, size)):
            numbers, examples = [], []
            for number, item in pool:
                try:
                    examples.append(self.answerer.example(item, len(examples)))
                    numbers.append(number)
                except BadInputError as error:
                    if on_error is None:
                        text = f"item {number} (from 0): {error}"
                        raise UserError(text) from error
                    on_error(number, error)
            yield from zip(numbers, self._ask(examples), strict=True)
            size = min(size * _GROWTH, self.batch_size * _BATCHES_PER_POOL)

    def _ask(self, examples: list[Any]) -> list[dict[str, Any]]:
        """Answers examples whose numbers are their places."""
        outputs: list[list[dict[str, Any]]] = [[] for _ in examples]
        waiting: list[tuple[int, dict[str, Any]]] = []
        for place, example in enumerate(examples):
            made = self.task.featurize(example, is_training=False)
            made = made if isinstance(made, list) else [made]
            waiting += [(place, row) for row in made]
            # Long documents make many rows; no more wait than a pool's.
            full = len(waiting) >= self.batch_size * _BATCHES_PER_POOL
            if full or place + 1 == len(examples):
                self._run(waiting, outputs)
                waiting = []
        return self.answerer.answers(examples, outputs)

    def _run(
        self,
        waiting: list[tuple[int, dict[str, Any]]],
        outputs: list[list[dict[str, Any]]],
    ) -> None:
        found = run_in_batches(
            self._function,
            [row for _, row in waiting],
            [self._length(row) for _, row in waiting],
            self.batch_size,
            self.loaded.config.max_seq_length,
        )
        for (place, row), own in zip(waiting, found, strict=True):
            own["eid"] = row[f"{self.task.name}_eid"]
            if (words := self._words(row)) is not None:
                own["n_words"] = words
            outputs[place].append(own)

    def _length(self, row: dict[str, Any]) -> int:
        """Places that a row needs: tokens, and words without a token."""
        tokens = sum(row["input_mask"])
        return max(tokens, self._words(row) or 0, self.task.min_length)

    def _words(self, row: dict[str, Any]) -> int | None:
        """How many words are to be tagged, where words are."""
        mask = row.get(f"{self.task.name}_labels_mask")
        return None if mask is None else int(np.sum(mask))
