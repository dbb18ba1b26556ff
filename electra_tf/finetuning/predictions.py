# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of predictions on test splits.

Source: google-research/electra, run_finetuning.py,
write_classification_outputs.
Differs: questions are answered with the test examples; all tasks are
  supported.
"""

import json
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.evaluation import Evaluator, Row
from electra_tf.finetuning.task import Task
from electra_tf.training.summaries import Console


def write_test_outputs(
    config: FinetuningConfig,
    evaluator: Evaluator,
    task: Task,
    trial: int,
    console: Console,
) -> None:
    """Predict the test splits of a task and write a file for each.

    Files of questions hold an answer by the id of each question. Files of other
    tasks hold, by the number of each example, logits (classes), a number from 0
    to 1, or labels.
    """
    for split in task.get_test_splits():
        if not task.has_split(split):
            console.warning(
                f"{task.name}: there is no {split} split to predict; skipped"
            )
            continue
        path = config.test_predictions(task.name, split, trial)
        scorer = task.get_scorer(split)
        if hasattr(scorer, "final_answers"):
            evaluator.predict(task, split, scorer.update)
            scorer.answer()
            answers = scorer.final_answers()
            evaluator.write(path, json.dumps(answers) + "\n")
            count = len(answers)
        else:
            outputs = _predict_outputs(evaluator, task, split)
            evaluator.write(path, pickle.dumps(outputs))
            count = len(outputs)
        console.line(f"{task.name}, {split}: {count} predictions in {path}")


def _predict_outputs(
    evaluator: Evaluator, task: Task, split: str
) -> dict[int, Any]:
    """Return the outputs for a split, by the numbers of its examples."""
    outputs: dict[int, Any] = {}

    def receive(row: Row) -> None:
        value = row["logits" if "logits" in row else "predictions"]
        if "labels_mask" in row:
            n_words = round(float(np.sum(row["labels_mask"])))
            value = row["predictions"][:n_words]
        outputs[int(row["eid"])] = value

    evaluator.predict(task, split, receive)
    return dict(sorted(outputs.items()))


def missing_predictions(
    config: FinetuningConfig,
    tasks: Sequence[Task],
    trial: int,
    model: str | None,
) -> list[str]:
    """Return the files of a trial that are missing or out of date.

    Args:
      config: the settings of the run.
      tasks: its tasks.
      trial: the number of the trial, from 1.
      model: its checkpoint, if it was kept.
    """
    missing = []
    for task in tasks:
        for split in task.get_test_splits():
            if not task.has_split(split):
                continue
            path = config.test_predictions(task.name, split, trial)
            sources = [*(task.data_files(split) or ())][:1]
            if model is not None:
                sources.append(f"{model}.index")
            if not _is_newer(path, sources):
                missing.append(path)
    return missing


def _is_newer(path: str, sources: Sequence[str]) -> bool:
    """Return whether a file exists and is not older than its sources."""
    if not tf.io.gfile.exists(path):
        return False
    time = tf.io.gfile.stat(path).mtime_nsec
    return all(time >= tf.io.gfile.stat(s).mtime_nsec for s in sources)
