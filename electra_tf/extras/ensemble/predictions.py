# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Several models' predictions for the examples of a split.

Each model has a file with one prediction per example. The predictions for an
example form a stack [models, units, columns]. The stack contains the
probabilities of a text's classes, of the tags of a sentence's words, or of a
question's candidate answers, or a single number.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.formatting import join_names, shorten
from electra_tf.data import values
from electra_tf.extras.ensemble.rows import (
    BadRowError,
    Row,
    is_same_id,
    read_number,
    read_probabilities,
    read_probability,
    read_rows,
)
from electra_tf.finetuning.classification import (
    ClassificationTask,
    MultiLabelTask,
    RegressionTask,
)
from electra_tf.finetuning.question_answering import QATask
from electra_tf.finetuning.registry import get_tasks
from electra_tf.finetuning.tagging import TaggingExample, TaggingTask
from electra_tf.finetuning.task import Task
from electra_tf.finetuning.task_description import read_task_config
from electra_tf.metrics import question_answering as qa
from electra_tf.metrics.matching import answer_encoder, encode_answers
from electra_tf.metrics.trial_statistics import main_metric
from electra_tf.prediction.answers import Answerer, make_answerer

_SMALLEST = 1e-9  # lower bound of probabilities; log(0) is infinite
# weight of the mean probabilities in a vote; too small to outweigh one vote
_TIE_WEIGHT = 1e-3


def open_task(
    data_dir: str,
    name: str | None,
    vocab_file: str | None = None,
    task_config: str | None = None,
) -> Task:
    """Return a task with the labels that its data contains; write no files.

    Args:
      data_dir: the data directory.
      name: the name of the task; None: the task in `task_config`.
      vocab_file: the vocabulary; None: vocab.txt in the data directory.
      task_config: the description of your own task; None: a built-in task.
    """
    paths = {"vocab_file": vocab_file, "task_config": task_config}
    hparams: dict[str, Any] = {k: path for k, path in paths.items() if path}
    for _, layer in FinetuningConfig.command_line_layers(hparams):
        hparams = {**layer, **hparams}
    hparams["task_names"] = [name or read_task_config(task_config).name]
    config = FinetuningConfig.create("ensemble", data_dir, **hparams)
    task = get_tasks(config)[0]
    if task.labels_path():
        task.set_labels(task.find_labels())
    return task


class Scores(NamedTuple):
    """The metrics of a model or of a mixture."""

    metrics: dict[str, float]
    # indices of examples -> the main metric of these examples
    of_examples: Callable[[np.ndarray], float]


