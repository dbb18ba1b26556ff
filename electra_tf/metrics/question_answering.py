# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics of answers that are selected by a model's scores.

Answers are scored as in SQuAD 1.1, SQuAD 2.0 or MRQA 2019. The scripts of
tf-models-official compute the SQuAD scores.

Source: google-research/electra, finetune/qa/qa_metrics.py,
squad_official_eval_v1.py, squad_official_eval.py (other versions of these
scripts) and mrqa_official_eval.py.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol

import numpy as np
from official.nlp.tools import squad_evaluate_v1_1, squad_evaluate_v2_0

from configure.errors import UserError
from electra_tf.metrics.answer_selection import (
    NO_WINDOW,
    SPAN_OUTPUTS,
    Answer,
    AnswerRule,
    QuestionT,
    Window,
    find_answers,
    probabilities,
)
from electra_tf.metrics.matching import encode_answers, keeps_script
from electra_tf.metrics.scorers import (
    ANY_SCRIPT,
    Json,
    Metrics,
    Row,
    Scorer,
)
from electra_tf.text.basic_tokenizer import BasicTokenizer


class ScoredQuestion(Protocol):
    """Fields of a question that the official scripts read."""

    key: str
    answers: tuple[str, ...]


def metric_names(version: str, match: str | None) -> tuple[str, ...]:
    """Return the names of the metrics for a data version and a `match`."""
    names = (*_METRICS[version], "loss", "questions", "windows")
    return names if match is None else (*names, ANY_SCRIPT)


