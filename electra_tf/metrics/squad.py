# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""SQuAD 1.1 and 2.0 through the official scripts of tf-models-official.

Source: google-research/electra, finetune/qa/squad_official_eval_v1.py and
squad_official_eval.py, which these scripts are also versions of.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from official.nlp.tools import squad_evaluate_v1_1, squad_evaluate_v2_0

from electra_tf.metrics.questions import Question, require_answers

# Names of the original's script -> names of tf-models-official's.
_BEST = {
    "best_exact": "final_exact",
    "best_exact_thresh": "final_exact_thresh",
    "best_f1": "final_f1",
    "best_f1_thresh": "final_f1_thresh",
}


def evaluate_v1(
    questions: Sequence[Question], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Scores answers to questions that all have one.

    Differs: the original fails at a question without answers.
    """
    answered = [question for question in questions if question.answers]
    require_answers(answered, len(questions))
    scores = squad_evaluate_v1_1.evaluate(_dataset(answered), predictions)
    # As in the original's script, which multiplies before it divides.
    matches = round(scores["exact_match"] * len(answered))
    return {
        "exact_match": 100.0 * matches / len(answered),
        "f1": 100.0 * scores["final_f1"],
    }


def evaluate_v2(
    questions: Sequence[Question],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float],
    threshold: float,
) -> dict[str, float]:
    """Scores answers where a question may have none."""
    predicted = [q for q in questions if q.key in predictions]
    require_answers(predicted, len(questions))
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
