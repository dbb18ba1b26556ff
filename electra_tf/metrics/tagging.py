# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores of tasks with a label per word.

Source: google-research/electra, finetune/tagging/tagging_metrics.py.
"""

import abc
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from seqeval import metrics as seqeval_metrics

from electra_tf.metrics.classification import f1_figures
from electra_tf.metrics.scorer import Scorer
from electra_tf.text import spans

# seqeval takes what stands before a dash for no part of the type.
_DASH = "\N{HYPHEN}"


class WordLevelScorer(Scorer):
    """Collects the labels and predictions of each sentence's words.

    The reported `loss` is the original's, which adds every loss twice;
    `loss_per_word`, among the details, adds it once.
    """

    def __init__(self) -> None:
        super().__init__()
        self._total_loss = 0.0
        self._total_words = 0
        self._labels: list[list[int]] = []
        self._preds: list[list[int]] = []

    def update(self, results: Mapping[str, Any]) -> None:
        """Takes in one sentence.

        Args:
            results: `loss`, a scalar; `labels`, `predictions` and
                `labels_mask` [L], dense from index 0: the mask's sum is the
                number of words.
        """
        super().update(results)
        n_words = round(float(np.sum(results["labels_mask"])))
        self._labels.append(np.asarray(results["labels"])[:n_words].tolist())
        self._preds.append(
            np.asarray(results["predictions"])[:n_words].tolist()
        )
        self._total_loss += float(np.sum(results["loss"]))
        self._total_words += n_words

    def get_loss(self) -> float:
        """Twice the mean loss of a word, as the original reports it."""
        return 2 * self._total_loss / max(1, self._total_words)

    def get_details(self) -> list[tuple[str, float]]:
        """The mean loss of a word."""
        mean = self._total_loss / max(1, self._total_words)
        return [("loss_per_word", mean)]

    def single_prediction(self) -> int | None:
        """The one label given to every word, though there are several."""
        labels = {label for sentence in self._labels for label in sentence}
        given = {label for sentence in self._preds for label in sentence}
        return given.pop() if len(labels) > 1 and len(given) == 1 else None

    @abc.abstractmethod
    def _get_results(self) -> list[tuple[str, float]]:
        """See `Scorer`."""

    def _accuracy(self, auto_fail_label: int | None = None) -> float:
        right = sum(
            label == pred and label != auto_fail_label
            for labels, preds in zip(self._labels, self._preds, strict=True)
            for label, pred in zip(labels, preds, strict=True)
        )
        return 100.0 * right / max(1, self._total_words)


class AccuracyScorer(WordLevelScorer):
    """Share of words whose label is right, in percent."""

    def __init__(self, auto_fail_label: int | None = None) -> None:
        super().__init__()
        self._auto_fail_label = auto_fail_label

    def _get_results(self) -> list[tuple[str, float]]:
        return [
            ("accuracy", self._accuracy(self._auto_fail_label)),
            ("loss", self.get_loss()),
        ]


class EntityLevelF1Scorer(WordLevelScorer):
    """Precision, recall and F1 of whole spans, in percent.

    A span counts when its words and its type are right. Spans of a sentence
    are sets, read as the original reads them (an I of another type goes on);
    seqeval's figures, which follow the CoNLL script, are among the details.
    """

    def __init__(self, label_mapping: Mapping[str, int]) -> None:
        super().__init__()
        self._names = {v: k for k, v in label_mapping.items()}

    def _get_results(self) -> list[tuple[str, float]]:
        n_correct = n_predicted = n_gold = 0
        for labels, preds in zip(self._labels, self._preds, strict=True):
            gold = set(spans.read_spans(self._tags(labels)))
            predicted = set(spans.read_spans(self._tags(preds)))
            n_correct += len(gold & predicted)
            n_predicted += len(predicted)
            n_gold += len(gold)
        figures = f1_figures(n_correct, n_predicted, n_gold)
        return [*figures, ("loss", self.get_loss())]

    def get_details(self) -> list[tuple[str, float]]:
        """Precision, recall and F1 of seqeval, and the accuracy of words."""
        true = [self._seqeval_tags(labels) for labels in self._labels]
        predicted = [self._seqeval_tags(preds) for preds in self._preds]
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Nothing predicted: 0 says it.
            for name in ("precision", "recall", "f1"):
                score = getattr(seqeval_metrics, f"{name}_score")
                value = score(true, predicted, zero_division=0)
                found.append((f"seqeval_{name}", 100.0 * float(value)))
        return [
            *found,
            ("word_accuracy", self._accuracy()),
            *super().get_details(),
        ]

    def _tags(self, ids: list[int]) -> list[str]:
        return [self._names[i] for i in ids]

    def _seqeval_tags(self, ids: list[int]) -> list[str]:
        tags = []
        for tag in self._tags(ids):
            letter, span_type = spans.split_tag(tag)
            if span_type:
                letter += "-" + span_type.replace("-", _DASH)
            tags.append(letter)
        return tags
