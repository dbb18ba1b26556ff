# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figures of tasks with a label per text or per word; statistics over trials.

Source: google-research/electra, finetune/scorer.py, finetune/classification/
classification_metrics.py, finetune/tagging/tagging_metrics.py.

scipy, scikit-learn and seqeval are imported where a figure needs them: a
second that no start of a run has to wait for.
"""

import abc
import collections
import copy
import dataclasses
import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from configure.config import lower_is_better
from configure.errors import aligned
from electra_tf.text.words import read_spans, split_tag

Figures = list[tuple[str, float]]

# A detail: how many documents or questions were measured by words of any
# script (or by characters), and not by a script for English.
ANY_SCRIPT = "any_script"

# Below this spread, relative to the targets', predictions count as one number.
_NO_SPREAD = 1e-4
# seqeval takes what stands before a dash for no part of the type.
_DASH = "\N{HYPHEN}"


class Scorer(abc.ABC):
    """Collects a task's predictions one by one; makes figures of them, once."""

    # Names of all, details among them; empty where only results show them.
    figures: tuple[str, ...] = ()
    # Attributes with an entry for each row.
    _of_rows: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._updated = False
        self._cached_results: Figures = []

    @abc.abstractmethod
    def update(self, results: Mapping[str, Any]) -> None:
        """Takes the head's outputs for a row; subclasses call it, too."""
        self._updated = True

    @abc.abstractmethod
    def _get_results(self) -> Figures:
        """Computes the figures; `get_results` remembers them."""

    def get_results(self) -> Figures:
        if self._updated:
            self._cached_results = self._get_results()
            self._updated = False
        return list(self._cached_results)

    def get_details(self) -> Figures:
        """Figures beyond the original's, for the console and the JSON file."""
        return []

    def files(self) -> Mapping[str, Any]:
        """What an evaluation leaves besides its figures: kind -> JSON value."""
        return {}

    def single_prediction(self) -> Any | None:
        """What a collapsed model says of every example; None for others."""
        return None

    def baselines(self) -> dict[str, dict[str, float]]:
        """Return the figures of answers that no model makes, by kind.

        `majority`: the most frequent label for every example; `chance`: labels
        drawn uniformly. Undefined figures and losses are left out.
        """
        return {}

    def _figures_of(self, rows: Iterable[Mapping[str, Any]]) -> dict:
        """Return the defined figures of other rows (`loss` not needed)."""
        scorer = copy.copy(self)
        for name in self._of_rows:
            setattr(scorer, name, [])
        for row in rows:
            scorer.update({"loss": math.nan, **row})
        figures = dict(scorer.get_results() + scorer.get_details())
        return {n: v for n, v in figures.items() if math.isfinite(v)}

    def of_rows(self, rows: Sequence[int]) -> "Scorer":
        """The same of some rows, each any number of times; losses are NaN."""
        found = copy.copy(self)
        found._updated, found._total_loss = True, math.nan
        for name in self._of_rows:
            values = getattr(self, name)
            setattr(found, name, [values[row] for row in rows])
        return found

    def results_str(self) -> str:
        """The figures on one line, `name: 12.34 - name: 5.60`."""
        return " - ".join(
            f"{name}: {value:.2f}" for name, value in self.get_results()
        )


# One class, one number or several labels per text.


