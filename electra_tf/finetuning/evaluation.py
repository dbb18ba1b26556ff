# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The evaluation of a model on splits of tasks.

Source: google-research/electra, run_finetuning.py, ModelRunner.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.files.atomic import write_atomically
from electra_tf.finetuning.batches import Batches
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.preprocessing import Preprocessor
from electra_tf.finetuning.task import Task
from electra_tf.metrics.finite_outputs import check_finite
from electra_tf.metrics.scorers import Scorer
from electra_tf.training import workers
from electra_tf.training.loop import EvalLoop
from electra_tf.training.threads import count_cores

Features = dict[str, tf.Tensor]
Row = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The scores of a model on one split of a task."""

    task: str
    results: dict[str, float]  # the original's metrics, in the original's order
    details: dict[str, float]  # further metrics
    # A sentence that names the value that all predictions share; None if
    # predictions differ.
    collapse: str | None
    scorer: Scorer  # the scorer, which contains the predictions


class Evaluator:
    """Evaluator that predicts splits with the current weights of a model."""

    def __init__(
        self,
        model: FinetuningModel,
        tasks: Sequence[Task],
        preprocessor: Preprocessor,
        strategy: tf.distribute.Strategy,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        config = model.config
        self._config = config
        self._preprocessor = preprocessor
        self._strategy = strategy
        self._batches: dict[str, Batches] = {}
        self._task_names = [task.name for task in tasks]
        self._loop = EvalLoop(
            outputs=self._flat_outputs,
            batch_size=config.eval_batch_size,
            compute=compute_function(model),
            seed=config.seed,
            strategy=strategy,
            should_stop=should_stop,
            jit_compile=config.jit_compile,
            cores=count_cores(config, strategy),
        )

    def evaluate_task(self, task: Task, split: str = "dev") -> Evaluation:
        """Evaluate a task on a split and write the scorer's files."""
        scorer = task.get_scorer(split)
        self.predict(task, split, scorer.update)
        results = {name: float(value) for name, value in scorer.get_results()}
        for kind, content in scorer.files().items():
            path = self._config.qa_file(task.name, kind)
            self.write(path, json.dumps(content))
        details = {name: float(value) for name, value in scorer.get_details()}
        collapse = _describe_collapse(task, scorer)
        return Evaluation(task.name, results, details, collapse, scorer)

    def evaluate_other_splits(
        self, tasks: Sequence[Task]
    ) -> dict[str, Evaluation]:
        """Evaluate tasks on their labelled splits, except the main split.

        Returns:
          "task/split" -> evaluation.
        """
        evaluations = {}
        for task in tasks:
            for split in task.get_dev_splits()[1:]:
                if task.has_split(split):
                    name = f"{task.name}/{split}"
                    evaluations[name] = self.evaluate_task(task, split)
        return evaluations

    def predict(
        self, task: Task, split: str, receive: Callable[[Row], None]
    ) -> None:
        """Call `receive` with the outputs for each row of a split.

        Raises:
          UserError: an output is infinite or NaN.
        """
        task_id, prefix = self._task_names.index(task.name), f"{task.name}/"

        def receive_rows(arrays: Row, loss: float) -> None:
            outputs = {
                name.removeprefix(prefix): values
                for name, values in arrays.items()
                if name.startswith(prefix)
            }
            # Padding rows are left out: their task id belongs to no task.
            rows = np.flatnonzero(arrays["task_id"] == task_id)
            outputs = {name: array[rows] for name, array in outputs.items()}
            check_finite(
                outputs,
                lambda i: f"{task.name}, {split}, example {outputs['eid'][i]}",
            )
            for i in range(len(rows)):
                receive({name: array[i] for name, array in outputs.items()})

        batches = self.prepare(task, split)
        if batches.n_examples:  # 0 if all passages are empty
            with tf.device("/cpu:0"):
                self._loop.run(batches(), receive_rows)

    def _flat_outputs(
        self, features: Features, outputs: Mapping[str, Any]
    ) -> Features:
        flat = {"task_id": features["task_id"]}
        for name in self._task_names:
            for key, value in outputs[name].items():
                flat[f"{name}/{key}"] = value
        return flat

    def prepare(self, task: Task, split: str) -> Batches:
        """Return a split's batches, which are prepared at the first call."""
        key = f"{task.name}/{split}"
        if key not in self._batches:
            with workers.in_turn(self._strategy):
                batches, _ = self._preprocessor.prepare_predict([task], split)
            self._batches[key] = batches
        return self._batches[key]

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file; with several workers, only the chief writes."""
        if workers.current_worker(self._strategy).is_chief:
            write_atomically(path, content)


def compute_function(
    model: FinetuningModel,
) -> Callable[[Features, tf.Tensor, bool], dict[str, Any]]:
    """Return a function that computes a model's outputs and `total_loss`."""

    def compute(
        features: Features, seed: tf.Tensor, training: bool
    ) -> dict[str, Any]:
        outputs = model.compute(features, training, seed)
        return {**outputs, "total_loss": outputs["loss"]}

    return compute


def _describe_collapse(task: Task, scorer: Scorer) -> str | None:
    prediction = scorer.single_prediction()
    if prediction is None:
        return None
    if prediction == "":
        return 'every prediction is "no answer"'
    labels = task.head.labels
    if labels and isinstance(prediction, int):
        return f"every prediction is {labels[prediction]!r}"
    return f"every prediction is {prediction!r}"
