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

from configure.errors import UserError
from electra_tf.prediction.answers import Asked, BadInputError, make_answerer
from electra_tf.prediction.batch_runner import head_function, run_in_batches
from electra_tf.prediction.loading import FinetunedModel, load_finetuned

# Rows sorted by length among each other; the first pool is one batch.
_BATCHES_PER_POOL = 32
_GROWTH = 4


class Predictor:
    """Answers with one task of a fine-tuned model.

    Attributes:
      loaded: the model.
      task: the task; `task.row_report.losses` says what was cut off so far.
      answerer: what makes examples and answers; its class says what can be
        asked and what an answer holds.
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
        self._function = head_function(
            loaded.model, index, self.answerer.fed, self.answerer.outputs
        )

    @classmethod
    def from_pretrained(
        cls,
        folder: str,
        task: str | None = None,
        batch_size: int = 32,
        n_best: int = 3,
        **overrides: Any,
    ) -> "Predictor":
        """Loads a model and makes a predictor of it."""
        loaded = load_finetuned(folder, **overrides)
        return cls(loaded, task, batch_size, n_best)

    def __call__(self, texts: Any) -> dict[str, Any] | list[dict[str, Any]]:
        """Answers one question, or a list of them."""
        if self.answerer.is_single(texts):
            return self._answer([texts])[0]
        if isinstance(texts, Iterable):
            return self._answer(list(texts))
        raise BadInputError(texts, "a text or a list of them")

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
                except BadInputError as error:
                    if on_error is None:
                        raise _at(number, error) from error
                    on_error(number, error)
                else:
                    numbers.append(number)
            yield from zip(numbers, self._ask(examples), strict=True)
            limit = self.batch_size * _BATCHES_PER_POOL
            size = min(size * _GROWTH, limit)

    def _answer(self, items: list[Any]) -> list[dict[str, Any]]:
        if len(items) == 1:
            return self._ask([self.answerer.example(items[0], 0)])
        return [answer for _, answer in self.stream(items)]

    def _ask(self, examples: list[Any]) -> list[dict[str, Any]]:
        """Answers examples whose numbers are their places."""
        asked = [Asked(example, []) for example in examples]
        waiting: list[tuple[Asked, dict[str, Any]]] = []
        for one in asked:
            made = self.task.featurize(one.example, is_training=False)
            made = made if isinstance(made, list) else [made]
            waiting += [(one, row) for row in made]
            # Long documents make many rows; no more wait than a pool's.
            if len(waiting) >= self.batch_size * _BATCHES_PER_POOL:
                self._run(waiting)
                waiting = []
        self._run(waiting)
        return self.answerer.answers(asked)

    def _run(self, waiting: list[tuple[Asked, dict[str, Any]]]) -> None:
        """Gives the rows' outputs to those who asked."""
        outputs = run_in_batches(
            self._function,
            [row for _, row in waiting],
            [self._length(row) for _, row in waiting],
            self.batch_size,
            self.loaded.config.max_seq_length,
        )
        name = self.task.name
        for (one, row), found in zip(waiting, outputs, strict=True):
            found["eid"] = row[f"{name}_eid"]
            if f"{name}_labels_mask" in row:
                found["n_words"] = int(sum(row[f"{name}_labels_mask"]))
            one.rows.append(found)

    def _length(self, row: dict[str, Any]) -> int:
        """Places that a row needs: tokens, and words without a token."""
        length = sum(row["input_mask"])
        mask = row.get(f"{self.task.name}_labels_mask")
        words = 0 if mask is None else int(np.sum(mask))
        return max(length, words, self.task.min_length)


def _at(number: int, error: BadInputError) -> UserError:
    return UserError(f"item {number} (from 0): {error}")
