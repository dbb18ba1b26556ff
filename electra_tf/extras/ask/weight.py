# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The weight of retrieval in answers' scores, fitted to a file of questions."""

import functools
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from configure.errors import UserError
from electra_tf.extras.ask.asker import Asker, rank_answers
from electra_tf.finetuning import questions
from electra_tf.finetuning.row_report import RowReport
from electra_tf.metrics.matching import answer_encoder
from electra_tf.metrics.question_answering import exact_match, f1_score

# Numbers of passages: the report contains the share of questions whose gold
# passage is among the best 1, the best 5 and the best 20 passages.
RANKS = (1, 5, 20)
_WEIGHTS = np.linspace(0.0, 1.0, 51)
_FOLDS = 5
_METRICS = ("exact_match", "f1")


def read_questions(
    path: str, report: Callable[[str], None]
) -> list[questions.QAExample]:
    """Return the questions of a file in SQuAD's format, with their answers.

    Args:
      path: the file.
      report: called with the lines of a summary of unusable rows.

    Raises:
      UserError: the file has no usable question.
    """
    examples, rows = [], RowReport()
    settings = {
        "eid": 0,
        "task_name": "",
        "is_training": False,
        "version": "squad2",
    }
    for raw in questions.read_squad(path, rows):
        try:
            examples.append(
                questions.make_example(raw.fields, raw.passage, **settings)
            )
        except questions.UnusableError as error:
            rows.add(path, raw.line(), *error.args)
    for line in rows.summary("questions"):
        report(line)
    if not examples:
        raise UserError(
            f"{path}: found no usable question; expected questions with"
            " answers, because the weight is fitted to the answers. Pass"
            " another file."
        )
    return examples


def fit(
    asker: Asker, examples: Sequence[questions.QAExample], count: int
) -> dict[str, Any]:
    """Return a report: the weight with the best F1, and metrics of answers.

    Passages are searched for all questions, and read for an evenly spaced
    sample. `retrieved` is cross-validated: each fold is scored with the best
    weight of the other folds, and questions about one passage share a fold.

    Args:
      asker: the index and the model.
      examples: questions with answers and their passages.
      count: the maximum number of questions for which passages are read.

    Returns:
      Plain values for JSON; exact match, F1 and their losses are in percent.
    """
    match = asker.predictor.task.match
    gold_passages = [" ".join(example.doc_tokens) for example in examples]
    ranks = _gold_ranks(asker, examples, gold_passages)
    step = max(1.0, len(examples) / count)
    chosen = [int(i * step) for i in range(min(count, len(examples)))]
    examples_read = [examples[i] for i in chosen]
    gold_read = [gold_passages[i] for i in chosen]

    score = functools.partial(_score, match)
    scores = _scores_by_weight(asker, examples_read, score)
    folds = [zlib.crc32(text.encode()) % _FOLDS for text in gold_read]
    retrieved = _cross_validate(scores, np.array(folds))
    predictions = asker.predictor(
        [
            (example.question_text, text)
            for example, text in zip(examples_read, gold_read, strict=True)
        ]
    )
    gold = [
        score(example, [prediction])
        for example, prediction in zip(examples_read, predictions, strict=True)
    ]
    losses = gold - retrieved
    results = {
        "gold": np.mean(gold, 0),
        "retrieved": retrieved.mean(0),
        "reader_alone": scores[:, 0].mean(0),
        "retrieval_alone": scores[:, -1].mean(0),
        "lost": np.mean(losses, 0),
        "lost_standard_error": np.std(losses, 0) / len(chosen) ** 0.5,
    }
    report: dict[str, Any] = {
        "weight": float(_WEIGHTS[scores[:, :, 1].mean(0).argmax()]),
        "match": match or "SQuAD's script",
        "questions": len(examples),
        "gold_indexed": len(ranks),
    }
    if ranks:
        for rank in RANKS:
            report[f"gold_in_first_{rank}"] = np.mean([r < rank for r in ranks])
    report["passages_read"] = asker.count
    report["questions_read"] = len(chosen)
    for name, pair in results.items():
        report[name] = dict(zip(_METRICS, pair.tolist(), strict=True))
    return report


def _gold_ranks(
    asker: Asker,
    examples: Sequence[questions.QAExample],
    gold_passages: Sequence[str],
) -> list[int]:
    """Return the rank, from 0, of each gold passage that is in the index.

    A passage that is not among the first max(RANKS) gets the rank max(RANKS).
    Passages are compared by their words.
    """
    texts = [
        " ".join(questions.Passage(source.passage).words)
        for source in asker.index.passages
    ]
    indexed, ranks = set(texts), []
    for example, gold_text in zip(examples, gold_passages, strict=True):
        if gold_text not in indexed:
            continue
        hits = asker.index.search(example.question_text, max(RANKS))
        hit_texts = [texts[index] for index, _ in hits]
        rank = max(RANKS)
        if gold_text in hit_texts:
            rank = hit_texts.index(gold_text)
        ranks.append(rank)
    return ranks


def _scores_by_weight(
    asker: Asker,
    examples: Sequence[questions.QAExample],
    score: Callable[..., tuple[float, float]],
) -> np.ndarray:
    """Return exact match and F1, in percent, by question and weight.

    Returns:
      [questions, weights, metrics].
    """
    answers = asker.read([example.question_text for example in examples])
    scores = []
    for example, found_answers in zip(examples, answers, strict=True):
        scores.append(
            [
                score(example, rank_answers(found_answers, weight))
                for weight in _WEIGHTS
            ]
        )
    return np.array(scores)


def _cross_validate(scores: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Score each question with the weight that is best for the other folds.

    Args:
      scores: [questions, weights, metrics].
      folds: [questions], the fold of each question.

    Returns:
      [questions, metrics].
    """
    validated = np.empty([scores.shape[0], scores.shape[2]])
    for fold in range(_FOLDS):
        others = scores[folds != fold] if (folds != fold).any() else scores
        best = others[:, :, 1].mean(0).argmax()
        validated[folds == fold] = scores[folds == fold, best]
    return validated


def _score(
    match: str | None,
    example: questions.QAExample,
    answers: Sequence[Mapping[str, Any]],
) -> tuple[float, float]:
    """Return exact match and F1 of the first answer, in percent."""
    encode = answer_encoder(match, example)
    answer = encode(answers[0]["answer"]) if answers else ""
    if not example.answers:
        is_right = 0.0 if answer else 100.0
        return is_right, is_right
    expected = [encode(text) for text in example.answers]
    exact = max(exact_match(answer, text) for text in expected)
    f1 = max(f1_score(answer, text) for text in expected)
    return 100.0 * exact, 100.0 * f1