class SpanScorer(Scorer, Generic[QuestionT]):
    """Scorer that finds each question's answer in the outputs for its windows.

    Differs: windows may come in any order. Only outputs that answers need are
      stored. The files include the best answers with their probabilities, which
      the original computes and drops.

    Attributes:
      predictions: best answer of each question, by question id; empty before
        `answer` is called.
      null_odds: odds that a question has no answer, by question id ("squad2"
        only).
      best: answers of each question, best first, by question id.
      scores: metrics, in the order of the official script.
    """

    def __init__(
        self,
        rule: AnswerRule,
        tokenizer: BasicTokenizer,
        name: str,
        version: str,
        examples: Sequence[QuestionT],
        windows_of: Callable[[QuestionT], list[Window]],
        match: str | None = None,
    ) -> None:
        """Create a scorer that has no outputs yet.

        Args:
          rule: settings of the search for answers.
          tokenizer: tokenizer that produced the wordpieces.
          name: name of the task.
          version: squad1, squad2 or mrqa.
          examples: questions of the split.
          windows_of: function that returns the windows of a question.
          match: one of `matching.MATCHES`; None: words of the official script.
        """
        super().__init__()
        # The metrics must be computed even if `update` is never called, as for
        # questions whose passages are all empty.
        self._updated = True
        self._rule = rule
        self._name = name
        self._version = version
        self._match = match
        self.metric_names = metric_names(version, match)
        self._examples = examples
        self._windows_of = windows_of
        self._tokenizer = tokenizer
        self._outputs: dict[int, dict[str, np.ndarray]] = {}
        self._null_scores: dict[int, np.float32] = {}
        self._losses: dict[int, float] = {}
        self.predictions: dict[str, str] = {}
        self.null_odds: dict[str, float] = {}
        self.best: dict[str, list[Answer]] = {}
        self.scores: dict[str, float] = {}

    def update(self, results: Row) -> None:
        """Add the head's outputs for one window, which `eid` identifies."""
        super().update(results)
        eid = int(results["eid"])
        self._losses[eid] = float(results["loss"])
        names = SPAN_OUTPUTS[self._rule.joint_prediction]
        outputs = {name: np.array(results[name]) for name in names}
        if self._version == "squad2":
            if self._rule.answerable_classifier:
                self._null_scores[eid] = np.float32(results["answerable_logit"])
            else:
                start = np.float32(results["start_logits"][0])
                end = np.float32(results["end_logits"][0])
                self._null_scores[eid] = start + end
        self._outputs[eid] = outputs

    def get_loss(self) -> float:
        """Return the mean loss per window."""
        losses = [self._losses[eid] for eid in sorted(self._losses)]
        return sum(losses) / max(1, len(losses))

    def get_details(self) -> Metrics:
        """Return the loss, and the counts of questions and windows.

        If `match` is set, the count `any_script` is added.
        """
        details: Metrics = [
            ("loss", self.get_loss()),
            ("questions", len(self._examples)),
            ("windows", len(self._losses)),
        ]
        if self._match is not None:
            encoded = [
                question
                for question in self._examples
                if not keeps_script(self._match, question)
            ]
            details.append((ANY_SCRIPT, len(encoded)))
        return details

    def single_prediction(self) -> str | None:
        """Return the answer if it is the same for all questions, or None.

        The result is None if predictions differ or all expected answers are
        equal.
        """
        self.get_results()
        expected = {example.answers for example in self._examples}
        answers = set(self.final_answers().values())
        if len(expected) > 1 and len(answers) == 1:
            return answers.pop()
        return None

    def baselines(self) -> dict[str, dict[str, float]]:
        """Return, for SQuAD 2.0, the metrics of always predicting no answer."""
        if self._version != "squad2":
            return {}
        keys = [example.key for example in self._examples]
        scores = evaluate_squad2(
            self._examples,
            dict.fromkeys(keys, ""),
            dict.fromkeys(keys, 1.0),
            0.0,
        )
        return {"majority": scores}

    def final_answers(self) -> dict[str, str]:
        """Return answers by question id; "" predicts that no answer exists.

        Source: google-research/electra, run_finetuning.py, run_finetuning.
        """
        threshold = self._rule.qa_na_threshold
        return {
            key: "" if self.null_odds.get(key, -np.inf) > threshold else text
            for key, text in self.predictions.items()
        }

    def answer(self) -> None:
        """Compute `predictions`, `null_odds` and `best` from the outputs."""
        self.predictions, self.null_odds, self.best = {}, {}, {}
        for example in self._examples:
            windows = self._windows_of(example)
            for window in windows:
                if window.eid not in self._outputs:
                    raise ValueError(
                        f"{self._name}: the outputs for window {window.eid} are"
                        " missing. Predict every window of the split before"
                        " scoring"
                    )
            outputs = [self._outputs[window.eid] for window in windows]
            by_offset = bool(windows) and windows[0].spans is not None
            answers = find_answers(
                self._rule,
                windows,
                outputs,
                example.doc_tokens,
                self._tokenizer,
                example.passage_text if by_offset else None,
            )
            self.best[example.key], best = answers, answers[0]
            if self._version == "squad2":
                # An empty text is predicted only if no other text exists,
                # because the null odds determine whether the question has an
                # answer.
                best = next((a for a in answers if a.text), best)
                scores = [self._null_scores[window.eid] for window in windows]
                odds = min([NO_WINDOW, *scores])
                if not self._rule.answerable_classifier:
                    odds = odds - best.start_score - best.end_score
                self.null_odds[example.key] = float(odds)
            self.predictions[example.key] = best.text

    def files(self) -> Mapping[str, Json]:
        """Return the contents of the files of answers, odds and metrics."""
        self.get_results()
        best = {
            key: _describe_answers(answers)
            for key, answers in self.best.items()
        }
        files: dict[str, Json] = {"preds": self.predictions, "nbest": best}
        if self._version == "squad2":
            files["null_odds"] = self.null_odds
        files["eval"] = self.scores
        return files

    def _get_results(self) -> Metrics:
        self.answer()
        questions, predictions = encode_answers(
            self._match, self._examples, self.predictions
        )
        if self._version == "squad2":
            threshold = self._rule.qa_na_threshold
            self.scores = evaluate_squad2(
                questions, predictions, self.null_odds, threshold
            )
        else:
            evaluate = {"squad1": evaluate_squad1, "mrqa": evaluate_mrqa}
            self.scores = evaluate[self._version](questions, predictions)
        return sorted(self.scores.items())


def _describe_answers(answers: Sequence[Answer]) -> list[dict[str, Json]]:
    """Return answers as JSON values, with their probabilities."""
    return [
        {
            "text": answer.text,
            "probability": probability,
            "start_logit": float(answer.start_score),
            "end_logit": float(answer.end_score),
        }
        for answer, probability in zip(
            answers, probabilities(answers), strict=True
        )
    ]


