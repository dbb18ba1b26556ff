# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Official scores of answers: SQuAD 1.1 and 2.0, and MRQA 2019.

SQuAD's are computed by the official scripts of tf-models-official.

Source: google-research/electra, finetune/qa/squad_official_eval_v1.py,
squad_official_eval.py (of which these scripts are versions, too) and
mrqa_official_eval.py.
"""

import collections
import re
import string
from collections.abc import Mapping, Sequence, Sized
from typing import Any, NamedTuple

from official.nlp.tools import squad_evaluate_v1_1, squad_evaluate_v2_0

from configure.errors import UserError

# Names of the original's script -> names of tf-models-official's.
_BEST = {
    "best_exact": "final_exact",
    "best_exact_thresh": "final_exact_thresh",
    "best_f1": "final_f1",
    "best_f1_thresh": "final_f1_thresh",
}
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Question(NamedTuple):
    """A question and the answers that count as right."""

    key: str  # its id
    answers: tuple[str, ...]  # texts; none for a question without an answer


def evaluate_squad1(
    questions: Sequence[Question], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Scores answers to questions that all have one.

    Differs: the original fails at a question without answers.
    """
    answered = [question for question in questions if question.answers]
    _require_answers(answered, len(questions))
    scores = squad_evaluate_v1_1.evaluate(_dataset(answered), predictions)
    # As in the original's script, which multiplies before it divides.
    matches = round(scores["exact_match"] * len(answered))
    return {
        "exact_match": 100.0 * matches / len(answered),
        "f1": 100.0 * scores["final_f1"],
    }


def evaluate_squad2(
    questions: Sequence[Question],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float],
    threshold: float,
) -> dict[str, float]:
    """Scores answers where a question may have none."""
    predicted = [q for q in questions if q.key in predictions]
    _require_answers(predicted, len(questions))
    dataset = _dataset(predicted)
    # The script's threshold is fixed at 1.
    decided = {key: 2.0 * (odds > threshold) for key, odds in null_odds.items()}
    at_threshold = squad_evaluate_v2_0.evaluate(dataset, predictions, decided)
    at_best = squad_evaluate_v2_0.evaluate(dataset, predictions, null_odds)
    prefixes = ("", "HasAns_", "NoAns_")
    names = [p + n for p in prefixes for n in ("exact", "f1", "total")]
    scores = {n: at_threshold[n] for n in names if n in at_threshold}
    return scores | {name: at_best[own] for name, own in _BEST.items()}


def _dataset(questions: Sequence[Question]) -> list[dict[str, Any]]:
    """The questions as the scripts read them."""
    qas = [
        {"id": q.key, "answers": [{"text": text} for text in q.answers]}
        for q in questions
    ]
    return [{"paragraphs": [{"qas": qas}]}]


def evaluate_mrqa(
    questions: Sequence[Question], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Compares predictions with the best fitting expected answer each."""
    answers = {question.key: question.answers for question in questions}
    scored = [key for key in answers if key in predictions and answers[key]]
    _require_answers(scored, len(answers))
    matches = f1 = 0.0
    for key in scored:
        found = predictions[key]
        matches += max(exact_match(found, answer) for answer in answers[key])
        f1 += max(f1_score(found, answer) for answer in answers[key])
    return {
        "exact_match": 100.0 * matches / len(scored),
        "f1": 100.0 * f1 / len(scored),
    }


def normalize(text: str) -> str:
    """Lower-cases; drops ASCII punctuation, articles and extra spaces."""
    text = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(prediction: str, answer: str) -> bool:
    """Whether two answers are the same once normalized."""
    return normalize(prediction) == normalize(answer)


def f1_score(prediction: str, answer: str) -> float:
    """Harmonic mean of precision and recall of an answer's words.

    From 0 to 1; 0 where no word is shared, so also where nothing is left of
    both once normalized, which `exact_match` takes as equal.
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


def _require_answers(scored: Sized, n_questions: int) -> None:
    """Raises unless there is something to score."""
    if not len(scored):
        raise UserError(
            f"none of {n_questions} questions has both a prediction and an"
            " expected answer, so there is nothing to score; evaluate on a"
            " split with answers"
        )
