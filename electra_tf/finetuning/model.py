# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The fine-tuned model: encoder and heads, with the loss of all tasks.

Source: google-research/electra, run_finetuning.py, FinetuningModel.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.data.tfrecords import FEATURE_NAMES
from electra_tf.finetuning.heads import Tensors
from electra_tf.finetuning.task import Task
from electra_tf.modeling.embeddings import Embeddings
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.seeds import SeedStream

ENCODER_SCOPE = "electra"


class FinetuningModel(tf_keras.Model):
    """The discriminator's encoder with a head for each task.

    The constructor creates all variables, with the original's names: first the
    variables of the encoder, then those of each task.
    """

    def __init__(self, config: FinetuningConfig, tasks: Sequence[Task]) -> None:
        super().__init__(name="finetuning")
        self.config = config
        self.task_names = tuple(task.name for task in tasks)
        self.encoder_config = EncoderConfig.of(config)
        n_positions = self.encoder_config.max_position_embeddings
        if config.max_seq_length > n_positions:
            raise UserError(
                f"max_seq_length is {config.max_seq_length}, but the model has"
                f" {n_positions} positions. Lower max_seq_length."
            )
        embeddings = Embeddings(
            f"{ENCODER_SCOPE}/embeddings",
            self.encoder_config,
            config.embedding_size or self.encoder_config.hidden_size,
            config.seed,
        )
        self.encoder = Encoder(
            ENCODER_SCOPE, self.encoder_config, embeddings, seed=config.seed
        )
        for task in tasks:
            # The labels must be known here, because a head has an output for
            # each label.
            task.resolve_labels()
        self.heads = [
            task.build_head(self.encoder_config, config.seed) for task in tasks
        ]

    def compute(
        self, features: Tensors, training: bool, seed: tf.Tensor | None = None
    ) -> dict[str, Any]:
        """Run encoder and heads on a batch.

        Every head computes outputs for every row. Each row contributes the loss
        of its own task; a padding row, whose `task_id` belongs to no task,
        contributes 0.

        Args:
          features: int32 [B, L] `input_ids`, `input_mask`, `segment_ids`, int32
            [B] `task_id`, and the features of each task.
          training: whether to apply dropout.
          seed: int32 [2], such as the run's seed and the step, which determines
            all random draws of the call; None: (config.seed, 0).

        Returns:
          `loss`, the sum over examples of their task's loss (a scalar);
          `task_id` [B]; and the outputs of each head by name of task.
        """
        if seed is None:
            seed = tf.constant([self.config.seed, 0], tf.int32)
        dropout = SeedStream(seed).child("dropout") if training else None
        encoded = self.encoder(*(features[n] for n in FEATURE_NAMES), dropout)
        outputs: dict[str, Any] = {"task_id": features["task_id"]}
        losses = []
        for name, head in zip(self.task_names, self.heads, strict=True):
            outputs[name] = head.compute(encoded, features, dropout)
            losses.append(outputs[name]["loss"])
        is_task = tf.one_hot(features["task_id"], len(self.heads))
        outputs["loss"] = tf.reduce_sum(tf.stack(losses, -1) * is_task)
        return outputs

    def call(self, features: Tensors, training: bool = False) -> dict[str, Any]:
        """Return the outputs of `compute`, as Keras requires."""
        return self.compute(features, training=training)