# Name of a metric in the original's script -> name of the metric in the script
# of tf-models-official.
_BEST = {
    f"best_{name}": f"final_{name}"
    for name in ("exact", "exact_thresh", "f1", "f1_thresh")
}
# Names of metrics of all questions, of answerable questions (HasAns) and of
# unanswerable questions (NoAns).
_GROUP_METRICS = (
    "exact",
    "f1",
    "total",
    "HasAns_exact",
    "HasAns_f1",
    "HasAns_total",
    "NoAns_exact",
    "NoAns_f1",
    "NoAns_total",
)
# Names of the metrics, by the version of the data.
_METRICS: Mapping[str, tuple[str, ...]] = {
    "squad1": ("exact_match", "f1"),
    "mrqa": ("exact_match", "f1"),
    "squad2": (*_GROUP_METRICS, *_BEST),
}
# Both functions lower-case two texts and remove punctuation, articles and extra
# spaces. `exact_match` returns whether the texts are then equal, `f1_score` the
# F1 of the texts' words, from 0 to 1.
exact_match = squad_evaluate_v1_1._exact_match_score
f1_score = squad_evaluate_v1_1._f1_score


def evaluate_squad1(
    questions: Sequence[ScoredQuestion], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Return the SQuAD 1.1 scores of the questions that have answers.

    Differs: the original fails at a question without answers.
    """
    answered = [question for question in questions if question.answers]
    _require_answers(answered, len(questions))
    scores = squad_evaluate_v1_1.evaluate(_dataset(answered), predictions)
    # The original's script computes 100 * matches / count. Dividing before
    # multiplying, as tf-models-official does, would round differently.
    matches = round(scores["exact_match"] * len(answered))
    return {
        "exact_match": 100.0 * matches / len(answered),
        "f1": 100.0 * scores["final_f1"],
    }


def evaluate_squad2(
    questions: Sequence[ScoredQuestion],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float],
    threshold: float,
) -> dict[str, float]:
    """Return the SQuAD 2.0 scores of predictions.

    Args:
      questions: questions to score.
      predictions: answers by question key.
      null_odds: odds that a question has no answer, by question key.
      threshold: null odds above which the prediction is "no answer".
    """
    predicted = [q for q in questions if q.key in predictions]
    _require_answers(predicted, len(questions))
    dataset = _dataset(predicted)
    # Decisions are passed as odds above or below 1, the script's fixed
    # threshold.
    decided = {
        key: 2.0 if odds > threshold else 0.0 for key, odds in null_odds.items()
    }
    at_threshold = squad_evaluate_v2_0.evaluate(dataset, predictions, decided)
    at_best = squad_evaluate_v2_0.evaluate(dataset, predictions, null_odds)
    scores = {n: at_threshold[n] for n in _GROUP_METRICS if n in at_threshold}
    return scores | {name: at_best[key] for name, key in _BEST.items()}


def _dataset(questions: Sequence[ScoredQuestion]) -> list[dict[str, list]]:
    """Return the questions in the format of the official scripts."""
    qas = [
        {"id": q.key, "answers": [{"text": text} for text in q.answers]}
        for q in questions
    ]
    return [{"paragraphs": [{"qas": qas}]}]


def evaluate_mrqa(
    questions: Sequence[ScoredQuestion], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Return the MRQA scores of predictions.

    Each prediction is compared with the closest expected answer.
    """
    answers = {question.key: question.answers for question in questions}
    scored = [key for key in answers if key in predictions and answers[key]]
    _require_answers(scored, len(answers))
    matches = f1 = 0.0
    for key in scored:
        text = predictions[key]
        matches += max(exact_match(text, answer) for answer in answers[key])
        f1 += max(f1_score(text, answer) for answer in answers[key])
    return {
        "exact_match": 100.0 * matches / len(scored),
        "f1": 100.0 * f1 / len(scored),
    }


def _require_answers(scored: Sequence[object], n_questions: int) -> None:
    """Raise a UserError if no question can be scored."""
    if not scored:
        raise UserError(
            "cannot compute metrics: none of the"
            f" {n_questions} questions has both a prediction and an expected"
            " answer. Evaluate a split that has expected answers."
        )
