# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arm of pretraining_step.py: ELECTRA of tf-models-official.

Its own task builds the model (word embeddings tied, as it ties them), the
losses and the step; its own AdamWeightDecay clips and updates. Of its metrics
only the means that its losses insist on are kept, not the accuracies.
"""

import pretraining_work
import tensorflow_arm
import workers


class Arm(tensorflow_arm.TensorFlowArm):
    """A model in training.

    Args:
      spec: `work`, `precision`, `threads`.
    """

    PACKAGES = ("tf-models-official", "tensorflow", "tf_keras")

    def __init__(self, spec):
        import tensorflow as tf
        from official.nlp import optimization
        from official.nlp.data import pretrain_dataloader
        from official.nlp.tasks import electra_task

        super().__init__(spec["threads"])
        tensorflow_arm.use_keras_precision(spec["precision"])
        work = spec["work"]
        task = electra_task.ElectraPretrainTask(
            electra_task.ElectraPretrainConfig(
                model=_model_config(work),
                train_data=pretrain_dataloader.BertPretrainDataConfig(
                    use_next_sentence_label=False
                ),
            )
        )
        self._model = task.build_model()
        optimizer = optimization.create_optimizer(
            pretraining_work.LEARNING_RATE,
            pretraining_work.TRAIN_STEPS,
            pretraining_work.WARMUP_STEPS,
        )
        wanted = ("lm_example_loss", "discriminator_loss", "total_loss")
        metrics = [m for m in task.build_metrics() if m.name in wanted]
        batch = pretraining_work.make_batch(work)
        inputs = {
            "input_word_ids": tf.constant(batch["masked_ids"]),
            "input_mask": tf.constant(batch["input_mask"]),
            "input_type_ids": tf.constant(batch["segment_ids"]),
            "masked_lm_positions": tf.constant(batch["positions"]),
            "masked_lm_ids": tf.constant(batch["labels"]),
            "masked_lm_weights": tf.ones(batch["labels"].shape),
        }
        self._inputs = inputs
        self._step = tf.function(
            lambda features: task.train_step(
                features, self._model, optimizer, metrics
            )[task.loss]
        )

    def describe(self):
        """Parameters, versions, memory after the imports."""
        self._step(self._inputs)  # Variables are made at the first call.
        return super().describe()

    def run(self, steps):
        """Trains; returns seconds per step."""
        return pretraining_work.timed_steps(self.losses, steps)

    def losses(self, steps):
        """Trains; returns the total loss of each step."""
        found = [self._step(self._inputs) for _ in range(steps)]
        return [float(loss) for loss in found]


def _model_config(work):
    from official.nlp.configs import electra

    def encoder(role):
        return tensorflow_arm.tfmodels_encoder(
            work[role], work["embedding_size"]
        )

    return electra.ElectraPretrainerConfig(
        num_masked_tokens=work["predictions"],
        sequence_length=work["length"],
        discriminator_loss_weight=pretraining_work.DISC_WEIGHT,
        tie_embeddings=True,
        generator_encoder=encoder("generator"),
        discriminator_encoder=encoder("discriminator"),
    )


if __name__ == "__main__":
    workers.serve(Arm)