class SentenceLevelScorer(Scorer):
    """Collects one label (or number) and one prediction per example."""

    _of_rows = ("_true_labels", "_preds")

    def __init__(self, n_classes: int = 2) -> None:
        super().__init__()
        self._n_classes = n_classes
        self._total_loss = 0.0
        self._true_labels: list[Any] = []
        self._preds: list[Any] = []

    def update(self, results: Mapping[str, Any]) -> None:
        """Takes in `loss`, `predictions`, and `label_ids` or `targets`."""
        super().update(results)
        self._total_loss += float(results["loss"])
        key = "label_ids" if "label_ids" in results else "targets"
        self._true_labels.append(np.asarray(results[key]).tolist())
        self._preds.append(np.asarray(results["predictions"]).tolist())

    def get_loss(self) -> float:
        return self._total_loss / len(self._true_labels)

    def single_prediction(self) -> Any | None:
        if len(set(self._true_labels)) > 1 and len(set(self._preds)) == 1:
            return self._preds[0]
        return None

    def baselines(self) -> dict[str, dict[str, float]]:
        majority = collections.Counter(self._true_labels).most_common(1)[0][0]
        return {
            # With every class once for each example, chance is exact.
            "chance": self._answered(range(self._n_classes)),
            "majority": self._answered([majority]),
        }

    def _answered(self, answers: Sequence[Any]) -> dict[str, float]:
        return self._figures_of(
            {"label_ids": label, "predictions": answer}
            for answer in answers
            for label in self._true_labels
        )

    def _accuracy(self) -> float:
        return _accuracy(self._true_labels, self._preds)

    def _class_f1(self, positive: int) -> Figures:
        pairs = list(zip(self._true_labels, self._preds, strict=True))
        return _f1_figures(
            sum(true == found == positive for true, found in pairs),
            sum(found == positive for _, found in pairs),
            sum(true == positive for true, _ in pairs),
        )


class AccuracyScorer(SentenceLevelScorer):
    """Share of examples whose class is right, in percent."""

    def __init__(self, n_classes: int = 2) -> None:
        super().__init__(n_classes)
        self.figures = ("accuracy", "loss")
        if n_classes == 2:
            self.figures += ("precision", "recall", "f1")

    def _get_results(self) -> Figures:
        return [("accuracy", self._accuracy()), ("loss", self.get_loss())]

    def get_details(self) -> Figures:
        """F1 of class 1, where there are two classes."""
        return self._class_f1(1) if "f1" in self.figures else []


class F1Scorer(SentenceLevelScorer):
    """Precision, recall and F1 of class 1; the original: precision thrice."""

    figures = ("precision", "recall", "f1", "loss", "accuracy")

    def _get_results(self) -> Figures:
        return [*self._class_f1(1), ("loss", self.get_loss())]

    def get_details(self) -> Figures:
        return [("accuracy", self._accuracy())]


class MCCScorer(F1Scorer):
    """Matthews correlation coefficient, times 100."""

    figures = ("mcc", "loss", "accuracy")

    def _get_results(self) -> Figures:
        from sklearn import metrics

        mcc = metrics.matthews_corrcoef(self._true_labels, self._preds)
        return [("mcc", 100.0 * float(mcc)), ("loss", self.get_loss())]


class RegressionScorer(SentenceLevelScorer):
    """Correlations, times 100 (NaN where undefined), and mean squared error."""

    figures = ("pearson", "spearman", "mse", "loss")

    def _get_results(self) -> Figures:
        from scipy import stats

        # As the original's arrays are: single precision shows in the figures.
        targets = np.array(self._true_labels, np.float32)
        predictions = np.array(self._preds, np.float32).flatten()
        pearson = spearman = math.nan
        if len(targets) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Constant input: NaN says it.
                pearson = stats.pearsonr(targets, predictions)[0]
                spearman = stats.spearmanr(targets, predictions)[0]
        return [
            ("pearson", 100.0 * float(pearson)),
            ("spearman", 100.0 * float(spearman)),
            ("mse", float(np.mean(np.square(targets - predictions)))),
            ("loss", self.get_loss()),
        ]

    def baselines(self) -> dict[str, dict[str, float]]:
        """Return the correlations that are expected by chance."""
        return {"chance": {"pearson": 0.0, "spearman": 0.0}}

    def single_prediction(self) -> float | None:
        spread = float(np.std(self._true_labels))
        if spread and np.std(self._preds) < _NO_SPREAD * spread:
            return float(np.mean(self._preds))
        return None


