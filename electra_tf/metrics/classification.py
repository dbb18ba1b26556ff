# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scorers of tasks with one class, one number or several labels per text.

Source: google-research/electra, finetune/classification/
classification_metrics.py.

scipy and scikit-learn are imported in the methods that need them, because these
imports take a second.
"""

from __future__ import annotations

import collections
import math
import warnings
from collections.abc import Iterable, Sequence

import numpy as np

from electra_tf.metrics.scorers import (
    Metrics,
    Row,
    Scorer,
    compute_accuracy,
    compute_f1,
)

# Predictions count as equal if their standard deviation, divided by the
# standard deviation of the targets, is smaller than this value.
_NO_SPREAD = 1e-4


class SentenceLevelScorer(Scorer):
    """Base class of scorers that score each example as a whole."""

    _row_attributes = ("_true_labels", "_preds")

    def __init__(self, n_classes: int = 2) -> None:
        super().__init__()
        self._n_classes = n_classes
        self._true_labels: list = []  # numbers, or lists of numbers
        self._preds: list = []

    def update(self, results: Row) -> None:
        """Add an example: `loss`, `predictions`, and `label_ids` or `targets`.

        Classification has `label_ids`, regression has `targets`.
        """
        super().update(results)
        self._total_loss += float(results["loss"])
        key = "label_ids" if "label_ids" in results else "targets"
        self._true_labels.append(np.asarray(results[key]).tolist())
        self._preds.append(np.asarray(results["predictions"]).tolist())

    def get_loss(self) -> float:
        """Return the mean loss per example."""
        return self._total_loss / len(self._true_labels)

    def single_prediction(self) -> int | float | list[str] | None:
        if len(set(self._true_labels)) > 1 and len(set(self._preds)) == 1:
            return self._preds[0]
        return None

    def baselines(self) -> dict[str, dict[str, float]]:
        majority = collections.Counter(self._true_labels).most_common(1)[0][0]
        return {
            # Predicting each class once for each example gives the metrics of
            # uniform guessing without random numbers.
            "chance": self._metrics_of_answers(range(self._n_classes)),
            "majority": self._metrics_of_answers([majority]),
        }

    def _metrics_of_answers(
        self, answers: Sequence[int | tuple[int, ...]]
    ) -> dict[str, float]:
        """Return the metrics of predicting each answer once per example."""
        return self._metrics_of(
            {"label_ids": label, "predictions": np.asarray(answer)}
            for answer in answers
            for label in self._true_labels
        )

    def _accuracy(self) -> float:
        return compute_accuracy(self._true_labels, self._preds)

    def _class_f1(self, positive: int) -> Metrics:
        pairs = list(zip(self._true_labels, self._preds, strict=True))
        return compute_f1(
            sum(label == pred == positive for label, pred in pairs),
            sum(pred == positive for _, pred in pairs),
            sum(label == positive for label, _ in pairs),
        )


class AccuracyScorer(SentenceLevelScorer):
    """Scorer of accuracy: the percentage of examples with a correct class."""

    def __init__(self, n_classes: int = 2) -> None:
        super().__init__(n_classes)
        self.metric_names = ("accuracy", "loss")
        if n_classes == 2:
            self.metric_names += ("precision", "recall", "f1")

    def _get_results(self) -> Metrics:
        return [("accuracy", self._accuracy()), ("loss", self.get_loss())]

    def get_details(self) -> Metrics:
        """Return precision, recall and F1 of class 1 if two classes exist."""
        return self._class_f1(1) if "f1" in self.metric_names else []


class F1Scorer(SentenceLevelScorer):
    """Scorer of precision, recall and F1 of class 1.

    Differs: the original reports precision under all three names.
    """

    metric_names: tuple[str, ...] = (
        "precision",
        "recall",
        "f1",
        "loss",
        "accuracy",
    )

    def _get_results(self) -> Metrics:
        return [*self._class_f1(1), ("loss", self.get_loss())]

    def get_details(self) -> Metrics:
        """Return the accuracy as a further metric."""
        return [("accuracy", self._accuracy())]


class MCCScorer(F1Scorer):
    """Scorer of the Matthews correlation coefficient, times 100."""

    metric_names = ("mcc", "loss", "accuracy")

    def _get_results(self) -> Metrics:
        from sklearn import metrics

        mcc = metrics.matthews_corrcoef(self._true_labels, self._preds)
        return [("mcc", 100.0 * float(mcc)), ("loss", self.get_loss())]


class RegressionScorer(SentenceLevelScorer):
    """Scorer of the mean squared error, and of correlations times 100.

    Undefined correlations are NaN.
    """

    metric_names = ("pearson", "spearman", "mse", "loss")

    def _get_results(self) -> Metrics:
        from scipy import stats

        # The arrays have single precision, as in the original, because the last
        # digits of the metrics depend on the precision.
        targets = np.array(self._true_labels, np.float32)
        predictions = np.array(self._preds, np.float32).flatten()
        pearson = spearman = math.nan
        if len(targets) > 1:
            with warnings.catch_warnings():
                # Constant input has no correlation. The result is NaN, so
                # scipy's warning is not needed.
                warnings.simplefilter("ignore")
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
    """Scorer of tasks with several labels per text: F1 and exact match.

    Differs: the original has no such task.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__()
        self._labels = list(labels)
        self.metric_names = ("micro_f1", "macro_f1", "exact_match", "loss")
        self.metric_names += tuple(f"f1_{label}" for label in labels)

    def _get_results(self) -> Metrics:
        labels, predictions = self._arrays()
        exact = np.mean(np.all(labels == predictions, axis=1))
        return [
            ("micro_f1", 100.0 * float(self._f1("micro"))),
            ("macro_f1", 100.0 * float(self._f1("macro"))),
            ("exact_match", 100.0 * float(exact)),
            ("loss", self.get_loss()),
        ]

    def get_details(self) -> Metrics:
        """Return the F1 of each label."""
        values = np.ravel(self._f1(None))
        return [
            (f"f1_{name}", 100.0 * float(value))
            for name, value in zip(self._labels, values, strict=True)
        ]

    def single_prediction(self) -> list[str] | None:
        labels, predictions = self._arrays()
        differ = (predictions != predictions[0]).any()
        if differ or (labels == labels[0]).all():
            return None
        return [self._labels[i] for i in np.flatnonzero(predictions[0])]

    def baselines(self) -> dict[str, dict[str, float]]:
        counts = collections.Counter(map(tuple, self._true_labels))
        majority = counts.most_common(1)[0][0]
        shape = (len(self._true_labels), len(self._labels))
        drawn = np.random.RandomState(0).randint(0, 2, shape)
        return {
            "chance": self._metrics_of(self._rows_of(drawn)),
            "majority": self._metrics_of_answers([majority]),
        }

    def _rows_of(self, predictions: np.ndarray) -> Iterable[Row]:
        """Yield a row per example: its labels and the given predictions."""
        for labels, answer in zip(self._true_labels, predictions, strict=True):
            yield {"label_ids": labels, "predictions": answer}

    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self._true_labels), np.array(self._preds)

    def _f1(self, average: str | None) -> np.ndarray:
        from sklearn import metrics

        # A column of zeros is appended, because scikit-learn would treat a
        # single column as two classes.
        labels, predictions = (
            np.pad(array, ((0, 0), (0, 1))) for array in self._arrays()
        )
        return metrics.f1_score(
            labels,
            predictions,
            labels=range(len(self._labels)),
            average=average,
            zero_division=0,
        )
