# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arm of finetuning_step.py: tf-models-official's BertClassifier.

Its task for sentences, with a BERT encoder of ELECTRA's sizes and its AdamW
with clipping. Its input has one length: rows are padded to it.
"""

import itertools

import finetuning_work
import workers


class Arm:
    """A classifier in training.

    Args:
      spec: `work`, `precision`, `threads`.
    """

    def __init__(self, spec):
        import tensorflow as tf
        import tf_keras
        from official.nlp import optimization
        from official.nlp.configs import encoders
        from official.nlp.data import sentence_prediction_dataloader as loader
        from official.nlp.tasks import sentence_prediction

        threads = spec["threads"]
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        self.imported = workers.process_memory()["now"]
        if spec["precision"] == "bf16":
            tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
        self._work = spec["work"]
        task = sentence_prediction.SentencePredictionTask(
            sentence_prediction.SentencePredictionConfig(
                model=sentence_prediction.ModelConfig(
                    num_classes=finetuning_work.LABELS,
                    encoder=encoders.EncoderConfig(
                        type="bert", bert=self._sizes(encoders)
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

    def describe(self):
        """Parameters, versions, memory after the imports."""
        import comparing

        weights = self._model.trainable_variables
        return {
            "parameters": sum(v.shape.num_elements() for v in weights),
            "versions": comparing.versions(
                "tf-models-official", "tensorflow", "tf_keras"
            ),
            "imported": self.imported,
        }

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

    def forget_peak(self):
        """Begins the peak of memory anew."""
        workers.forget_peak()

    def _sizes(self, encoders):
        sizes = self._work["encoder"]
        return encoders.BertEncoderConfig(
            vocab_size=sizes["vocab_size"],
            hidden_size=sizes["hidden_size"],
            num_layers=sizes["num_hidden_layers"],
            num_attention_heads=sizes["num_attention_heads"],
            intermediate_size=sizes["intermediate_size"],
            dropout_rate=sizes["hidden_dropout_prob"],
            attention_dropout_rate=sizes["attention_probs_dropout_prob"],
            max_position_embeddings=sizes["max_position_embeddings"],
            type_vocab_size=sizes["type_vocab_size"],
            embedding_size=self._work["embedding_size"],
        )

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
