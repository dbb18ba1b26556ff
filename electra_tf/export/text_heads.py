# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Modules of tasks with one answer per text or pair of texts."""

from __future__ import annotations

import abc
from typing import Any

import tensorflow as tf

from electra_tf.export.signatures import (
    Inputs,
    Outputs,
    Signatures,
    TaskModule,
    compute_in_groups,
    text_function,
)
from electra_tf.finetuning.task import Task
from electra_tf.prediction.loading import FinetunedModel


class TextModule(TaskModule):
    """One answer per text or pair; a subclass gives `answer`.

    Args:
      rows_at_once: texts of similar length computed together; 0: all.
    """

    def __init__(
        self, loaded: FinetunedModel, task: Task, rows_at_once: int = 0
    ) -> None:
        self.rows_at_once = rows_at_once
        self.has_pairs = "text_b" in task.spec.columns
        super().__init__(loaded, task)

    def extra_config(self) -> dict[str, Any]:
        """Says whether there are pairs, and how batches are computed."""
        return {
            "pairs": self.has_pairs,
            "pooling": self.loaded.config.pooling,
            "rows_at_once": self.rows_at_once,
        }

    @abc.abstractmethod
    def answer(self, outputs: tf.Tensor) -> Outputs:
        """From the head's dense layer, float32 [B, units], to the answers."""

    def compute(self, inputs: Inputs) -> Outputs:
        """From inputs [B, L] to the named answers."""
        return self.answer(self._head_output(inputs))

    def compute_text(
        self, text: tf.Tensor, text_pair: tf.Tensor | None = None
    ) -> Outputs:
        """From strings [B] to the named answers and `truncated`."""
        second = None if text_pair is None else self.encode_text(text_pair)
        inputs, truncated = self.pack(self.encode_text(text), second)
        if self.rows_at_once:
            outputs = compute_in_groups(
                lambda part, _: {"": self._head_output(part)},
                inputs,
                inputs.input_ids,
                {"": tf.TensorSpec([None, self.head.units], tf.float32)},
                self.rows_at_once,
                by_length=True,
            )[""]
        else:
            outputs = self._head_output(inputs)
        return {**self.answer(outputs), "truncated": truncated}

    def text_signatures(self) -> Signatures:
        """With a second text where the task has pairs."""
        if self.has_pairs:
            return {"serve_text": text_function(self.compute_text, 2)}
        single = text_function(lambda text: self.compute_text(text), 1)
        return {"serve_text": single}

    def _head_output(self, inputs: Inputs) -> tf.Tensor:
        """From inputs [B, L] to float32 [B, units]."""
        encoded = self.loaded.model.encoder(*inputs, None)
        return self.head.sentence_output(encoded, inputs._asdict())


class ClassificationModule(TextModule):
    """One class per text or pair."""

    KIND = "classification"

    def answer(self, outputs: tf.Tensor) -> Outputs:
        """The likeliest class."""
        label_id = tf.argmax(outputs, -1, output_type=tf.int32)
        return {
            "label": tf.gather(self.labels, label_id),
            "label_id": label_id,
            "probabilities": tf.nn.softmax(outputs),
            "logits": outputs,
        }


class MultiLabelModule(TextModule):
    """Any number of labels per text or pair."""

    KIND = "multilabel"

    def extra_config(self) -> dict[str, Any]:
        """Adds what stands between joined labels."""
        separator = self.task.spec.label_separator
        return {**super().extra_config(), "label_separator": separator}

    def answer(self, outputs: tf.Tensor) -> Outputs:
        """The labels that are likelier than not."""
        chosen = outputs > 0.0
        rows = tf.shape(outputs)[0]
        names = tf.repeat(self.labels.read_value()[None], rows, 0)
        names = tf.ragged.boolean_mask(names, chosen)
        separator = self.task.spec.label_separator
        return {
            "label": tf.strings.reduce_join(names, -1, separator=separator),
            "chosen": tf.cast(chosen, tf.int32),
            "probabilities": tf.sigmoid(outputs),
            "logits": outputs,
        }


class RegressionModule(TextModule):
    """One number per text or pair."""

    KIND = "regression"

    def extra_config(self) -> dict[str, Any]:
        """Adds the lowest and the highest value of the training data."""
        return {**super().extra_config(), "range": [*self.task.value_range]}

    def answer(self, outputs: tf.Tensor) -> Outputs:
        """The number in the task's own range, and as the head gives it."""
        scaled = tf.squeeze(outputs, -1)
        return {"value": self.task.unscale(scaled), "scaled": scaled}
