# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Majority prediction for WNLI: always the most frequent training label.

Source: Mercier, Efficient transfer learning for NLP with ELECTRA (2021), table
2: the majority beats all models, and the averages include its 56.34.
"""

import collections
import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.finetuning.classification import ClassificationTask
from electra_tf.finetuning.evaluation import Evaluation, Evaluator, Row
from electra_tf.finetuning.task import Task
from electra_tf.training.console import Console

# the value that results store instead of the path of a trial's model
NO_MODEL = "none (wnli_majority)"


def check_alone(task_names: Sequence[str]) -> None:
    """Raise a UserError if WNLI is trained together with other tasks."""
    if len(task_names) > 1:
        raise UserError(
            "hparam wnli_majority: wnli cannot be trained with other tasks"
            f" (task_names {', '.join(task_names)}). Set task_names to wnli"
            " alone, or use run_glue, which trains one task after the other."
        )


class MajorityEvaluator(Evaluator):
    """Evaluator that uses no model and predicts one class for all examples.

    The logits are the logarithms of the labels' shares in the training data.
    """

    def __init__(
        self,
        task: ClassificationTask,
        strategy: tf.distribute.Strategy,
        console: Console,
    ) -> None:
        """Count the training labels.

        One is added to every count, so that each share is positive.
        """
        self._config, self._strategy = task.config, strategy
        examples = task.get_examples("train")
        counts = collections.Counter(task.labels)
        counts.update(example.label for example in examples)
        shares = np.array([counts[name] for name in task.labels], np.float32)
        self._logits = np.log(shares / shares.sum())
        for line in task.row_report.summary(task.name):
            console.line(line)
        task.row_report.mark_printed()
        console.line(
            f"{task.name}: no model was used; all predictions are"
            f" {max(task.labels, key=counts.get)!r}, the most frequent of"
            f" {len(examples)} training labels"
        )

    def evaluate_task(self, task: Task, split: str = "dev") -> Evaluation:
        """Evaluate a task without a report of collapse.

        Predictions that are all equal are intended here.
        """
        evaluation = super().evaluate_task(task, split)
        return dataclasses.replace(evaluation, collapse=None)

    def predict(
        self, task: Task, split: str, receive: Callable[[Row], None]
    ) -> None:
        for example in task.get_examples(split):
            label_id = task.label_value(example.label)
            receive(
                {
                    "eid": np.int64(example.eid),
                    "label_ids": np.int64(label_id),
                    "logits": self._logits,
                    "predictions": np.argmax(self._logits),
                    "loss": -self._logits[label_id],
                }
            )
