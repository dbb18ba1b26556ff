# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Modules of tasks with one answer per text or pair of texts.

`serve_text` takes `text` [B] and, where the task has pairs, `text_pair` [B]
(an empty one is none). Every signature gives, with C labels:

  classification  `label` [B], `label_id` [B], `probabilities` and `logits`
                  [B, C]
  multilabel      `label` [B], the chosen ones joined with the task's
                  separator; `chosen` int32, `probabilities` and `logits`
                  [B, C]
  regression      `value` [B], in the task's own range and not clipped;
                  `scaled` [B], what the head gives, 0 ... 1 being the range

`serve_text` also gives `truncated` bool [B]: whether the text was cut to
max_seq_length.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from electra_tf.export.signatures import (
    Inputs,
    Outputs,
    Signatures,
    TaskModule,
    pack,
)
from electra_tf.finetuning.task import Task
from electra_tf.prediction.loading import FinetunedModel

# A batch of texts through a model, those of similar length together.


def compute_by_length(
    compute: Callable[[Inputs], tf.Tensor],
    inputs: Inputs,
    units: int,
    rows_at_once: int,
) -> tf.Tensor:
    """Computes rows in groups, the longest rows first.

    Args:
      compute: from inputs int32 [b, l] to float32 [b, units]; what it gives
        for a row does not depend on padding or on the other rows.
      inputs: int32 [B, L] each, padding at the end; B may be 0.

    Returns:
      float32 [B, units], in the order of the inputs.
    """
    lengths = tf.reduce_sum(inputs.input_mask, 1)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    count = tf.shape(order)[0]
    # An empty batch is one group of nothing.
    groups = tf.maximum((count + rows_at_once - 1) // rows_at_once, 1)
    found = tf.TensorArray(
        tf.float32, groups, element_shape=[None, units], infer_shape=False
    )

    def one(group: tf.Tensor, found: tf.TensorArray):
        start = group * rows_at_once
        rows = order[start : start + rows_at_once]
        longest = tf.reduce_max(tf.gather(lengths, rows))
        longest = tf.maximum(longest, 1)  # Of nothing it is the least int32.
        part = Inputs(*(tf.gather(x, rows)[:, :longest] for x in inputs))
        return group + 1, found.write(group, compute(part))

    _, found = tf.while_loop(
        lambda group, _: group < groups,
        one,
        (tf.constant(0), found),
        parallel_iterations=1,
    )
    return tf.gather(found.concat(), tf.argsort(order))


class TextModule(TaskModule):
    """One answer per text or pair; a subclass gives `answer`."""

    def __init__(
        self, loaded: FinetunedModel, task: Task, rows_at_once: int = 0
    ) -> None:
        self.rows_at_once = rows_at_once
        super().__init__(loaded, task)

    @property
    def has_pairs(self) -> bool:
        """Whether `serve_text` takes a second text."""
        return "text_b" in self.task.spec.columns

    def extra_config(self) -> dict[str, Any]:
        """Says whether there are pairs, and how batches are computed."""
        return {
            "pairs": self.has_pairs,
            "pooling": self.loaded.config.pooling,
            "rows_at_once": self.rows_at_once,
        }

    @abc.abstractmethod
    def answer(self, outputs: tf.Tensor) -> Outputs:
        """Returns the named answers of what the head's dense layer gives.

        Args:
          outputs: float32 [B, units].
        """

    def compute(self, inputs: Inputs) -> Outputs:
        """From inputs [B, L] to the named answers."""
        return self.answer(self._head_output(inputs))

    def _head_output(self, inputs: Inputs) -> tf.Tensor:
        """From inputs [B, L] to float32 [B, units]."""
        encoded = self.encode(inputs)
        return self.head.sentence_output(encoded, inputs._asdict())

    def compute_text(
        self, text: tf.Tensor, text_pair: tf.Tensor | None = None
    ) -> Outputs:
        """From strings [B] to the named answers and `truncated`."""
        tokenizer = self.tokenizer
        second = None if text_pair is None else tokenizer.encode(text_pair)
        inputs, truncated = pack(
            tokenizer.encode(text),
            second,
            self.settings.max_seq_length,
            tokenizer.cls_id,
            tokenizer.sep_id,
        )
        if self.rows_at_once:
            outputs = compute_by_length(
                self._head_output, inputs, self.head.units, self.rows_at_once
            )
        else:
            outputs = self._head_output(inputs)
        return {**self.answer(outputs), "truncated": truncated}

    def signatures(self) -> Signatures:
        """See the base class."""
        strings = tf.TensorSpec([None], tf.string)
        if self.has_pairs:

            @tf.function(input_signature=[strings] * 2, autograph=False)
            def serve_text(text: tf.Tensor, text_pair: tf.Tensor) -> Outputs:
                return self.compute_text(text, text_pair)
        else:

            @tf.function(input_signature=[strings], autograph=False)
            def serve_text(text: tf.Tensor) -> Outputs:
                return self.compute_text(text)

        return {
            **self.ids_signatures(self.compute),
            "serve_text": serve_text,
            **self.describe_signature(),
        }


class ClassificationModule(TextModule):
    """One class per text or pair."""

    KIND = "classification"

    def answer(self, outputs: tf.Tensor) -> Outputs:
        """See the base class."""
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
        """See the base class."""
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
        """See the base class."""
        scaled = tf.squeeze(outputs, -1)
        return {"value": self.task.unscale(scaled), "scaled": scaled}
