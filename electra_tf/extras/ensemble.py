# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predictions of several models as one: mean, weights fitted on dev, vote.

A member is a file with a prediction for each example of a split. An example's
stack is [members, units, columns]: probabilities of a text's classes, of the
tags of a sentence's words, of a question's candidates, or a number alone.
"""

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.formatting import join_names, shorten
from electra_tf.data import tables, values
from electra_tf.files.json_files import read_json
from electra_tf.finetuning.classification import (
    ClassificationTask,
    MultiLabelTask,
    RegressionTask,
)
from electra_tf.finetuning.question_answering import QATask
from electra_tf.finetuning.registry import get_tasks
from electra_tf.finetuning.tagging import TaggingExample, TaggingTask
from electra_tf.finetuning.task import Task
from electra_tf.finetuning.task_spec import read_task_config
from electra_tf.metrics import question_answering as qa
from electra_tf.metrics.direction import lower_is_better
from electra_tf.metrics.matching import answer_encoder, encode_answers
from electra_tf.metrics.statistics import main_metric
from electra_tf.prediction.answers import Answerer, make_answerer

_ROUNDING = 1e-3  # of probabilities in files: how far a sum may be from 1
_TINY = 1e-9
_TIE = 1e-3  # the mean's weight in a vote; less than any member's
Row = Mapping[str, Any]


def open_task(
    data_dir: str,
    name: str | None,
    vocab_file: str | None = None,
    task_config: str | None = None,
) -> Task:
    """The task whose data lies in a data directory; nothing is written."""
    given = {"vocab_file": vocab_file, "task_config": task_config}
    given = {key: value for key, value in given.items() if value}
    for _, brought in FinetuningConfig.command_line_layers(given):
        given = {**brought, **given}
    given["task_names"] = [name or read_task_config(task_config).name]
    config = FinetuningConfig.create("ensemble", data_dir, **given)
    task = get_tasks(config)[0]
    if task.labels_path():
        task.use_labels(task.find_labels())
    return task


class _BadRowError(Exception):
    """What stands in a row of predictions, and what is expected."""


class System(NamedTuple):
    """A member's figures, or an ensemble's."""

    figures: dict[str, float]
    on: Callable[[np.ndarray], float]  # the main one, of some examples


class Members:
    """What members say of the examples of a split: of classes, as it is here.

    Attributes:
      name: the task's and the split's.
      figure: what systems are compared by; known once one is scored.
      labelled: whether there is a truth.
      squared: whether weights are fitted to squared errors, else likelihood.
      stacks: each example's.
    """

    key_name = "line"
    squared = False

    def __init__(self, task: Any, split: str, paths: Sequence[str]) -> None:
        self._task, self._split = task, split
        self.name = f"{task.name}, {split}"
        self._examples: list[Any] = task.get_examples(split)
        self.figure = task.main_metric or ""
        self.labelled = task.spec.has_labels(split)
        self._answerer = make_answerer(task, n_best=task.config.n_best_size)
        self._prepare()
        rows = zip(*self._read(paths), strict=True)
        self.stacks = [self._stack(own, i) for i, own in enumerate(rows)]

    def _prepare(self) -> None:
        self._labels, value = self._task.labels, self._task.label_value
        self._gold = [np.array([value(e.label)]) for e in self._examples]

    def _key(self, example: Any) -> Any:
        return example.line

    @functools.cached_property
    def _bad_lines(self) -> set[int]:
        """Lines of the split's own file that the task cannot use."""
        own, *_ = self._task.data_files(self._split) or [None]
        rows = self._task.row_report.rows
        return {row.line for row in rows if row.skipped and row.path == own}

    def _is_unusable(self, line: Any) -> bool:
        return line in self._bad_lines

    def _shares(self, row: Row, example: Any) -> Any:
        """What a row says of an example."""
        return np.array([_shares(row.get("probabilities"), self._labels)])

    def _stack(self, rows: Sequence[Any], number: int) -> np.ndarray:
        return np.stack(rows)

    def truth(self, number: int, stack: np.ndarray) -> np.ndarray:
        """Of [units, members]: the truth's probability, or the error."""
        gold = self._gold[number][: stack.shape[1]]
        return stack[:, np.arange(len(gold)), gold].T

    def vote(self, stack: np.ndarray) -> np.ndarray:
        """The shares of members that choose a column; ties by the mean."""
        chosen = np.eye(stack.shape[-1])[stack.argmax(-1)].mean(0)
        return (chosen + _TIE * stack.mean(0)) / (1 + _TIE)

    def _outputs(self, number: int, mixed: np.ndarray) -> Row:
        """As the head's, for the task's scorer."""
        return {
            "label_ids": self._gold[number][0],
            "predictions": mixed[0].argmax(),
            "loss": self._loss(number, mixed),
        }

    def _loss(self, number: int, mixed: np.ndarray) -> float:
        right = np.maximum(self.truth(number, mixed[None]), _TINY)
        return -np.log(right).sum()

    def answer(self, number: int, mixed: np.ndarray) -> dict[str, Any]:
        """A line of a file, as `predict` writes it."""
        return answer_of(self._answerer, self._examples[number], mixed)

    def score(self, mixed: Sequence[np.ndarray]) -> System:
        """By the task's scorer; `mixed` is a system's [units, columns]."""
        scorer = self._task.get_scorer(self._split)
        for number, one in enumerate(mixed):
            scorer.update(self._outputs(number, one))
        results = scorer.get_results()
        self.figure = self.figure or main_metric([name for name, _ in results])
        return System(
            dict(results + scorer.get_details()),
            lambda rows: dict(scorer.select_rows(rows).get_results())[
                self.figure
            ],
        )

    def _read(self, paths: Sequence[str]) -> Iterator[list[Any]]:
        """Each file's rows, one for each example, in their order.

        A row is about its `line` of the split's file, or the question of its
        `id`; rows that have no `line` come in order.
        """
        places = {self._key(e): i for i, e in enumerate(self._examples)}
        by_line, ids = self.key_name == "line", {}
        for path in paths:
            found: list[Any] = [None] * len(self._examples)
            for number, (where, row) in enumerate(_rows(path)):
                key = row.get(self.key_name)
                if not by_line:  # predict hands ids on as they are.
                    key = values.as_id(key)
                place = number if by_line and key is None else None
                if isinstance(key, int | str):
                    place = places.get(key)
                    if by_line and place is None and self._is_unusable(key):
                        continue
                try:
                    if (
                        place not in range(len(found))
                        or found[place] is not None
                    ):
                        raise _BadRowError(
                            f"prediction {number + 1}, {self.key_name} {key}",
                            f"one for each of the {len(found)} examples of"
                            f" {self.name}",
                        )
                    if "id" in row:
                        first, own = ids.setdefault(place, (where, row["id"]))
                        if not _is_same_id(own, row["id"]):
                            expected = f"{own!r}, as {first} has"
                            raise _BadRowError(f"id {row['id']!r}", expected)
                    found[place] = self._shares(row, self._examples[place])
                except _BadRowError as error:
                    seen, expected = error.args
                    raise UserError(
                        f"{where}: found {shorten(seen)}; expected {expected}"
                    ) from None
            pairs = zip(self._examples, found, strict=True)
            if lacking := [self._key(e) for e, own in pairs if own is None]:
                raise UserError(
                    f"{path}: nothing about {len(lacking)} of {len(found)}"
                    f" examples of {self.name}: {self.key_name}"
                    f" {join_names(lacking)}"
                )
            yield found


