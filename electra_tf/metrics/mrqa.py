# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exact match and F1 of the MRQA 2019 shared task.

Source: google-research/electra, finetune/qa/mrqa_official_eval.py.
"""

import collections
import re
import string
from collections.abc import Iterable, Mapping, Sequence

from electra_tf.metrics.questions import Question, require_answers

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(text: str) -> str:
    """Lower-cases; drops ASCII punctuation, articles and extra spaces."""
    text = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(prediction: str, answer: str) -> bool:
    """Whether two answers are the same once normalized."""
    return normalize(prediction) == normalize(answer)


def f1_score(prediction: str, answer: str) -> float:
    """Harmonic mean of precision and recall of an answer's words.

    Returns:
      From 0 to 1; 0 where no word is shared, so also where nothing is left
      of both once normalized, which `exact_match` takes as equal.
    """
    found = normalize(prediction).split()
    expected = normalize(answer).split()
    shared = collections.Counter(found) & collections.Counter(expected)
    n_shared = shared.total()
    if n_shared == 0:
        return 0.0
    precision = n_shared / len(found)
    recall = n_shared / len(expected)
    return (2 * precision * recall) / (precision + recall)


def evaluate(
    questions: Iterable[Question], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Compares predictions with the best fitting expected answer each."""
    answers: dict[str, Sequence[str]] = {
        question.key: question.answers for question in questions
    }
    scored = [key for key in answers if key in predictions and answers[key]]
    require_answers(scored, len(answers))
    matches = f1 = 0.0
    for key in scored:
        found = predictions[key]
        matches += max(exact_match(found, answer) for answer in answers[key])
        f1 += max(f1_score(found, answer) for answer in answers[key])
    return {
        "exact_match": 100.0 * matches / len(scored),
        "f1": 100.0 * f1 / len(scored),
    }
