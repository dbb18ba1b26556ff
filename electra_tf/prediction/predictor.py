# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The predictor, which loads a fine-tuned model once and answers inputs.

predictor = Predictor.from_pretrained("models/reviews_model_1")
predictor("A fine film.")["label"]
predictor(["A fine film.", "Never again."])
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.formatting import shorten
from electra_tf.data.tfrecords import FEATURE_NAMES
from electra_tf.prediction.answers import BadInputError, make_answerer
from electra_tf.prediction.batch_runner import PackedFunction, run_in_batches
from electra_tf.prediction.loading import FinetunedModel, load_finetuned

# Rows are sorted by length within a pool. The first pool is one batch, so that
# the first answers come soon. Later pools grow up to this number of batches.
_BATCHES_PER_POOL = 32
_GROWTH = 4


class Predictor:
    """A predictor for one task of a fine-tuned model.

    Attributes:
      loaded: the model.
      task: the task; `task.row_report.losses` counts the words and wordpieces
        that were cut off.
      answerer: the converter of inputs and outputs; its class documents both.
      batch_size: the maximum number of rows of a batch.
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
            outputs = model.heads[index].logits(encoded, features)
            return {name: outputs[name] for name in self.answerer.outputs}

        names = (*FEATURE_NAMES, *self.answerer.head_features)
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
        """Load a fine-tuned model.

        Args:
          folder: the folder of the run, or a checkpoint.
          task: the name of the task; None: the only task.
          batch_size: the maximum number of rows of a batch.
          n_best: the number of answers that question answering returns.
          **overrides: hparams.
        """
        loaded = load_finetuned(folder, **overrides)
        return cls(loaded, task, batch_size, n_best)

    def __call__(self, texts: Any) -> dict[str, Any] | list[dict[str, Any]]:
        """Return the answer to one input, or the answers to several inputs.

        Raises:
          BadInputError: the task cannot use the value.
          UserError: the task cannot use an item of the list.
        """
        if self.answerer.is_single(texts):
            example = self.answerer.example(texts, 0)
            return self._predict([example], [texts])[0]
        if not isinstance(texts, Iterable):
            raise BadInputError(texts, "a text or a list of texts")
        return [answer for _, answer in self.stream(texts)]

    def stream(
        self,
        items: Iterable[Any],
        on_error: Callable[[int, BadInputError], None] | None = None,
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number and the answer of each input, in limited memory.

        Args:
          items: the inputs.
          on_error: called with the number of a bad input and its error; None:
            the first bad input raises a UserError.
        """
        numbered = enumerate(items)
        size = self.batch_size
        while pool := list(itertools.islice(numbered, size)):
            numbers, examples, usable_items = [], [], []
            for number, item in pool:
                try:
                    examples.append(self.answerer.example(item, len(examples)))
                    numbers.append(number)
                    usable_items.append(item)
                except BadInputError as error:
                    if on_error is None:
                        text = f"item {number} (from 0): {error}"
                        raise UserError(text) from error
                    on_error(number, error)
            answers = self._predict(examples, usable_items)
            yield from zip(numbers, answers, strict=True)
            size = min(size * _GROWTH, self.batch_size * _BATCHES_PER_POOL)

    def _predict(
        self, examples: list[Any], items: Sequence[Any]
    ) -> list[dict[str, Any]]:
        """Return the answers to examples whose ids are their indices.

        Args:
          examples: the examples.
          items: the inputs of the examples, which error messages name.
        """
        outputs: list[list[dict[str, Any]]] = [[] for _ in examples]
        waiting: list[tuple[int, dict[str, Any]]] = []
        for index, example in enumerate(examples):
            rows = self.task.featurize(example, is_training=False)
            if not isinstance(rows, list):
                rows = [rows]
            waiting += [(index, row) for row in rows]
            # A long document has many rows, so rows are computed as soon as
            # they fill a pool.
            is_full = len(waiting) >= self.batch_size * _BATCHES_PER_POOL
            if is_full or index + 1 == len(examples):
                self._run(waiting, outputs, items)
                waiting = []
        return self.answerer.answers(examples, outputs)

    def _run(
        self,
        waiting: list[tuple[int, dict[str, Any]]],
        outputs: list[list[dict[str, Any]]],
        items: Sequence[Any],
    ) -> None:
        """Append the outputs for rows to the outputs of their examples."""
        all_outputs = run_in_batches(
            self._function,
            [row for _, row in waiting],
            [self._length(row) for _, row in waiting],
            self.batch_size,
            self.loaded.config.max_seq_length,
            lambda row: shorten(repr(items[waiting[row][0]])),
        )
        for (index, row), row_outputs in zip(waiting, all_outputs, strict=True):
            row_outputs["eid"] = row[f"{self.task.name}_eid"]
            num_words = self._count_words(row)
            if num_words is not None:
                row_outputs["n_words"] = num_words
            outputs[index].append(row_outputs)

    def _length(self, row: dict[str, Any]) -> int:
        """Return the number of columns that a row needs.

        A word without a wordpiece still needs a column for its label.
        """
        num_tokens = sum(row["input_mask"])
        num_words = self._count_words(row) or 0
        return max(num_tokens, num_words, self.task.min_length)

    def _count_words(self, row: dict[str, Any]) -> int | None:
        """Return the number of words to tag; None for other kinds of tasks."""
        mask = row.get(f"{self.task.name}_labels_mask")
        return None if mask is None else int(np.sum(mask))
