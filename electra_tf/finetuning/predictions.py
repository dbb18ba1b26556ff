# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of predictions on test splits.

Source: google-research/electra, run_finetuning.py,
write_classification_outputs.
Differs: answers are found in the test examples; all tasks are supported.
"""

import json
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.finetuning.evaluation import Evaluator, Row
from electra_tf.finetuning.task import Task
from electra_tf.training.console import Console


def write_test_outputs(
    evaluator: Evaluator, task: Task, split: str, path: str, console: Console
) -> None:
    """Predict a test split of a task and write the predictions to a file.

    A file of question answering maps each question's id to an answer. Files of
    other tasks map each example's number to logits (classes), a number from 0
    to 1, or labels.

    Args:
      evaluator: the evaluator that predicts with the model.
      task: the task.
      split: the name of the split.
      path: the path of the file to write.
      console: the console to print to.
    """
    if not task.has_split(split):
        console.warning(
            f"{task.name}: skipped the {split} split, because its data"
            " does not exist"
        )
        return
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
    """Return the outputs for a split, keyed by example number."""
    outputs: dict[int, Any] = {}

    def receive(row: Row) -> None:
        value = row["logits" if "logits" in row else "predictions"]
        if "labels_mask" in row:
            n_words = round(float(np.sum(row["labels_mask"])))
            value = row["predictions"][:n_words]
        outputs[int(row["eid"])] = value

    evaluator.predict(task, split, receive)
    return dict(sorted(outputs.items()))


def is_predicted(task: Task, split: str, path: str, model: str | None) -> bool:
    """Return whether a split's file of predictions exists and is up to date.

    Args:
      task: the task.
      split: the name of the split.
      path: the path of the predictions.
      model: the checkpoint of the trial; None: the trial kept no checkpoint.
    """
    sources = [*(task.data_files(split) or ())][:1]
    if model is not None:
        sources.append(f"{model}.index")
    return _is_newer(path, sources)


def _is_newer(path: str, sources: Sequence[str]) -> bool:
    """Return whether a file exists and is not older than its sources."""
    if not tf.io.gfile.exists(path):
        return False
    time = tf.io.gfile.stat(path).mtime_nsec
    return all(time >= tf.io.gfile.stat(s).mtime_nsec for s in sources)