class _Numbers(Members):
    """In the scorer's units, from 0 to 1."""

    squared = True

    def _prepare(self) -> None:
        self._gold = [self._task.label_value(e.label) for e in self._examples]

    def _shares(self, row: Row, example: Any) -> Any:
        low, high = self._task.value_range
        value = _number(row.get("value"), "value")
        return np.array([[(value - low) / (high - low)]])

    def truth(self, number: int, stack: np.ndarray) -> np.ndarray:
        return stack[:, :, 0].T - self._gold[number]

    def vote(self, stack: np.ndarray) -> np.ndarray:
        return np.median(stack, axis=0)

    def _outputs(self, number: int, mixed: np.ndarray) -> Row:
        gold, loss = self._gold[number], self.truth(number, mixed[None]) ** 2
        return {"targets": gold, "predictions": mixed[0, 0], "loss": loss.sum()}


class _Tags(Members):
    """Of a sentence's words those that every member has tagged."""

    def _prepare(self) -> None:
        self._labels = self._task.head.labels
        self._gold = [np.array(e.labels, int) for e in self._examples]
        self._answerer.all_tags = True

    def _shares(self, row: Row, example: Any) -> Any:
        if row.get("words", example.words) != example.words:
            raise _BadRowError(f"words {row['words']}", f"{example.words}")
        given, count = row.get("tag_probabilities"), len(example.words)
        if not isinstance(given, list) or len(given) != count:
            raise _BadRowError(
                f"tag_probabilities {given}",
                f"those of {count} words (predict --all_tags writes them)",
            )
        while given and given[-1] is None:  # Cut off, being too long.
            given = given[:-1]
        shares = [_shares(one, self._labels) for one in given]
        return np.reshape(shares, [len(given), len(self._labels)])

    def _is_unusable(self, line: Any) -> bool:
        """Whether a sentence, by its first line, has a bad one."""
        if not isinstance(line, int):
            return False
        later = (e.line for e in self._examples if e.line > line)
        end = min(later, default=math.inf)
        return any(line <= bad < end for bad in self._bad_lines)

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


