# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arm of finetuning_step.py: tf-models-official's BertClassifier.

Its task for sentences, with a BERT encoder of ELECTRA's sizes and its AdamW
with clipping. Its input has one length: rows are padded to it.
"""

import itertools

import finetuning_work
import tensorflow_arm
import workers


class Arm(tensorflow_arm.TensorFlowArm):
    """A classifier in training.

    Args:
      spec: `work`, `precision`, `threads`.
    """

    PACKAGES = ("tf-models-official", "tensorflow", "tf_keras")

    def __init__(self, spec):
        import tensorflow as tf
        from official.nlp import optimization
        from official.nlp.data import sentence_prediction_dataloader as loader
        from official.nlp.tasks import sentence_prediction

        super().__init__(spec["threads"])
        tensorflow_arm.use_keras_precision(spec["precision"])
        self._work = spec["work"]
        task = sentence_prediction.SentencePredictionTask(
            sentence_prediction.SentencePredictionConfig(
                model=sentence_prediction.ModelConfig(
                    num_classes=finetuning_work.LABELS,
                    encoder=tensorflow_arm.tfmodels_encoder(
                        self._work["encoder"], self._work["embedding_size"]
                    ),
                ),
                train_data=loader.SentencePredictionDataConfig(),
            )
        )
        self._model = task.build_model()
        optimizer = optimization.create_optimizer(
            finetuning_work.LEARNING_RATE,
            finetuning_work.TRAIN_STEPS,
            finetuning_work.WARMUP_STEPS,
        )
        self._train_step = tf.function(
            lambda batch: task.train_step(batch, self._model, optimizer)[
                task.loss
            ]
        )
        self._eval_step = tf.function(
            lambda batch: self._model(batch, training=False)
        )
        self._train = itertools.cycle(self._batches("train"))
        self._dev = self._batches("dev")

    def train(self, steps):
        """Trains; returns seconds per step."""
        return finetuning_work.timed(lambda: self.losses(steps)) / steps

    def losses(self, steps):
        """Trains; returns the loss of each step."""
        found = [self._train_step(next(self._train)) for _ in range(steps)]
        return [float(loss) for loss in found]

    def evaluate(self):
        """Evaluates; returns seconds per row and rows; reads predictions."""
        read = []

        def run():
            for batch in self._dev:
                read.extend(self._eval_step(batch).numpy())

        seconds = finetuning_work.timed(run)
        return {"seconds": seconds / len(read), "rows": len(read)}

    def _batches(self, split):
        import tensorflow as tf

        names = {
            "input_ids": "input_word_ids",
            "input_mask": "input_mask",
            "segment_ids": "input_type_ids",
            "labels": "label_ids",
        }
        made = finetuning_work.make_batches(self._work, split, fixed=True)
        return [
            {theirs: tf.constant(found[ours]) for ours, theirs in names.items()}
            for found in made
        ]


if __name__ == "__main__":
    workers.serve(Arm)
