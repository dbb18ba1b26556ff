# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arms of prediction.py: our predictor, and the exported SavedModel."""

import sys
import time

import workers


class Arm:
    """A loaded classifier.

    Args:
      spec: `root`, `kind` (predictor or served), `paths`, `threads`.
    """

    def __init__(self, spec):
        sys.path.insert(0, spec["root"])
        started = time.perf_counter()
        import tensorflow as tf

        if spec["threads"]:
            tf.config.threading.set_intra_op_parallelism_threads(
                spec["threads"]
            )
        makers = {"predictor": self._predictor, "served": self._served}
        self._ask = makers[spec["kind"]](spec["paths"])
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

    def _predictor(self, paths):
        from electra_tf.prediction.predictor import Predictor

        predictor = Predictor.from_pretrained(paths["run"])

        def ask(texts):
            # A single text as a user gives it.
            answers = (
                predictor(texts) if len(texts) > 1 else [predictor(texts[0])]
            )
            return [answer["probabilities"].values() for answer in answers]

        return ask

    def _served(self, paths):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401

        loaded = tf.saved_model.load(paths["served"])
        function = loaded.signatures["serve_text"]

        def ask(texts):
            found = function(text=tf.constant(texts))
            return found["probabilities"].numpy()

        return ask


if __name__ == "__main__":
    workers.serve(Arm)
