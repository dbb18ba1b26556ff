# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arm of pretraining_step.py: this project's own training loop.

The loop is the one that run_pretraining.py uses; it is given the same batch
at every step, so that the input pipeline is out of the measurement as it is
for the others, and it draws its masks itself.
"""

import importlib
import inspect
import itertools
import os
import sys
import tempfile

import pretraining_work
import workers


class Arm:
    """A model in training.

    Args:
      spec: `root` (checkout to import), `work`, `hparams`, `precision`,
        `threads`.
    """

    def __init__(self, spec):
        sys.path.insert(0, spec["root"])
        # As in the front doors: it has a say in how TensorFlow starts.
        importlib.import_module("electra_tf")
        import orbit
        import tensorflow as tf

        from configure.pretraining import PretrainingConfig
        from electra_tf.pretraining import build, report
        from electra_tf.training.loop import TrainLoop

        threads = spec["hparams"].get("threads") or spec["threads"]
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        self.imported = workers.process_memory()["now"]
        self._work = spec["work"]
        hparams = {**self._work["hparams"], **spec["hparams"]}
        if spec["precision"] != "float32":
            hparams.setdefault("mixed_precision", spec["precision"])
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
        make_scale = getattr(build, "build_loss_scale", lambda config: None)
        self._loss_scale = make_scale(config)
        batch = pretraining_work.make_batch(self._work)
        names = ("input_ids", "input_mask", "segment_ids")
        features = {name: tf.constant(batch[name]) for name in names}
        given = dict(
            compute=self._model.compute,
            variables=self._model.trainable_variables,
            optimizer=optimizer,
            iterator=itertools.repeat(features),
            step=orbit.utils.create_global_step(),
            seed=config.seed,
            strategy=tf.distribute.get_strategy(),
            step_values=report.step_values,
        )
        self._loop = TrainLoop(**given, **self._switches(TrainLoop, config))

    def describe(self):
        """Parameters, versions, memory after the imports."""
        import comparing

        weights = self._model.trainable_variables
        return {
            "parameters": sum(v.shape.num_elements() for v in weights),
            "versions": comparing.versions("tensorflow", "tf_keras", "numpy"),
            "imported": self.imported,
        }

    def run(self, steps):
        """Trains; returns seconds per step."""
        return pretraining_work.timed_steps(self._train, steps)

    def losses(self, steps):
        """Trains; returns the total loss of each step."""
        import tensorflow as tf

        self._loop.train(tf.constant(steps))
        chunk = self._loop.take_chunk()
        return chunk.values[:, chunk.names.index("total_loss")].tolist()

    def forget_peak(self):
        """Begins the peak of memory anew."""
        workers.forget_peak()

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

    def _switches(self, loop, config):
        """What this checkout's runner hands to the loop besides."""
        known = {
            "parts": getattr(config, "gradient_accumulation_steps", None),
            "prepare": getattr(self._model, "prepare_parts", None),
            "jit_compile": getattr(config, "jit_compile", None),
            "loss_scale": self._loss_scale,
        }
        taken = inspect.signature(loop).parameters
        return {
            name: value
            for name, value in known.items()
            if name in taken and value is not None
        }


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
