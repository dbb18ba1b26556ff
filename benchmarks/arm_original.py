# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arms of google-research/electra itself.

`electra/` is a copy that runs (with TensorFlow 1.15; 2.15 needs a replacement
for tf.contrib's layer norm). The original's model functions run in a plain
session, without hooks, checkpoints or summaries. As in this project, masking is
part of the graph, which pads every row to the full length.
"""

import itertools
import os
import pathlib
import sys
import tempfile

import harness
import work


class Arm(work.Trainer):
    PACKAGES = ("tensorflow-cpu", "tensorflow")

    def __init__(self, spec):
        sys.path.insert(0, os.path.join(spec["original"], "electra"))
        import tensorflow.compat.v1 as tf

        tf.disable_v2_behavior()
        tf.logging.set_verbosity(tf.logging.ERROR)
        self._tf, self._work, self._threads = tf, spec["work"], spec["threads"]
        self._folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(self._folder.name, "vocab.txt")
        path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
        hparams = {**self._work["hparams"], "vocab_file": str(path)}
        self._prepare(self._folder.name, hparams)
        self.imported = harness.process_memory()["now"]
        session, made, weights = self._session("TRAIN", self._batches("train"))
        self.weights = lambda: weights
        self._step = lambda: session.run([made.train_op, made.loss])[1]

    def losses(self, steps):
        return [float(self._step()) for _ in range(steps)]

    def _session(self, mode, batches):
        tf = self._tf
        mode = getattr(tf.estimator.ModeKeys, mode)
        with tf.Graph().as_default() as graph:
            tf.set_random_seed(0)
            first = batches[0]
            features = (
                tf.data.Dataset.from_generator(
                    lambda: itertools.cycle(batches),
                    {name: tf.int32 for name in first},
                    {name: array.shape for name, array in first.items()},
                )
                .prefetch(2)
                .make_one_shot_iterator()
                .get_next()
            )
            tf.train.get_or_create_global_step()
            made = self._model_fn(features, None, mode, {})
            config = tf.ConfigProto(
                allow_soft_placement=True,
                intra_op_parallelism_threads=self._threads,
                inter_op_parallelism_threads=self._threads,
            )
            session = tf.Session(graph=graph, config=config)
            session.run(tf.global_variables_initializer())
            return session, made, tf.trainable_variables()


class Pretraining(Arm):
    def _prepare(self, folder, hparams):
        import configure_pretraining
        from util import utils

        import run_pretraining

        utils.log = lambda *message: None
        make = configure_pretraining.PretrainingConfig
        config = make("benchmark", folder, **hparams)
        self._model_fn = run_pretraining.model_fn_builder(config)

    def _batches(self, split):
        batch = work.make_batch(self._work)
        names = ("input_ids", "input_mask", "segment_ids")
        return [{name: batch[name] for name in names}]


class Finetuning(Arm):
    """Graphs of the original's run_finetuning.py for a classification task."""

    TASK = "cola"

    def __init__(self, spec):
        super().__init__(spec)
        dev = self._batches("dev")
        session, made, _ = self._session("PREDICT", dev)
        # The graph contains the batches, so each call predicts the next batch.
        self.answer = lambda batch: session.run(made.predictions)["task_id"]
        self.dev = range(len(dev))

    def _prepare(self, folder, hparams):
        import configure_finetuning
        from finetune import task_builder
        from util import utils

        import run_finetuning

        utils.log = lambda *message: None
        make = configure_finetuning.FinetuningConfig
        hparams = {**hparams, "task_names": [self.TASK]}
        config = make("benchmark", folder, **hparams)
        tasks, steps = task_builder.get_tasks(config), work.FINETUNING["steps"]
        self._model_fn = run_finetuning.model_fn_builder(config, tasks, steps)

    def _batches(self, split):
        batches = work.make_batches(self._work, split, fixed=True)
        for batch in batches:
            labels = batch.pop("labels")
            batch["task_id"] = labels * 0
            batch[f"{self.TASK}_eid"] = labels * 0
            batch[f"{self.TASK}_label_ids"] = labels
        return batches


if __name__ == "__main__":
    harness.serve()
