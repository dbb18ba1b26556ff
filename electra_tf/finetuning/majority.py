# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""WNLI answered by the majority of its training labels, without a model.

Source: Mercier, Efficient transfer learning for NLP with ELECTRA (2021),
table 2: the majority beats all models, and its 56.34 is in the averages.
"""

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.classification import ClassificationTask
from electra_tf.finetuning.trial import Evaluation, Evaluator, Row
from electra_tf.training.summaries import Console

NO_MODEL = "none (wnli_majority)"  # in place of a trial's model


def applies(config: FinetuningConfig) -> bool:
    """Whether a run is of this kind; refuses it beside learned tasks."""
    if config.wnli_majority and len(config.task_names) > 1:
        raise UserError(
            "hparam wnli_majority: wnli is learned together with others"
            f" (task_names {', '.join(config.task_names)}); name wnli alone, or"
            " use run_glue, which takes one task after the other"
        )
    return config.wnli_majority


class Answers(Evaluator):
    """In a trial's place: every answer is the training labels' shares."""

    global_step = 0

    def __init__(self, task: ClassificationTask, console: Console) -> None:
        """Counts the labels, each once more than it is there."""
        self._config, self.evaluator = task.config, self
        examples = task.get_examples("train")
        found = [example.label for example in examples]
        counts = collections.Counter([*task.labels, *found])
        shares = np.array([counts[name] for name in task.labels], np.float32)
        self._logits = np.log(shares / shares.sum())
        for line in task.row_report.summary(task.name):
            console.line(line)
        console.line(
            f"{task.name}: no model was used; every answer is"
            f" {max(task.labels, key=counts.get)!r}, the majority of"
            f" {len(examples)} training labels"
        )

    def evaluate_task(self, *arguments: Any) -> Evaluation:
        """That all answers are one is meant here, and no collapse."""
        found = super().evaluate_task(*arguments)
        return dataclasses.replace(found, collapse=None)

    def predict(
        self, task: ClassificationTask, split: str, take: Callable[[Row], None]
    ) -> None:
        for example in task.get_examples(split):
            number = task.label_value(example.label)
            take(
                {
                    "eid": np.int64(example.eid),
                    "label_ids": np.int64(number),
                    "logits": self._logits,
                    "predictions": np.argmax(self._logits),
                    "loss": -self._logits[number],
                }
            )
