# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Heads on a sentence's vector: classes, a number, several labels.

Source: google-research/electra, finetune/classification/
classification_tasks.py, get_prediction_module.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from electra_tf.modeling.encoder import EncoderOutput
from electra_tf.modeling.layers import Dense, ScopedLayer
from electra_tf.modeling.seeds import SeedStream, dropout

# On the sentence's vector in training; fixed in the original, too.
DROPOUT_RATE = 0.1


class SentenceHead(ScopedLayer):
    """Dropout and one dense layer on the sentence's vector."""

    def __init__(
        self,
        task_name: str,
        hidden_size: int,
        units: int,
        pooling: str = "first",
        seed: int = 0,
    ) -> None:
        super().__init__(f"task_specific/{task_name}", seed)
        self.task_name = task_name
        self.hidden_size, self.units = hidden_size, units
        self.pooling = pooling
        self.dense = Dense(f"{self.scope}/dense", hidden_size, units, seed=seed)

    def sentence_output(
        self,
        encoded: EncoderOutput,
        features: Mapping[str, tf.Tensor],
        training: bool,
        randomness: SeedStream | None,
    ) -> tf.Tensor:
        """Runs the dense layer.

        Args:
          features: the batch; `input_mask` [B, L] says what is real.
          randomness: its source; None for none.

        Returns:
          float32 [B, units].
        """
        vectors = encoded.pooled_output  # [B, H]
        if self.pooling == "mean":
            vectors = mean_over_tokens(
                encoded.sequence_output, features["input_mask"]
            )
        if training and randomness is not None:
            site = randomness.child(self.scope).seed("sentence")
            vectors = dropout(vectors, DROPOUT_RATE, site)
        return self.dense(vectors)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            "task_name": self.task_name,
            "hidden_size": self.hidden_size,
            "units": self.units,
            "pooling": self.pooling,
            "seed": self.seed,
        }


class ClassificationHead(SentenceHead):
    """One of several classes; `units` is their number."""

    def compute(
        self,
        encoded: EncoderOutput,
        features: Mapping[str, tf.Tensor],
        training: bool,
        dropout: SeedStream | None,
        percent_done: tf.Tensor | None,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Cross-entropy, logits, predictions; see `task.Head`."""
        del percent_done
        logits = self.sentence_output(encoded, features, training, dropout)
        label_ids = features[f"{self.task_name}_label_ids"]
        labels = tf.one_hot(label_ids, self.units)
        losses = -tf.reduce_sum(labels * tf.nn.log_softmax(logits), -1)
        return losses, {
            "loss": losses,
            "logits": logits,
            "predictions": tf.argmax(logits, -1),
            "label_ids": label_ids,
            "eid": features[f"{self.task_name}_eid"],
        }


class RegressionHead(SentenceHead):
    """One number, learned by squared error."""

    def __init__(
        self,
        task_name: str,
        hidden_size: int,
        pooling: str = "first",
        seed: int = 0,
    ) -> None:
        super().__init__(task_name, hidden_size, 1, pooling, seed)

    def compute(
        self,
        encoded: EncoderOutput,
        features: Mapping[str, tf.Tensor],
        training: bool,
        dropout: SeedStream | None,
        percent_done: tf.Tensor | None,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Squared error and predictions; see `task.Head`."""
        del percent_done
        output = self.sentence_output(encoded, features, training, dropout)
        predictions = tf.squeeze(output, -1)  # [B]
        targets = features[f"{self.task_name}_targets"]
        losses = tf.square(predictions - targets)
        return losses, {
            "loss": losses,
            "predictions": predictions,
            "targets": targets,
            "eid": features[f"{self.task_name}_eid"],
        }

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        del config["units"]
        return config


class MultiLabelHead(SentenceHead):
    """A yes or no for each of several labels; `units` is their number.

    The loss of an example is the sum of its labels' cross-entropies.
    """

    def compute(
        self,
        encoded: EncoderOutput,
        features: Mapping[str, tf.Tensor],
        training: bool,
        dropout: SeedStream | None,
        percent_done: tf.Tensor | None,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Cross-entropies, logits, predictions; see `task.Head`."""
        del percent_done
        logits = self.sentence_output(encoded, features, training, dropout)
        label_ids = features[f"{self.task_name}_label_ids"]  # [B, units]
        losses = tf.nn.sigmoid_cross_entropy_with_logits(
            labels=tf.cast(label_ids, tf.float32), logits=logits
        )
        losses = tf.reduce_sum(losses, -1)
        return losses, {
            "loss": losses,
            "logits": logits,
            "predictions": tf.cast(logits > 0.0, tf.int64),
            "label_ids": label_ids,
            "eid": features[f"{self.task_name}_eid"],
        }


def mean_over_tokens(sequence: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Averages the vectors of real tokens.

    Args:
      sequence: float32 [B, L, H].
      mask: int32 [B, L], 1 for real tokens.

    Returns:
      float32 [B, H]; zeros where a row has no token.
    """
    weights = tf.cast(mask, sequence.dtype)[..., None]  # [B, L, 1]
    total = tf.reduce_sum(sequence * weights, 1)
    return total / tf.maximum(tf.reduce_sum(weights, 1), 1.0)