class Predictions:
    """Several models' predictions for a split of a classification task.

    Attributes:
      name: the names of the task and the split.
      metric: the metric that mixtures are compared by; "" until a mixture is
        scored.
      has_labels: whether the split has labels.
      is_squared: whether weights are fitted to squared errors; False: to the
        likelihood of the labels.
      stacks: [models, units, columns] for each example.
    """

    key_name = "line"  # the key that names a row's example
    is_squared = False

    def __init__(self, task: Any, split: str, paths: Sequence[str]) -> None:
        """Read the predictions of all files.

        Args:
          task: the task.
          split: the split that was predicted.
          paths: the file of each model.

        Raises:
          UserError: a file has a bad row, or no row for an example.
        """
        self._task, self._split = task, split
        self.name = f"{task.name}, {split}"
        self._examples: list[Any] = task.get_examples(split)
        self.metric = task.main_metric or ""
        self.has_labels = task.spec.has_labels(split)
        self._answerer = make_answerer(task, n_best=task.config.n_best_size)
        self._prepare()
        rows = zip(*self._read(paths), strict=True)
        self.stacks = [
            self._stack(models_rows, i) for i, models_rows in enumerate(rows)
        ]

    def _prepare(self) -> None:
        """Set the labels of the task, and the gold label of each example."""
        self._labels, value = self._task.labels, self._task.label_value
        self._gold = [np.array([value(e.label)]) for e in self._examples]

    def _key(self, example: Any) -> Any:
        """Return the value that an example's rows have under `key_name`."""
        return example.line

    @functools.cached_property
    def _indices(self) -> dict[Any, int]:
        return {self._key(e): i for i, e in enumerate(self._examples)}

    def _key_in_row(self, row: Row) -> Any:
        return row.get(self.key_name)

    def _find_example(self, key: Any, number: int) -> int | None:
        """Return the index of a row's example, by the row's key or number."""
        if key is None:
            return number
        return self._indices.get(key) if isinstance(key, int | str) else None

    @functools.cached_property
    def _bad_lines(self) -> set[int]:
        """The lines of the split's file that the task cannot use."""
        path, *_ = self._task.data_files(self._split) or [None]
        rows = self._task.row_report.rows
        return {row.line for row in rows if row.skipped and row.path == path}

    def _is_unusable(self, line: Any) -> bool:
        """Return whether the task cannot use a line of the split's file."""
        return isinstance(line, int | str) and line in self._bad_lines

    def _read(self, paths: Sequence[str]) -> Iterator[list[Any]]:
        """Yield the rows of each file, in the order of the examples."""
        # Index of an example -> location and value of the first id in its rows.
        ids: dict[int, tuple[str, Any]] = {}
        for path in paths:
            rows = self._read_file(path, ids)
            missing = [
                self._key(example)
                for example, row in zip(self._examples, rows, strict=True)
                if row is None
            ]
            if missing:
                raise UserError(
                    f"{path}: no prediction for {len(missing)} of {len(rows)}"
                    f" examples of {self.name} ({self.key_name}"
                    f" {join_names(missing)}); expected a prediction for each"
                    " example. Predict the whole split again."
                )
            yield rows

    def _read_file(
        self, path: str, ids: dict[int, tuple[str, Any]]
    ) -> list[Any]:
        """Return each example's row in a file; None for a missing row."""
        rows: list[Any] = [None] * len(self._examples)
        for number, (location, row) in enumerate(read_rows(path)):
            key = self._key_in_row(row)
            index = self._find_example(key, number)
            if index is None and self._is_unusable(key):
                continue
            try:
                if index not in range(len(rows)) or rows[index] is not None:
                    raise BadRowError(
                        f"prediction {number + 1}, {self.key_name} {key}",
                        f"one prediction for each of the {len(rows)} examples"
                        f" of {self.name}",
                    )
                if "id" in row:
                    first, row_id = ids.setdefault(index, (location, row["id"]))
                    if not is_same_id(row_id, row["id"]):
                        raise BadRowError(
                            f"id {row['id']!r}", f"{row_id!r}, as in {first}"
                        )
                rows[index] = self._read_row(row, self._examples[index])
            except BadRowError as error:
                raise UserError(
                    f"{location}: found {shorten(error.row_text)}; expected"
                    f" {error.expected}. Predict again."
                ) from None
        return rows

    def _read_row(self, row: Row, example: Any) -> Any:
        """Return the values [units, columns] of a row, or raise BadRowError."""
        return np.array(
            [read_probabilities(row.get("probabilities"), self._labels)]
        )

    def _stack(self, rows: Sequence[Any], number: int) -> np.ndarray:
        """Return the stack [models, units, columns] of an example's rows."""
        return np.stack(rows)

    def truth(self, number: int, stack: np.ndarray) -> np.ndarray:
        """Return probabilities of gold labels, or errors of numbers, by model.

        Args:
          number: the index of the example.
          stack: the predictions for the example, [models, units, columns].

        Returns:
          [units, models].
        """
        gold = self._gold[number][: stack.shape[1]]
        return stack[:, np.arange(len(gold)), gold].T

    def vote(self, stack: np.ndarray) -> np.ndarray:
        """Return the share of the models that vote for each column.

        The mean probabilities decide between columns with equal votes.

        Returns:
          [units, columns].
        """
        votes = np.eye(stack.shape[-1])[stack.argmax(-1)].mean(0)
        return (votes + _TIE_WEIGHT * stack.mean(0)) / (1 + _TIE_WEIGHT)

    def _outputs(self, number: int, mixed: np.ndarray) -> Row:
        """Return a mixture in the form of a head's outputs, for the scorer."""
        return {
            "label_ids": self._gold[number][0],
            "predictions": mixed[0].argmax(),
            "loss": self._loss(number, mixed),
        }

    def _loss(self, number: int, mixed: np.ndarray) -> float:
        likelihood = np.maximum(self.truth(number, mixed[None]), _SMALLEST)
        return -np.log(likelihood).sum()

    def answer(self, number: int, mixed: np.ndarray) -> dict[str, Any]:
        """Return a mixture in the form of a line that `predict` writes.

        Args:
          number: the index of the example.
          mixed: the mixture, [units, columns].
        """
        return make_answer(self._answerer, self._examples[number], mixed)

    def score(self, mixed: Sequence[np.ndarray]) -> Scores:
        """Score a model or a mixture with the task's scorer.

        Args:
          mixed: the predictions for each example, [units, columns].
        """
        scorer = self._task.get_scorer(self._split)
        for number, outputs in enumerate(mixed):
            scorer.update(self._outputs(number, outputs))
        results = scorer.get_results()
        self.metric = self.metric or main_metric([name for name, _ in results])

        def score_examples(indices: np.ndarray) -> float:
            return dict(scorer.select_rows(indices).get_results())[self.metric]

        return Scores(dict(results + scorer.get_details()), score_examples)


