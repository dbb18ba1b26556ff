# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arm of finetuning_step.py: this project's own loops.

Those that run_finetuning.py uses, given batches from memory: padded to a
multiple of 16, in evaluation rows of similar length together.
"""

import itertools
import tempfile

import finetuning_work
import tensorflow_arm
import workers


class Arm(tensorflow_arm.TensorFlowArm):
    """A classifier in training.

    Args:
      spec: `root` (checkout to import), `work`, `hparams`, `vocab_file`,
        `precision`, `threads`.
    """

    def __init__(self, spec):
        tensorflow_arm.import_checkout(spec["root"])

        from configure.finetuning import FinetuningConfig
        from electra_tf.finetuning import build, registry

        super().__init__(spec["threads"])
        self._work = spec["work"]
        hparams = tensorflow_arm.our_hparams(spec)
        with tempfile.TemporaryDirectory() as folder:
            self._config = FinetuningConfig.create(
                "benchmark", folder, vocab_file=spec["vocab_file"], **hparams
            )
            self._tasks = registry.get_tasks(self._config)
            self._model = build.build_model(self._config, self._tasks)
        self._rows = 0
        self._make_loops()

    def train(self, steps):
        """Trains; returns seconds per step."""
        return finetuning_work.timed(lambda: self.losses(steps)) / steps

    def losses(self, steps):
        """Trains; returns the mean loss of an example in each step."""
        import tensorflow as tf

        self._train.train(tf.constant(steps))
        chunk = self._train.take_chunk()
        values = chunk.values[:, chunk.names.index("total_loss")]
        return (values / self._work["batch"]).tolist()

    def evaluate(self):
        """Evaluates; returns seconds per row and rows; reads predictions."""
        self._rows = 0

        def take(name, row):
            del name, row
            self._rows += 1

        seconds = finetuning_work.timed(
            lambda: self._predict.predict(self._dev, take)
        )
        return {"seconds": seconds / self._rows, "rows": self._rows}

    def _make_loops(self):
        import orbit
        import tensorflow as tf

        from electra_tf.finetuning import build, scoring

        train = self._batches("train")
        self._dev = self._batches("dev", by_length=True)
        strategy = tf.distribute.get_strategy()

        def compute(features, seed, training):
            return scoring.with_total_loss(
                self._model.compute(features, training, seed)
            )

        self._train = scoring.FinetuningLoop(
            element_spec=train.element_spec,
            parts=1,
            compute=compute,
            variables=build.trained_variables(self._config, self._model),
            optimizer=build.build_optimizer(
                self._config, self._model, finetuning_work.TRAIN_STEPS
            ),
            # From memory, as for the others.
            iterator=itertools.cycle(list(train)),
            step=orbit.utils.create_global_step(),
            seed=0,
            strategy=strategy,
            step_values=lambda features, outputs: {},
        )
        self._predict = scoring.PredictLoop(
            task_names=("sst",),
            batch_size=self._work["batch"],
            compute=compute,
            seed=0,
            strategy=strategy,
        )

    def _batches(self, split, by_length=False):
        import tensorflow as tf

        made = finetuning_work.make_batches(
            self._work, split, by_length=by_length, multiple=16
        )
        batch = self._work["batch"]
        shapes = {
            "input_ids": [batch, None],
            "input_mask": [batch, None],
            "segment_ids": [batch, None],
            "task_id": [batch],
            "sst_eid": [batch],
            "sst_label_ids": [batch],
        }

        def features():
            for number, found in enumerate(made):
                labels = found["labels"]
                yield {
                    **{name: found[name] for name in list(shapes)[:3]},
                    "task_id": labels * 0,
                    "sst_eid": labels * 0 + number,
                    "sst_label_ids": labels,
                }

        return tf.data.Dataset.from_generator(
            features,
            output_signature={
                name: tf.TensorSpec(shape, tf.int32)
                for name, shape in shapes.items()
            },
        ).prefetch(2)


if __name__ == "__main__":
    workers.serve(Arm)
