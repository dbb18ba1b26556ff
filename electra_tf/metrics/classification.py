# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores of tasks with one class, one number or several labels per text.

Source: google-research/electra, finetune/classification/
classification_metrics.py.
"""

import abc
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats
from sklearn import metrics

from electra_tf.metrics.scorer import Scorer

# Below this spread, relative to the targets', predictions count as one number.
_NO_SPREAD = 1e-4


class SentenceLevelScorer(Scorer):
    """Collects one label (or number) and one prediction per example."""

    def __init__(self) -> None:
        super().__init__()
        self._total_loss = 0.0
        self._true_labels: list[Any] = []
        self._preds: list[Any] = []

    def update(self, results: Mapping[str, Any]) -> None:
        """Takes in one example.

        Args:
            results: `loss`, `predictions`, and `label_ids` or `targets`; each
                a scalar.
        """
        super().update(results)
        self._total_loss += float(results["loss"])
        key = "label_ids" if "label_ids" in results else "targets"
        self._true_labels.append(np.asarray(results[key]).tolist())
        self._preds.append(np.asarray(results["predictions"]).tolist())

    def get_loss(self) -> float:
        """Mean loss of an example."""
        return self._total_loss / len(self._true_labels)

    def single_prediction(self) -> Any | None:
        """The one class predicted throughout, though there are several."""
        if len(set(self._true_labels)) > 1 and len(set(self._preds)) == 1:
            return self._preds[0]
        return None

    @abc.abstractmethod
    def _get_results(self) -> list[tuple[str, float]]:
        """See `Scorer`."""


class AccuracyScorer(SentenceLevelScorer):
    """Share of examples whose class is right, in percent."""

    def _get_results(self) -> list[tuple[str, float]]:
        return [
            ("accuracy", _accuracy(self._true_labels, self._preds)),
            ("loss", self.get_loss()),
        ]

    def get_details(self) -> list[tuple[str, float]]:
        """F1 of class 1, where there are two classes."""
        if not set(self._true_labels) | set(self._preds) <= {0, 1}:
            return []
        return _precision_recall_f1(self._true_labels, self._preds, 1)


class F1Scorer(SentenceLevelScorer):
    """Precision, recall and F1 of one class, in percent.

    Differs: the original always does the latter (none of its tasks uses it).
    """

    def __init__(
        self, positive_label: int = 1, original_recall: bool = False
    ) -> None:
        super().__init__()
        self._positive_label = positive_label
        self._original_recall = original_recall

    def _get_results(self) -> list[tuple[str, float]]:
        figures = _precision_recall_f1(
            self._true_labels, self._preds, self._positive_label
        )
        if self._original_recall:
            precision = figures[0][1]
            figures = [(name, precision) for name, _ in figures]
        return [*figures, ("loss", self.get_loss())]

    def get_details(self) -> list[tuple[str, float]]:
        """Accuracy beside it."""
        return [("accuracy", _accuracy(self._true_labels, self._preds))]


class MCCScorer(SentenceLevelScorer):
    """Matthews correlation coefficient, times 100."""

    def _get_results(self) -> list[tuple[str, float]]:
        mcc = metrics.matthews_corrcoef(self._true_labels, self._preds)
        return [("mcc", 100.0 * float(mcc)), ("loss", self.get_loss())]

    def get_details(self) -> list[tuple[str, float]]:
        """Accuracy beside it."""
        return [("accuracy", _accuracy(self._true_labels, self._preds))]


class RegressionScorer(SentenceLevelScorer):
    """Correlations, times 100, and mean squared error.

    Where all predictions are the same number the correlations are NaN.
    """

    def _get_results(self) -> list[tuple[str, float]]:
        # As the original's arrays are: single precision shows in the figures.
        targets = np.array(self._true_labels, np.float32)
        predictions = np.array(self._preds, np.float32).flatten()
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

    def single_prediction(self) -> float | None:
        """The one number predicted throughout, though targets differ."""
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

    def _get_results(self) -> list[tuple[str, float]]:
        true, predicted = self._arrays()

        def f1(average: str) -> float:
            return 100.0 * float(
                metrics.f1_score(
                    true, predicted, average=average, zero_division=0
                )
            )

        exact = np.mean(np.all(true == predicted, axis=1))
        return [
            ("micro_f1", f1("micro")),
            ("macro_f1", f1("macro")),
            ("exact_match", 100.0 * float(exact)),
            ("loss", self.get_loss()),
        ]

    def get_details(self) -> list[tuple[str, float]]:
        """F1 of each label."""
        true, predicted = self._arrays()
        values = metrics.f1_score(
            true, predicted, average=None, zero_division=0
        )
        return [
            (f"f1_{name}", 100.0 * float(value))
            for name, value in zip(self._labels, np.ravel(values), strict=True)
        ]

    def single_prediction(self) -> list[str] | None:
        """The labels given to every text, though the right ones differ."""
        true, predicted = self._arrays()
        if (true == true[0]).all() or not (predicted == predicted[0]).all():
            return None
        return [self._labels[i] for i in np.flatnonzero(predicted[0])]

    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self._true_labels), np.array(self._preds)


def _accuracy(true: Sequence[Any], predicted: Sequence[Any]) -> float:
    right = sum(t == p for t, p in zip(true, predicted, strict=True))
    return 100.0 * right / len(true)


def _precision_recall_f1(
    true: Sequence[Any], predicted: Sequence[Any], positive: int
) -> list[tuple[str, float]]:
    n_correct = sum(
        t == p == positive for t, p in zip(true, predicted, strict=True)
    )
    n_predicted = sum(p == positive for p in predicted)
    n_gold = sum(t == positive for t in true)
    return f1_figures(n_correct, n_predicted, n_gold)


def f1_figures(
    n_correct: int, n_predicted: int, n_gold: int
) -> list[tuple[str, float]]:
    """Precision, recall and F1 in percent; all 0 where nothing is right."""
    precision = recall = f1 = 0.0
    if n_correct:
        precision = 100.0 * n_correct / n_predicted
        recall = 100.0 * n_correct / n_gold
        f1 = 2 * precision * recall / (precision + recall)
    return [("precision", precision), ("recall", recall), ("f1", f1)]
