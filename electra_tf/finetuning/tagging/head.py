# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Head on each word's first wordpiece."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from electra_tf.modeling.encoder import EncoderOutput
from electra_tf.modeling.layers import Dense, ScopedLayer
from electra_tf.modeling.seeds import SeedStream
from electra_tf.modeling.sequence_ops import gather_positions


class TaggingHead(ScopedLayer):
    """One dense layer from a word's first wordpiece to its label.

    The loss of an example is the sum over its words.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
    get_prediction_module.
    """

    def __init__(
        self, task_name: str, hidden_size: int, num_labels: int, seed: int = 0
    ) -> None:
        super().__init__(f"task_specific/{task_name}", seed)
        self.task_name = task_name
        self.hidden_size, self.num_labels = hidden_size, num_labels
        self.dense = Dense(
            f"{self.scope}/dense", hidden_size, num_labels, seed=seed
        )

    def compute(
        self,
        encoded: EncoderOutput,
        features: Mapping[str, tf.Tensor],
        training: bool,
        dropout: SeedStream | None,
        percent_done: tf.Tensor | None,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Cross-entropies, logits, predictions; see `task.Head`.

        Outputs of words are [B, L], dense from index 0 in the words' order.
        """
        del training, dropout, percent_done  # There is no dropout here.
        name = self.task_name
        vectors = gather_positions(
            encoded.sequence_output, features[f"{name}_labeled_positions"]
        )
        logits = self.dense(vectors)  # [B, L, num_labels]
        labels = features[f"{name}_labels"]
        losses = tf.nn.softmax_cross_entropy_with_logits(
            labels=tf.one_hot(labels, self.num_labels), logits=logits
        )
        losses = tf.reduce_sum(losses * features[f"{name}_labels_mask"], -1)
        return losses, {
            "loss": losses,
            "logits": logits,
            "predictions": tf.argmax(logits, -1),
            "labels": labels,
            "labels_mask": features[f"{name}_labels_mask"],
            "eid": features[f"{name}_eid"],
        }

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            "task_name": self.task_name,
            "hidden_size": self.hidden_size,
            "num_labels": self.num_labels,
            "seed": self.seed,
        }
