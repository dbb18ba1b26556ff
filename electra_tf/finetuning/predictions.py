# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predictions on splits without labels, written as the original does."""

import json
import os
import pickle
from typing import Any

import numpy as np
import tensorflow as tf

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.scoring import Evaluator, Row
from electra_tf.finetuning.task import Task
from electra_tf.training.summaries import Console


def write_test_outputs(
    config: FinetuningConfig,
    evaluator: Evaluator,
    task: Task,
    trial: int,
    console: Console,
) -> list[str]:
    """Predicts a task's test splits.

    Source: google-research/electra, run_finetuning.py,
    write_classification_outputs and run_finetuning.
    Differs: questions are answered with the test examples; numbers are in the
    task's own range; all tasks are supported.
    """
    written = []
    for split in task.get_test_splits():
        if not task.has_split(split):
            console.warning(
                f"{task.name}: there is no {split} split to predict; skipped"
            )
            continue
        path = config.test_predictions(task.name, split, trial)
        tf.io.gfile.makedirs(os.path.dirname(path))
        scorer = task.get_scorer(split)
        if hasattr(scorer, "final_answers"):
            count = _answer_questions(evaluator, task, split, scorer, path)
        else:
            count = _predict(evaluator, task, split, path)
        console.line(f"{task.name}, {split}: {count} predictions in {path}")
        written.append(path)
    return written


def _predict(evaluator: Evaluator, task: Task, split: str, path: str) -> int:
    """Example number -> logits (classes), number or labels."""
    found: dict[int, Any] = {}
    unscale = getattr(task, "unscale", lambda value: value)

    def take(row: Row) -> None:
        if "labels_mask" in row:
            n_words = round(float(np.sum(row["labels_mask"])))
            value = row["predictions"][:n_words]
        elif "logits" in row:
            value = row["logits"]
        else:
            value = unscale(row["predictions"])
        found[int(row["eid"])] = value

    evaluator.predict(task, split, take)
    ordered = {eid: found[eid] for eid in sorted(found)}
    _write(path, pickle.dumps(ordered))
    return len(ordered)


def _answer_questions(
    evaluator: Evaluator, task: Task, split: str, scorer: Any, path: str
) -> int:
    """Question -> answer; none where the odds of having none are high."""
    evaluator.predict(task, split, scorer.update)
    # Not written: the files of answers and odds are those of the dev set.
    scorer.answer()
    answers = scorer.final_answers()
    _write(path, (json.dumps(answers) + "\n").encode())
    return len(answers)


def _write(path: str, data: bytes) -> None:
    with tf.io.gfile.GFile(path + ".tmp", "wb") as file:
        file.write(data)
    tf.io.gfile.rename(path + ".tmp", path, overwrite=True)
