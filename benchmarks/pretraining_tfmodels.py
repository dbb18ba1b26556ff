# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arm of pretraining_step.py: ELECTRA of tf-models-official.

Its own task builds the model (word embeddings tied, as it ties them), the
losses and the step; its own AdamWeightDecay clips and updates. Of its metrics
only the means that its losses insist on are kept, not the accuracies.
"""

import pretraining_work
import workers


class Arm:
    """A model in training.

    Args:
      spec: `work`, `precision`, `threads`.
    """

    def __init__(self, spec):
        import tensorflow as tf
        import tf_keras
        from official.nlp import optimization
        from official.nlp.data import pretrain_dataloader
        from official.nlp.tasks import electra_task

        threads = spec["threads"]
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        self.imported = workers.process_memory()["now"]
        if spec["precision"] == "bf16":
            tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
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
        import comparing

        self._step(self._inputs)  # Variables are made at the first call.
        weights = self._model.trainable_variables
        return {
            "parameters": sum(v.shape.num_elements() for v in weights),
            "versions": comparing.versions(
                "tf-models-official", "tensorflow", "tf_keras"
            ),
            "imported": self.imported,
        }

    def run(self, steps):
        """Trains; returns seconds per step."""
        return pretraining_work.timed_steps(self.losses, steps)

    def losses(self, steps):
        """Trains; returns the total loss of each step."""
        found = [self._step(self._inputs) for _ in range(steps)]
        return [float(loss) for loss in found]

    def forget_peak(self):
        """Begins the peak of memory anew."""
        workers.forget_peak()


def _model_config(work):
    from official.nlp.configs import electra, encoders

    def encoder(role):
        sizes = work[role]
        return encoders.EncoderConfig(
            type="bert",
            bert=encoders.BertEncoderConfig(
                vocab_size=sizes["vocab_size"],
                hidden_size=sizes["hidden_size"],
                num_layers=sizes["num_hidden_layers"],
                num_attention_heads=sizes["num_attention_heads"],
                intermediate_size=sizes["intermediate_size"],
                dropout_rate=sizes["hidden_dropout_prob"],
                attention_dropout_rate=sizes["attention_probs_dropout_prob"],
                max_position_embeddings=sizes["max_position_embeddings"],
                type_vocab_size=sizes["type_vocab_size"],
                embedding_size=work["embedding_size"],
            ),
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