class _Answers(Members):
    """Columns are the texts that any member lists."""

    key_name = "id"

    def _prepare(self) -> None:
        # Of one id the last counts, as in evaluations.
        self._examples = [*{e.key: e for e in self._examples}.values()]
        self._texts: dict[int, list[str]] = {}

    def _key(self, example: Any) -> Any:
        return example.key

    def _shares(self, row: Row, example: Any) -> Any:
        found = {}
        try:
            for one in row["n_best"]:
                text = one["answer"] if "answer" in one else one["text"]
                if not isinstance(text, str):
                    raise TypeError
                found[text] = _probability(one["probability"], text)
        except (KeyError, TypeError):
            seen = f"n_best {row.get('n_best')}"
            raise _BadRowError(seen, "answers and probabilities") from None
        return found

    def _stack(self, rows: Sequence[Any], number: int) -> np.ndarray:
        texts = dict.fromkeys(t for row in rows for t in row) or [""]
        self._texts[number] = list(texts)
        return np.array([[[row.get(t, 0.0) for t in texts]] for row in rows])

    def truth(self, number: int, stack: np.ndarray) -> np.ndarray:
        """Nothing where no member lists a right answer."""
        question = self._examples[number]
        encode = answer_encoder(self._task.match, question)
        answers = [encode(answer) for answer in question.answers]
        right = [
            any(qa.exact_match(encode(text), answer) for answer in answers)
            for text in self._texts[number]
        ]
        found = stack[:, 0] @ np.array(right, float)
        return found[None][: int(found.any())]

    def answer(self, number: int, mixed: np.ndarray) -> dict[str, Any]:
        texts = self._texts[number]
        best = [
            {"answer": texts[i], "probability": float(mixed[0, i])}
            for i in np.argsort(-mixed[0], kind="stable")
        ]
        return {"id": self._examples[number].key, **best[0], "n_best": best}

    def score(self, mixed: Sequence[np.ndarray]) -> System:
        """By the task's script, whose figures are means over questions."""
        texts = {
            question.key: self._texts[i][int(mixed[i].argmax())]
            for i, question in enumerate(self._examples)
        }
        questions, texts = encode_answers(
            self._task.match, self._examples, texts
        )
        of_squad = self._task.version == "squad1"
        evaluate = qa.evaluate_squad1 if of_squad else qa.evaluate_mrqa
        values = [  # Questions without answers are not scored.
            evaluate([question], texts)[self.figure]
            if question.answers
            else math.nan
            for question in questions
        ]
        return System(
            evaluate(questions, texts),
            lambda rows: float(np.nanmean(np.array(values)[rows])),
        )


def members_of(task: Task, split: str, paths: Sequence[str]) -> Members:
    """Reads the predictions of a task's split."""
    for task_class, kind in (
        (QATask, _Answers),
        (RegressionTask, _Numbers),
        (TaggingTask, _Tags),
        (ClassificationTask, Members),
    ):
        several = isinstance(task, MultiLabelTask) or getattr(task, "v2", False)
        if isinstance(task, task_class) and not several:
            return kind(task, split, paths)
    raise UserError(
        f"task {task.name}: there are ensembles of classes, numbers, tags and"
        " answers, not of several labels, summaries, or questions that may"
        " have no answer"
    )


def answer_of(
    answerer: Answerer, example: Any, found: np.ndarray
) -> dict[str, Any]:
    """A model's [units, columns] as `predict` writes them."""
    logits = np.log(np.maximum(found, _TINY))
    outputs = {"logits": logits, "n_words": len(found)}
    asked = example
    if isinstance(example, TaggingExample):
        asked = answerer.example({"words": example.words}, 0)
    else:
        outputs = {"logits": logits[0], "predictions": found[0, 0]}
    return {"line": example.line, **answerer.answer(asked, outputs)}