class _NumberPredictions(Predictions):
    """Predictions of numbers, scaled from the task's range to [0, 1]."""

    is_squared = True

    def _prepare(self) -> None:
        self._gold = [self._task.label_value(e.label) for e in self._examples]

    def _read_row(self, row: Row, example: Any) -> Any:
        low, high = self._task.value_range
        value = read_number(row.get("value"), "value")
        return np.array([[(value - low) / (high - low)]])

    def truth(self, number: int, stack: np.ndarray) -> np.ndarray:
        return stack[:, :, 0].T - self._gold[number]

    def vote(self, stack: np.ndarray) -> np.ndarray:
        return np.median(stack, axis=0)

    def _outputs(self, number: int, mixed: np.ndarray) -> Row:
        squared_error = self.truth(number, mixed[None]) ** 2
        return {
            "targets": self._gold[number],
            "predictions": mixed[0, 0],
            "loss": squared_error.sum(),
        }


class _TagPredictions(Predictions):
    """Predictions of tags, for the words that every model has tagged."""

    def _prepare(self) -> None:
        self._labels = self._task.head.labels
        self._gold = [np.array(e.labels, int) for e in self._examples]
        self._answerer.all_tags = True

    def _read_row(self, row: Row, example: Any) -> Any:
        if row.get("words", example.words) != example.words:
            raise BadRowError(f"words {row['words']}", f"{example.words}")
        tags, count = row.get("tag_probabilities"), len(example.words)
        if not isinstance(tags, list) or len(tags) != count:
            raise BadRowError(
                f"tag_probabilities {tags}",
                f"probabilities of the tags of {count} words (predict"
                " --all_tags writes them)",
            )
        # In a sentence that is too long, the last words have no tags.
        while tags and tags[-1] is None:
            tags = tags[:-1]
        probabilities = [read_probabilities(tag, self._labels) for tag in tags]
        return np.reshape(probabilities, [len(tags), len(self._labels)])

    def _is_unusable(self, line: Any) -> bool:
        """Return whether the sentence that begins at a line has a bad line."""
        if not isinstance(line, int):
            return False
        later_lines = (e.line for e in self._examples if e.line > line)
        end = min(later_lines, default=math.inf)
        return any(line <= bad_line < end for bad_line in self._bad_lines)

    def _stack(self, rows: Sequence[Any], number: int) -> np.ndarray:
        count = min(map(len, rows))
        return np.stack([row[:count] for row in rows])

    def _outputs(self, number: int, mixed: np.ndarray) -> Row:
        return {
            "loss": self._loss(number, mixed),
            "labels": self._gold[number],
            "predictions": mixed.argmax(-1),
            "labels_mask": np.ones(len(mixed)),
        }


