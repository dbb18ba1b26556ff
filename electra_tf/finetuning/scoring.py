# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores and predictions of a model on its tasks, and their files."""

import dataclasses
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf import files
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.preprocessing import Batches, Preprocessor
from electra_tf.finetuning.task import Task
from electra_tf.metrics.scorers import Scorer
from electra_tf.training.loop import EvalLoop
from electra_tf.training.summaries import Console

# The inner loops of fine-tuning: training steps, and predictions row by row.

Features = dict[str, tf.Tensor]
Row = dict[str, np.ndarray]


class PredictLoop:
    """Hands the outputs of real rows, task by task, to whoever asks.

    `arguments` are those of `EvalLoop`.
    """

    def __init__(
        self, *, task_names: tuple[str, ...], **arguments: Any
    ) -> None:
        self._task_names = task_names
        self._loop = EvalLoop(outputs=self._flat_outputs, **arguments)

    def predict(
        self, dataset: tf.data.Dataset, take: Callable[[str, Row], None]
    ) -> None:
        """Runs the model over a data set."""

        def take_rows(arrays: Row, loss: float) -> None:
            del loss
            for row, task_id in enumerate(arrays["task_id"]):
                if task_id < len(self._task_names):  # Else it is padding.
                    task = self._task_names[task_id]
                    own = {
                        name.removeprefix(f"{task}/"): values[row]
                        for name, values in arrays.items()
                        if name.startswith(f"{task}/")
                    }
                    take(task, own)

        with tf.device("/cpu:0"):
            self._loop.run(dataset, take_rows)

    def _flat_outputs(
        self, features: Features, outputs: Mapping[str, Any]
    ) -> Features:
        flat = {"task_id": features["task_id"]}
        for name in self._task_names:
            for key, value in outputs[name].items():
                flat[f"{name}/{key}"] = value
        return flat


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """A model's scores on a split of a task."""

    task: str
    split: str
    results: dict[str, float]  # the original's figures, in its order
    details: dict[str, float]  # figures beyond them
    # What the model says of every example, where it always says the same; else
    # None.
    collapse: str | None
    text: str  # the results on one line


class Evaluator:
    """Predicts splits of tasks with a model as it is at the time."""

    def __init__(
        self,
        config: FinetuningConfig,
        model: FinetuningModel,
        tasks: Sequence[Task],
        preprocessor: Preprocessor,
        strategy: tf.distribute.Strategy,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._config = config
        self._tasks = list(tasks)
        self._preprocessor = preprocessor
        self._batches: dict[str, Batches] = {}
        self._loop = PredictLoop(
            task_names=tuple(task.name for task in tasks),
            batch_size=config.eval_batch_size,
            compute=compute_of(model),
            seed=config.seed,
            strategy=strategy,
            should_stop=should_stop,
            jit_compile=config.jit_compile,
        )

    def evaluate(self) -> dict[str, float]:
        """Evaluates all tasks on their dev sets."""
        found = [self.evaluate_task(task) for task in self._tasks]
        return flat_figures(found)

    def evaluate_task(self, task: Task, split: str = "dev") -> Evaluation:
        """Evaluates a task on a split; writes the files that its scorer has."""
        scorer = self.score(task, split)
        results = {name: float(value) for name, value in scorer.get_results()}
        for kind, value in scorer.files().items():
            path = self._config.qa_file(task.name, kind)
            files.write_atomically(path, json.dumps(value))
        return Evaluation(
            task.name,
            split,
            results,
            {name: float(value) for name, value in scorer.get_details()},
            _collapse(task, scorer),
            scorer.results_str(),
        )

    def score(self, task: Task, split: str) -> Scorer:
        """Returns a scorer that has seen the predictions on a split."""
        scorer = task.get_scorer(split)
        self.predict(task, split, scorer.update)
        return scorer

    def predict(
        self, task: Task, split: str, take: Callable[[Row], None]
    ) -> None:
        """Hands the outputs for each example of a split to a function."""
        key = f"{task.name}/{split}"
        if key not in self._batches:
            found, _ = self._preprocessor.prepare_predict([task], split)
            self._batches[key] = found

        def take_own(name: str, row: Row) -> None:
            if name == task.name:
                take(row)

        self._loop.predict(self._batches[key](), take_own)


def compute_of(model: FinetuningModel) -> Callable[..., dict[str, Any]]:
    """A model's outputs, with its loss named as the loops want it."""

    def compute(
        features: Features, seed: tf.Tensor, training: bool
    ) -> dict[str, Any]:
        outputs = model.compute(features, training, seed)
        return {**outputs, "total_loss": outputs["loss"]}

    return compute


def flat_figures(evaluations: Sequence[Evaluation]) -> dict[str, float]:
    """All figures in one dictionary."""
    several = len(evaluations) > 1
    return {
        f"{found.task}_{name}" if several else name: value
        for found in evaluations
        for name, value in (found.results | found.details).items()
    }


def check_figure(name: str, result: dict[str, float], hparam: str) -> None:
    """Raises unless there is a figure of this name."""
    if name not in result:
        raise UserError(
            f"hparam {hparam}: there is no figure {name!r}; the evaluation"
            f" gives: {', '.join(result)}"
        )


def _collapse(task: Task, scorer: Scorer) -> str | None:
    single = scorer.single_prediction()
    if single is None:
        return None
    names = getattr(task, "labels", None)
    if names is None and hasattr(task, "label_mapping"):
        names = {i: label for label, i in task.label_mapping.items()}
    if single == "":
        return "every prediction is that there is no answer"
    if names is not None and isinstance(single, int):
        return f"every prediction is {names[single]!r}"
    return f"every prediction is {single!r}"


# Splits without labels.


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
    files.write_atomically(path, pickle.dumps(ordered))
    return len(ordered)


def _answer_questions(
    evaluator: Evaluator, task: Task, split: str, scorer: Any, path: str
) -> int:
    """Question -> answer; none where the odds of having none are high."""
    evaluator.predict(task, split, scorer.update)
    scorer.answer()
    answers = scorer.final_answers()
    files.write_atomically(path, json.dumps(answers) + "\n")
    return len(answers)
