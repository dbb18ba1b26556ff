# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scorers of tasks with a label per word.

Source: google-research/electra, finetune/tagging/tagging_metrics.py.

seqeval is imported in the method that needs it, because seqeval imports
scikit-learn, which takes a second.
"""

from __future__ import annotations

import collections
import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from electra_tf.metrics.scorers import (
    Metrics,
    Row,
    Scorer,
    compute_accuracy,
    compute_f1,
)
from electra_tf.text.bio_tags import read_spans, split_tag

# This character replaces dashes in the types of spans, because seqeval takes
# the text after the last dash of a tag as the type.
_DASH = "\N{HYPHEN}"


class WordLevelScorer(Scorer):
    """Base class of scorers of word labels.

    The reported `loss` is the original's, which adds each loss twice. The
    detail `loss_per_word` adds each loss once.
    """

    _row_attributes: tuple[str, ...] = ("_labels", "_preds")

    def __init__(self) -> None:
        super().__init__()
        self._total_words = 0
        self._labels: list[list[int]] = []
        self._preds: list[list[int]] = []

    def update(self, results: Row) -> None:
        """Add a sentence; `loss` is a scalar, other fields have shape [L].

        `labels`, `predictions` and `labels_mask` contain the words from index 0
        without gaps. The sum of the mask is the number of words.
        """
        super().update(results)
        n_words = round(float(np.sum(results["labels_mask"])))
        labels, preds = results["labels"], results["predictions"]
        self._labels.append(np.asarray(labels)[:n_words].tolist())
        self._preds.append(np.asarray(preds)[:n_words].tolist())
        self._total_loss += float(np.sum(results["loss"]))
        self._total_words += n_words

    def get_loss(self) -> float:
        """Return twice the mean loss per word, as the original does."""
        return 2 * self._total_loss / max(1, self._total_words)

    def get_details(self) -> Metrics:
        """Return the mean loss per word."""
        return [("loss_per_word", self._total_loss / max(1, self._total_words))]

    def single_prediction(self) -> int | None:
        labels = set(itertools.chain.from_iterable(self._labels))
        predictions = set(itertools.chain.from_iterable(self._preds))
        if len(labels) > 1 and len(predictions) == 1:
            return predictions.pop()
        return None

    def baselines(self) -> dict[str, dict[str, float]]:
        counts = collections.Counter(itertools.chain(*self._labels))
        if not counts:
            return {}
        majority = counts.most_common(1)[0][0]
        tags, random = self._tag_ids(), np.random.RandomState(0)
        chance = self._rows_of(lambda n: random.choice(tags, n))
        always = self._rows_of(lambda n: np.full(n, majority))
        return {
            "chance": self._metrics_of(chance),
            "majority": self._metrics_of(always),
        }

    def _rows_of(self, predict: Callable[[int], np.ndarray]) -> Iterable[Row]:
        """Yield the collected sentences with predictions from `predict`."""
        for labels in self._labels:
            yield {
                "labels": np.asarray(labels),
                "predictions": predict(len(labels)),
                "labels_mask": np.ones(len(labels)),
            }

    def _tag_ids(self) -> list[int]:
        return sorted(set(itertools.chain.from_iterable(self._labels)))

    def _accuracy(self) -> float:
        chain = itertools.chain.from_iterable
        return compute_accuracy(
            list(chain(self._labels)), list(chain(self._preds))
        )


class WordAccuracyScorer(WordLevelScorer):
    """Scorer of accuracy: the percentage of words with a correct label."""

    metric_names = ("accuracy", "loss", "loss_per_word")

    def _get_results(self) -> Metrics:
        return [("accuracy", self._accuracy()), ("loss", self.get_loss())]


class EntityLevelF1Scorer(WordLevelScorer):
    """Scorer of precision, recall and F1 of whole spans, in percent.

    A span is correct if its words and its type are correct. The spans of a
    sentence are a set, and are read as in the original: an I tag of a different
    type continues the span, which then has the type of its last word. The
    details include the metrics of conlleval, the script of the CoNLL tasks,
    which begins a new span at such a tag.
    """

    _row_attributes = ("_labels", "_preds", "_counts")

    def __init__(self, label_mapping: Mapping[str, int]) -> None:
        super().__init__()
        self._names = {v: k for k, v in label_mapping.items()}
        names = ("precision", "recall", "f1")
        self.metric_names = (
            *names,
            *(f"conlleval_{name}" for name in names),
            "loss",
            "word_accuracy",
            "loss_per_word",
        )
        # Numbers of correct, predicted and gold spans of each sentence.
        self._counts: list[tuple[int, int, int]] = []

    def update(self, results: Row) -> None:
        super().update(results)
        gold = set(read_spans(self._tags(self._labels[-1])))
        predicted = set(read_spans(self._tags(self._preds[-1])))
        correct = gold & predicted
        self._counts.append((len(correct), len(predicted), len(gold)))

    def _get_results(self) -> Metrics:
        counts = np.sum([(0, 0, 0), *self._counts], axis=0).tolist()
        return [*compute_f1(*counts), ("loss", self.get_loss())]

    def get_details(self) -> Metrics:
        """Return conlleval's metrics, and the accuracy and loss per word."""
        from seqeval import metrics

        labels = [self._iob_tags(ids) for ids in self._labels]
        predictions = [self._iob_tags(ids) for ids in self._preds]
        details = []
        with warnings.catch_warnings():
            # Without predicted spans the metrics are 0, which needs no warning.
            warnings.simplefilter("ignore")
            for name in ("precision", "recall", "f1"):
                score = getattr(metrics, f"{name}_score")
                value = score(labels, predictions, zero_division=0)
                details.append((f"conlleval_{name}", 100.0 * float(value)))
        details.append(("word_accuracy", self._accuracy()))
        return details + super().get_details()

    def _tag_ids(self) -> list[int]:
        return sorted(self._names)

    def _tags(self, ids: list[int]) -> list[str]:
        return [self._names[i] for i in ids]

    def _iob_tags(self, ids: list[int]) -> list[str]:
        """Return tags for conlleval, with B instead of S and I instead of E."""
        tags = []
        for tag in self._tags(ids):
            letter, span_type = split_tag(tag)
            letter = {"S": "B", "E": "I"}.get(letter, letter)
            if span_type:
                letter += "-" + span_type.replace("-", _DASH)
            tags.append(letter)
        return tags