class MultiLabelScorer(SentenceLevelScorer):
    """F1 over any number of labels per text, and exact matches, in percent.

    Differs: the original has no such task.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__()
        self._labels = list(labels)
        self.figures = ("micro_f1", "macro_f1", "exact_match", "loss")
        self.figures += tuple(f"f1_{label}" for label in labels)

    def _get_results(self) -> Figures:
        true, predicted = self._arrays()
        exact = np.mean(np.all(true == predicted, axis=1))
        return [
            ("micro_f1", 100.0 * float(self._f1("micro"))),
            ("macro_f1", 100.0 * float(self._f1("macro"))),
            ("exact_match", 100.0 * float(exact)),
            ("loss", self.get_loss()),
        ]

    def get_details(self) -> Figures:
        values = np.ravel(self._f1(None))
        return [
            (f"f1_{name}", 100.0 * float(value))
            for name, value in zip(self._labels, values, strict=True)
        ]

    def single_prediction(self) -> list[str] | None:
        true, predicted = self._arrays()
        if (true == true[0]).all() or not (predicted == predicted[0]).all():
            return None
        return [self._labels[i] for i in np.flatnonzero(predicted[0])]

    def baselines(self) -> dict[str, dict[str, float]]:
        counts = collections.Counter(map(tuple, self._true_labels))
        majority = counts.most_common(1)[0][0]
        shape = (len(self._true_labels), len(self._labels))
        drawn = np.random.RandomState(0).randint(0, 2, shape)
        return {
            "chance": self._figures_of(
                {"label_ids": labels, "predictions": answer}
                for labels, answer in zip(self._true_labels, drawn, strict=True)
            ),
            "majority": self._answered([majority]),
        }

    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self._true_labels), np.array(self._preds)

    def _f1(self, average: str | None) -> Any:
        from sklearn import metrics

        # A single column would be taken for two classes.
        both = (np.pad(a, ((0, 0), (0, 1))) for a in self._arrays())
        own = {"labels": range(len(self._labels)), "average": average}
        return metrics.f1_score(*both, **own, zero_division=0)


# A label per word.


class WordLevelScorer(Scorer):
    """Collects the labels and predictions of each sentence's words.

    The reported `loss` is the original's, which adds every loss twice;
    `loss_per_word`, among the details, adds it once.
    """

    _of_rows = ("_labels", "_preds")

    def __init__(self) -> None:
        super().__init__()
        self._total_loss = 0.0
        self._total_words = 0
        self._labels: list[list[int]] = []
        self._preds: list[list[int]] = []

    def update(self, results: Mapping[str, Any]) -> None:
        """Takes in one sentence: `loss`, a scalar, and of [L] the others.

        `labels`, `predictions` and `labels_mask` are dense from index 0: the
        mask's sum is the number of words.
        """
        super().update(results)
        n_words = round(float(np.sum(results["labels_mask"])))
        labels, preds = results["labels"], results["predictions"]
        self._labels.append(np.asarray(labels)[:n_words].tolist())
        self._preds.append(np.asarray(preds)[:n_words].tolist())
        self._total_loss += float(np.sum(results["loss"]))
        self._total_words += n_words

    def get_loss(self) -> float:
        """Twice the mean loss of a word, as the original reports it."""
        return 2 * self._total_loss / max(1, self._total_words)

    def get_details(self) -> Figures:
        return [("loss_per_word", self._total_loss / max(1, self._total_words))]

    def single_prediction(self) -> int | None:
        labels = {label for sentence in self._labels for label in sentence}
        given = {label for sentence in self._preds for label in sentence}
        return given.pop() if len(labels) > 1 and len(given) == 1 else None

    def baselines(self) -> dict[str, dict[str, float]]:
        counts = collections.Counter(itertools.chain(*self._labels))
        if not counts:
            return {}
        majority = counts.most_common(1)[0][0]
        tags, random = self._tag_ids(), np.random.RandomState(0)
        return {
            "chance": self._answered(lambda n: random.choice(tags, n)),
            "majority": self._answered(lambda n: np.full(n, majority)),
        }

    def _answered(self, answer: Callable[[int], np.ndarray]) -> dict:
        return self._figures_of(
            {
                "labels": labels,
                "predictions": answer(len(labels)),
                "labels_mask": np.ones(len(labels)),
            }
            for labels in self._labels
        )

    def _tag_ids(self) -> list[int]:
        return sorted({label for labels in self._labels for label in labels})

    def _accuracy(self) -> float:
        chain = itertools.chain.from_iterable
        return _accuracy(list(chain(self._labels)), list(chain(self._preds)))


class WordAccuracyScorer(WordLevelScorer):
    """Share of words whose label is right, in percent."""

    figures = ("accuracy", "loss", "loss_per_word")

    def _get_results(self) -> Figures:
        return [("accuracy", self._accuracy()), ("loss", self.get_loss())]


class EntityLevelF1Scorer(WordLevelScorer):
    """Precision, recall and F1 of whole spans, in percent.

    A span counts when its words and its type are right. Spans of a sentence
    are sets, read as the original reads them: an I of another type goes on,
    and the span has the type of its last word. Among the details are the
    figures of conlleval, the script of the CoNLL tasks, where it begins anew.
    """

    _of_rows = ("_labels", "_preds", "_counts")

    def __init__(self, label_mapping: Mapping[str, int]) -> None:
        super().__init__()
        self._names = {v: k for k, v in label_mapping.items()}
        names = ("precision", "recall", "f1")
        self.figures = (*names, *(f"conlleval_{name}" for name in names))
        self.figures += ("loss", "word_accuracy", "loss_per_word")
        # Of each sentence the spans that are right, predicted and expected.
        self._counts: list[tuple[int, int, int]] = []

    def update(self, results: Mapping[str, Any]) -> None:
        super().update(results)
        gold = set(read_spans(self._tags(self._labels[-1])))
        found = set(read_spans(self._tags(self._preds[-1])))
        self._counts.append((len(gold & found), len(found), len(gold)))

    def _get_results(self) -> Figures:
        counts = np.sum([(0, 0, 0), *self._counts], axis=0).tolist()
        return [*_f1_figures(*counts), ("loss", self.get_loss())]

    def get_details(self) -> Figures:
        from seqeval import metrics

        true = [self._iob_tags(labels) for labels in self._labels]
        predicted = [self._iob_tags(preds) for preds in self._preds]
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Nothing predicted: 0 says it.
            for name in ("precision", "recall", "f1"):
                score = getattr(metrics, f"{name}_score")
                value = score(true, predicted, zero_division=0)
                found.append((f"conlleval_{name}", 100.0 * float(value)))
        found.append(("word_accuracy", self._accuracy()))
        return found + super().get_details()

    def _tag_ids(self) -> list[int]:
        return sorted(self._names)

    def _tags(self, ids: list[int]) -> list[str]:
        return [self._names[i] for i in ids]

    def _iob_tags(self, ids: list[int]) -> list[str]:
        """Tags as conlleval takes them: it knows no S, and an E by itself."""
        tags = []
        for tag in self._tags(ids):
            letter, span_type = split_tag(tag)
            letter = {"S": "B", "E": "I"}.get(letter, letter)
            if span_type:
                letter += "-" + span_type.replace("-", _DASH)
            tags.append(letter)
        return tags


def _accuracy(true: Sequence[Any], predicted: Sequence[Any]) -> float:
    right = sum(t == p for t, p in zip(true, predicted, strict=True))
    return 100.0 * right / max(1, len(true))


def _f1_figures(n_correct: int, n_predicted: int, n_gold: int) -> Figures:
    """Precision, recall and F1 in percent; all 0 where nothing is right."""
    precision = recall = f1 = 0.0
    if n_correct:
        precision = 100.0 * n_correct / n_predicted
        recall = 100.0 * n_correct / n_gold
        f1 = 2 * precision * recall / (precision + recall)
    return [("precision", precision), ("recall", recall), ("f1", f1)]


# What several trials of one fine-tuning say together.

# One trial: task -> figure -> value.
TrialResults = Mapping[str, Mapping[str, float]]


@dataclasses.dataclass(frozen=True)
class Statistics:
    """One figure over all trials; NaN stays in `values`, and counts nowhere."""

    values: tuple[float, ...]  # one a trial, in the order of the trials
    mean: float
    median: float
    std: float  # sample standard deviation (n - 1); 0 for a single value
    best: float  # the highest; for losses and errors the lowest
    best_index: int | None  # its place among `values`, from 0
    undefined: int  # number of undefined values

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values for JSON, undefined ones as None."""
        plain = dataclasses.asdict(self)
        plain["values"] = [finite(value) for value in self.values]
        for name in ("mean", "median", "std", "best"):
            plain[name] = finite(plain[name])
        return plain