class _AnswerPredictions(Predictions):
    """Predictions of answers; the columns are the answers of all models."""

    key_name = "id"

    def _prepare(self) -> None:
        # As in evaluations, the last of several questions with equal ids
        # counts.
        self._examples = [*{e.key: e for e in self._examples}.values()]
        self._texts: dict[int, list[str]] = {}

    def _key(self, example: Any) -> Any:
        return example.key

    def _key_in_row(self, row: Row) -> Any:
        # Ids may be numbers, because predict copies ids unchanged.
        return values.as_id(row.get("id"))

    def _find_example(self, key: Any, number: int) -> int | None:
        return self._indices.get(key) if isinstance(key, int | str) else None

    def _is_unusable(self, line: Any) -> bool:
        return False

    def _read_row(self, row: Row, example: Any) -> Any:
        """Return the probabilities of a row's answers, by text."""
        probabilities = {}
        try:
            for candidate in row["n_best"]:
                name = "answer" if "answer" in candidate else "text"
                text = candidate[name]
                if not isinstance(text, str):
                    raise TypeError
                probabilities[text] = read_probability(
                    candidate["probability"], text
                )
        except (KeyError, TypeError):
            raise BadRowError(
                f"n_best {row.get('n_best')}", "answers and probabilities"
            ) from None
        return probabilities

    def _stack(self, rows: Sequence[Any], number: int) -> np.ndarray:
        all_texts = [text for row in rows for text in row]
        texts = list(dict.fromkeys(all_texts)) or [""]
        self._texts[number] = texts
        return np.array(
            [[[row.get(text, 0.0) for text in texts]] for row in rows]
        )

    def truth(self, number: int, stack: np.ndarray) -> np.ndarray:
        """Return each model's likelihood of a right answer, [1, models].

        The result is [0, models] if no model lists a right answer.
        """
        question = self._examples[number]
        encode = answer_encoder(self._task.match, question)
        answers = [encode(answer) for answer in question.answers]
        is_right = [
            any(qa.exact_match(encode(text), answer) for answer in answers)
            for text in self._texts[number]
        ]
        likelihoods = stack[:, 0] @ np.array(is_right, float)
        return likelihoods[None][: int(likelihoods.any())]

    def answer(self, number: int, mixed: np.ndarray) -> dict[str, Any]:
        texts = self._texts[number]
        best = [
            {"answer": texts[i], "probability": float(mixed[0, i])}
            for i in np.argsort(-mixed[0], kind="stable")
        ]
        return {"id": self._examples[number].key, **best[0], "n_best": best}

    def score(self, mixed: Sequence[np.ndarray]) -> Scores:
        """Return the official script's metrics, as means over the questions.

        Args:
          mixed: the predictions for each question, [units, columns].
        """
        texts = {
            question.key: self._texts[i][int(mixed[i].argmax())]
            for i, question in enumerate(self._examples)
        }
        questions, texts = encode_answers(
            self._task.match, self._examples, texts
        )
        is_squad = self._task.version == "squad1"
        evaluate = qa.evaluate_squad1 if is_squad else qa.evaluate_mrqa
        question_scores = np.array(
            [
                # The official scripts skip questions that have no gold answers.
                evaluate([question], texts)[self.metric]
                if question.answers
                else math.nan
                for question in questions
            ]
        )

        def score_examples(indices: np.ndarray) -> float:
            return float(np.nanmean(question_scores[indices]))

        return Scores(evaluate(questions, texts), score_examples)


# class of a task -> class of its predictions
_KINDS = (
    (QATask, _AnswerPredictions),
    (RegressionTask, _NumberPredictions),
    (TaggingTask, _TagPredictions),
    (ClassificationTask, Predictions),
)


def read_predictions(
    task: Task, split: str, paths: Sequence[str]
) -> Predictions:
    """Return the predictions of several models for a task's split.

    Args:
      task: the task.
      split: the split that was predicted.
      paths: the file of each model.

    Raises:
      UserError: ensembles do not support the kind of task, or a file does not
        fit.
    """
    has_label_sets = isinstance(task, MultiLabelTask)
    may_have_no_answer = getattr(task, "v2", False)
    if not has_label_sets and not may_have_no_answer:
        for task_class, predictions_class in _KINDS:
            if isinstance(task, task_class):
                return predictions_class(task, split, paths)
    raise UserError(
        f"task {task.name}: ensembles do not support this type of task;"
        " expected classification with one label per text, regression, tagging,"
        " or questions that all have an answer. Choose such a task."
    )


def make_answer(
    answerer: Answerer, example: Any, mixed: np.ndarray
) -> dict[str, Any]:
    """Return an example's mixture in the form of a line that `predict` writes.

    Args:
      answerer: the answerer of the task.
      example: an example of the task.
      mixed: [units, columns], probabilities or a number.
    """
    logits = np.log(np.maximum(mixed, _SMALLEST))
    if isinstance(example, TaggingExample):
        item = answerer.example({"words": example.words}, 0)
        outputs = {"logits": logits, "n_words": len(mixed)}
    else:
        item = example
        outputs = {"logits": logits[0], "predictions": mixed[0, 0]}
    return {"line": example.line, **answerer.answer(item, outputs)}
