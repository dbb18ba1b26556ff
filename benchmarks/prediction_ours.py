# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arms of prediction.py: our predictor, and the exported SavedModels."""

import importlib
import time

import tensorflow_arm
import workers


class Arm:
    """A loaded classifier.

    Args:
      spec: `root`, `kind` (predictor, or an export), `paths`, `threads`.
    """

    def __init__(self, spec):
        started = time.perf_counter()
        if spec["kind"] == "predictor":
            tensorflow_arm.import_checkout(spec["root"])
            # Before TensorFlow, as in users' programs: it says which kernels.
            importlib.import_module("electra_tf.prediction")
        import tensorflow as tf

        if spec["threads"]:
            tf.config.threading.set_intra_op_parallelism_threads(
                spec["threads"]
            )
        if spec["kind"] == "predictor":
            self._ask = self._predictor(spec["paths"]["run"])
        else:
            self._ask = self._served(spec["paths"][spec["kind"]])
        self._ask(["loaded"])
        self._start = time.perf_counter() - started

    def describe(self):
        """Versions, and seconds from nothing to the first answer."""
        import os

        import comparing

        return {
            "start": self._start,
            "versions": comparing.versions("tensorflow", "tensorflow-text"),
            "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "not set"),
        }

    def run(self, batches):
        """Answers batches one after the other; returns seconds of each."""
        seconds = []
        for texts in batches:
            started = time.perf_counter()
            self._ask(texts)
            seconds.append(time.perf_counter() - started)
        return seconds

    def probabilities(self, texts):
        """Probabilities of the classes, a list for each text."""
        return [list(map(float, row)) for row in self._ask(texts)]

    def _predictor(self, run):
        from electra_tf.prediction.predictor import Predictor

        predictor = Predictor.from_pretrained(run)

        def ask(texts):
            # A single text as a user gives it.
            answers = (
                predictor(texts) if len(texts) > 1 else [predictor(texts[0])]
            )
            return [answer["probabilities"].values() for answer in answers]

        return ask

    def _served(self, folder):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401

        loaded = tf.saved_model.load(folder)
        function = loaded.signatures["serve_text"]

        def ask(texts):
            found = function(text=tf.constant(texts))
            return found["probabilities"].numpy()

        return ask


if __name__ == "__main__":
    workers.serve(Arm)