def main_figure(names: Sequence[str], wanted: str | None = None) -> str:
    """How trials are compared: as is wanted, else F1, else the first."""
    if wanted in names:
        return wanted
    return "f1" if "f1" in names else names[0]


def describe(values: Sequence[float], lower: bool = False) -> Statistics:
    """Statistics of one figure."""
    defined = [v for v in values if math.isfinite(v)]
    best, best_index = math.nan, None
    if defined:
        best = min(defined) if lower else max(defined)
        best_index = list(values).index(best)
    return Statistics(
        values=tuple(float(v) for v in values),
        mean=float(np.mean(defined)) if defined else math.nan,
        median=float(np.median(defined)) if defined else math.nan,
        std=float(np.std(defined, ddof=1)) if len(defined) > 1 else 0.0,
        best=float(best),
        best_index=best_index,
        undefined=len(values) - len(defined),
    )


def summarize(
    trials: Sequence[TrialResults],
) -> dict[str, dict[str, Statistics]]:
    """Task -> figure -> statistics, in the order of the first trial."""
    if not trials:
        return {}
    return {
        task: {
            name: describe(
                [trial[task][name] for trial in trials], lower_is_better(name)
            )
            for name in figures
            if all(name in trial[task] for trial in trials)
        }
        for task, figures in trials[0].items()
    }