def _rows(path: str) -> Iterator[tuple[str, Row]]:
    """Where each prediction stands, and what it is."""
    if path.endswith(".json"):  # An evaluation's: id -> best answers.
        for key, best in read_json(path).items():
            yield f"{path}: question {key}", {"id": key, "n_best": best}
        return
    for line, row in tables.read_objects(path):
        yield f"{path}:{line}", row


def _is_same_id(first: Any, second: Any) -> bool:
    key = values.as_id(first)
    return first == second or (key is not None and key == values.as_id(second))


def _number(value: Any, name: str) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise _BadRowError(f"{name} {value!r}", "a finite number")
    return float(value)


def _probability(value: Any, label: str) -> float:
    share = _number(value, f"{label}:")
    if not 0 <= share <= 1 + _ROUNDING:
        raise _BadRowError(f"{label}: {value!r}", "a probability from 0 to 1")
    return share


def _shares(given: Any, labels: Sequence[str]) -> list[float]:
    """Checked probabilities, in the order of the labels."""
    if not isinstance(given, Mapping) or set(given) != set(labels):
        found = join_names(given, 12) if isinstance(given, Mapping) else given
        expected = f"those of the labels {join_names(labels, 12)}"
        raise _BadRowError(f"probabilities of {found}", expected)
    shares = [_probability(given[label], label) for label in labels]
    if abs(sum(shares) - 1) > _ROUNDING:
        found = f"probabilities whose sum is {sum(shares):g}"
        raise _BadRowError(found, "a sum of 1")
    return shares


# Members together.


def mix(stacks: Sequence[np.ndarray], weights: np.ndarray) -> list[np.ndarray]:
    """Means; `weights` are [members], or [examples, members]; any scale."""
    weights = weights / weights.sum(-1, keepdims=True)
    own = np.broadcast_to(weights, [len(stacks), len(stacks[0])])
    return [np.tensordot(w, s, 1) for w, s in zip(own, stacks, strict=True)]


def fit_weights(truth: np.ndarray, squared: bool) -> np.ndarray:
    """Weights (none negative, sum 1) [members] that fit [n, members] best."""
    if not len(truth):
        raise UserError("no member lists a right answer; nothing can be fitted")

    def loss(weights: np.ndarray) -> float:
        mixed = truth @ weights
        if squared:
            return np.mean(mixed**2)
        return -np.mean(np.log(np.maximum(mixed, _TINY)))

    count = truth.shape[1]
    found = optimize.minimize(
        loss,
        np.full(count, 1 / count),
        method="SLSQP",
        bounds=[(0, 1)] * count,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
    )
    weights = np.clip(found.x, 0, 1)
    return weights / weights.sum()


def cross_fit(
    members: Members, folds: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weights fitted to all [members], and to the other folds [n, members]."""
    n, squared = len(members.stacks), members.squared
    if n < folds:
        raise UserError(f"--folds={folds}: {members.name} has {n} examples")
    truths = [members.truth(i, s) for i, s in enumerate(members.stacks)]
    fold = np.random.default_rng(seed).permutation(n) % folds
    own = np.empty([n, len(members.stacks[0])])
    for number in range(folds):
        others = [truths[i] for i in np.flatnonzero(fold != number)]
        own[fold == number] = fit_weights(np.concatenate(others), squared)
    return fit_weights(np.concatenate(truths), squared), own


def compare(
    systems: Mapping[str, System],
    files: Sequence[str],
    figure: str,
    draws: np.ndarray,
) -> dict[str, Any]:
    """Each mixture's gains over the mean and the best of the files.

    Standard errors are of paired differences; `draws` [resamples, examples]
    are the examples of each resample, by place.
    """
    values = {name: one.figures[figure] for name, one in systems.items()}
    sampled = {
        name: np.array([system.on(rows) for rows in draws])
        for name, system in systems.items()
    }
    sign = -1 if lower_is_better(figure) else 1
    best = max(files, key=lambda path: sign * values[path])
    mean = float(np.mean([values[path] for path in files]))
    means = np.mean([sampled[path] for path in files], axis=0)

    def gain(name: str, of: float, draws: np.ndarray) -> list[float]:
        """Of a system over another, with the standard error."""
        spread = np.std(sampled[name] - draws, ddof=1)
        return [sign * (values[name] - of), float(spread)]

    own = {
        name: {
            "figures": systems[name].figures,
            "over_mean": gain(name, mean, means),
            "over_best": gain(name, values[best], sampled[best]),
        }
        for name in systems
    }
    return {"best_file": best, "mean_file": mean, "systems": own}
