# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arm of pretraining_step.py: this project's own training loop.

The loop is the one that run_pretraining.py uses; it is given the same batch
at every step, so that the input pipeline is out of the measurement as it is
for the others, and it draws its masks itself.
"""

import itertools
import os
import tempfile

import pretraining_work
import tensorflow_arm
import workers


class Arm(tensorflow_arm.TensorFlowArm):
    """A model in training.

    Args:
      spec: `root` (checkout to import), `work`, `hparams`, `precision`,
        `threads`.
    """

    def __init__(self, spec):
        tensorflow_arm.import_checkout(spec["root"])
        import orbit
        import tensorflow as tf

        from configure.pretraining import PretrainingConfig
        from electra_tf.pretraining import build
        from electra_tf.training.loop import LossScale

        super().__init__(spec["hparams"].get("threads") or spec["threads"])
        self._work = spec["work"]
        hparams = tensorflow_arm.our_hparams(spec)
        with tempfile.TemporaryDirectory() as folder:
            config = PretrainingConfig.create(
                "benchmark",
                folder,
                vocab_file=_write_vocab(
                    folder, self._work["discriminator"]["vocab_size"]
                ),
                **hparams,
            )
            self._model = build.build_model(config)
        optimizer = build.build_optimizer(config, self._model)
        batch = pretraining_work.make_batch(self._work)
        names = ("input_ids", "input_mask", "segment_ids")
        features = {name: tf.constant(batch[name]) for name in names}
        self._loop = build.build_train_loop(
            config,
            self._model,
            optimizer,
            itertools.repeat(features),
            orbit.utils.create_global_step(),
            tf.distribute.get_strategy(),
            loss_scale=LossScale.of(config.mixed_precision),
        )

    def run(self, steps):
        """Trains; returns seconds per step."""
        return pretraining_work.timed_steps(self._train, steps)

    def losses(self, steps):
        """Trains; returns the total loss of each step."""
        import tensorflow as tf

        self._loop.train(tf.constant(steps))
        chunk = self._loop.take_chunk()
        return chunk.values[:, chunk.names.index("total_loss")].tolist()

    def matrix_rates(self, precision):
        """Operations per second of TensorFlow's matrix products."""
        import tensorflow as tf

        dtype = {"bf16": tf.bfloat16, "fp16": tf.float16}.get(
            precision, tf.float32
        )

        def multiply(m, k, n):
            a = tf.cast(tf.random.normal([m, k]), dtype)
            b = tf.cast(tf.random.normal([k, n]), dtype)
            product = tf.function(lambda: tf.matmul(a, b), autograph=False)
            return product

        shapes = pretraining_work.matrix_shapes(self._work)
        return pretraining_work.best_rates(multiply, shapes)

    def profile(self, steps):
        """Milliseconds of thread time and calls per step, by kind of op."""
        import profiled_ops

        with tempfile.TemporaryDirectory() as folder:
            return profiled_ops.by_kind(folder, self._train, steps)

    def _train(self, steps):
        import tensorflow as tf

        self._loop.train(tf.constant(steps))
        self._loop.take_chunk()


def _write_vocab(folder, size):
    """A vocabulary whose special tokens are where BERT's has them."""
    tokens = [f"word{number}" for number in range(size)]
    tokens[0], tokens[100] = "[PAD]", "[UNK]"
    tokens[pretraining_work.CLS] = "[CLS]"
    tokens[pretraining_work.SEP] = "[SEP]"
    tokens[pretraining_work.MASK] = "[MASK]"
    path = os.path.join(folder, "vocab.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(f"{token}\n" for token in tokens))
    return path


if __name__ == "__main__":
    workers.serve(Arm)