def best_trial(
    trials: Sequence[TrialResults], metrics: Mapping[str, str | None]
) -> int | None:
    """The place, from 0, of the trial with the best mean of main figures.

    `metrics`: task -> the figure that its description names.
    """
    scores = []
    for trial in trials:
        mains = []
        for task, figures in trial.items():
            name = main_figure(list(figures), metrics.get(task))
            sign = -1 if lower_is_better(name) else 1
            mains.append(sign * figures[name])
        scores.append(float(np.mean(mains)) if mains else math.nan)
    return describe(scores).best_index


def table_lines(summary: Mapping[str, Mapping[str, Statistics]]) -> list[str]:
    """The statistics as an aligned table."""
    rows = [["task", "figure", "mean", "median", "std", "best", "values"]]
    for task, figures in summary.items():
        for name, found in figures.items():
            numbers = (found.mean, found.median, found.std, found.best)
            texts = [f"{number:.2f}" for number in numbers]
            values = " ".join(f"{value:.2f}" for value in found.values)
            rows.append([task, name, *texts, values])
    lines = aligned([row[:-1] for row in rows])
    return [f"{line}  {row[-1]}" for line, row in zip(lines, rows, strict=True)]


def finite(value: float) -> float | None:
    """A number for JSON; None where it is undefined."""
    return value if math.isfinite(value) else None


def of_json(values: Iterable[float | None]) -> list[float]:
    """The inverse of `finite`."""
    return [math.nan if value is None else value for value in values]
