# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A task answered by the majority of its training labels, without a model.

WNLI's dev and test sets repeat sentences of its training set with the other
label, so that models score below the majority (GLUE's FAQ, question 12).

Source: Mercier, Efficient transfer learning for NLP with ELECTRA (2021),
table 2, whose averages have the majority's 56.34 for WNLI.
"""

import collections
import dataclasses
from collections.abc import Callable

import numpy as np

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.classification import ClassificationTask
from electra_tf.finetuning.trial import Evaluation, Evaluator, Row

TASK = "wnli"
NO_MODEL = "none (wnli_majority)"  # in place of a trial's model


def applies(config: FinetuningConfig) -> bool:
    """Whether a run is of this kind; refuses it beside learned tasks."""
    if not config.wnli_majority:
        return False
    if config.task_names != [TASK]:
        raise UserError(
            "hparam wnli_majority: wnli is learned together with others"
            f" (task_names {', '.join(config.task_names)}); name wnli alone, or"
            " use run_glue, which takes one task after the other"
        )
    return True


class MajorityEvaluator(Evaluator):
    """Answers every example alike, with the training labels' shares."""

    def __init__(self, task: ClassificationTask) -> None:
        """Counts the labels, each once more than it is there."""
        self._config = task.config
        examples = task.get_examples("train")
        labels = collections.Counter(task.labels)
        labels.update(example.label for example in examples)
        counts = np.array([labels[name] for name in task.labels], np.float32)
        self._logits = np.log(counts / counts.sum())
        self.answer = task.labels[int(np.argmax(counts))]
        self.description = (
            f"{task.name}: no model was used; every answer is"
            f" {self.answer!r}, the majority of {len(examples)} training labels"
        )

    def evaluate_task(
        self, task: ClassificationTask, split: str = "dev"
    ) -> Evaluation:
        """That all answers are one is meant here, and no collapse."""
        found = super().evaluate_task(task, split)
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
