# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers, null odds and scores of question answering tasks.

Source: google-research/electra, finetune/qa/qa_metrics.py.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from configure.finetuning import FinetuningConfig
from electra_tf import files
from electra_tf.metrics import mrqa, squad
from electra_tf.metrics.answer_spans import (
    Answer,
    Window,
    find_answers,
    probabilities,
)
from electra_tf.metrics.questions import Question, QuestionExample
from electra_tf.metrics.scorer import Scorer
from electra_tf.text.tokenization import BasicTokenizer

# Null odds of a question without any window.
_NO_WINDOW = np.float32(1000000)
_SPAN_OUTPUTS = {
    True: (
        "start_top_log_probs",
        "start_top_index",
        "end_top_log_probs",
        "end_top_index",
    ),
    False: ("start_logits", "end_logits"),
}


class SpanScorer(Scorer):
    """Puts the windows of each question together, and scores the answers.

    Args:
      windows_of: from an example to its windows, in order.

    Attributes:
      predictions: question's id -> best answer; there once `answer`,
        `write_predictions` or `get_results` was called.
      null_odds: question's id -> odds of having no answer ("squad2" only).
      best: question's id -> its best answers, the best first.

    Differs: windows may come in any order. Only what the answers need is
      kept of a window's outputs. The best answers with their probabilities,
      which the original computes and drops, go to `<task>_nbest.json`.
    """

    def __init__(
        self,
        config: FinetuningConfig,
        name: str,
        version: str,
        examples: Sequence[QuestionExample],
        windows_of: Callable[[Any], list[Window]],
    ) -> None:
        super().__init__()
        self._config = config
        self._name = name
        self._version = version
        self._examples = examples
        self._windows_of = windows_of
        self._tokenizer = BasicTokenizer(
            config.do_lower_case, config.strip_accents
        )
        self._outputs: dict[int, dict[str, np.ndarray]] = {}
        self._losses: dict[int, float] = {}
        self.predictions: dict[str, str] = {}
        self.null_odds: dict[str, float] = {}
        self.best: dict[str, list[Answer]] = {}

    def update(self, results: Mapping[str, Any]) -> None:
        """Takes in one window.

        Args:
          results: the head's outputs: `eid`, `loss`, `answerable_logit`, and
            logits or the beam.
        """
        super().update(results)
        eid = int(results["eid"])
        self._losses[eid] = float(results["loss"])
        names = _SPAN_OUTPUTS[self._config.joint_prediction]
        kept = {name: np.array(results[name]) for name in names}
        if self._version == "squad2":
            kept["null_score"] = self._null_score(results)
        self._outputs[eid] = kept

    def get_loss(self) -> float:
        """Mean loss of a window."""
        losses = [self._losses[eid] for eid in sorted(self._losses)]
        return sum(losses) / len(losses)

    def get_details(self) -> list[tuple[str, float]]:
        """The loss, and how many questions and windows there were."""
        return [
            ("loss", self.get_loss()),
            ("questions", len(self._examples)),
            ("windows", len(self._losses)),
        ]

    def single_prediction(self) -> str | None:
        """The one answer given throughout, though the expected ones differ."""
        self.get_results()
        expected = {example.answers for example in self._examples}
        found = set(self.final_answers().values())
        if len(expected) > 1 and len(found) == 1:
            return found.pop()
        return None

    def final_answers(self) -> dict[str, str]:
        """Answers by question's id, "" where none is predicted.

        Like `predictions`, they are there once `answer` was called.

        Source: google-research/electra, run_finetuning.py, run_finetuning.
        """
        threshold = self._config.qa_na_threshold
        return {
            key: "" if self.null_odds.get(key, -np.inf) > threshold else text
            for key, text in self.predictions.items()
        }

    def answer(self) -> None:
        """Finds the answers to all questions; writes nothing."""
        self.predictions, self.null_odds, self.best = {}, {}, {}
        for example in self._examples:
            windows = self._windows_of(example)
            outputs = [self._outputs_of(window) for window in windows]
            answers = find_answers(
                self._config,
                windows,
                outputs,
                example.doc_tokens,
                self._tokenizer,
            )
            self._choose(example.key, answers, outputs)
            self.best[example.key] = answers

    def write_predictions(self) -> None:
        """Finds the answers and writes them, the odds and the n-best lists."""
        self.answer()
        preds_file = self._config.qa_preds_file(self._name)
        _write_json(preds_file, self.predictions)
        best = {key: _as_records(found) for key, found in self.best.items()}
        directory = os.path.dirname(preds_file)
        _write_json(os.path.join(directory, f"{self._name}_nbest.json"), best)
        if self._version == "squad2":
            _write_json(self._config.qa_na_file(self._name), self.null_odds)

    def _get_results(self) -> list[tuple[str, float]]:
        self.write_predictions()
        questions = [Question(e.key, e.answers) for e in self._examples]
        if self._version == "squad2":
            scores = squad.evaluate_v2(
                questions,
                self.predictions,
                self.null_odds,
                self._config.qa_na_threshold,
            )
        elif self._version == "squad1":
            scores = squad.evaluate_v1(questions, self.predictions)
        else:
            scores = mrqa.evaluate(questions, self.predictions)
        _write_json(self._config.qa_eval_file(self._name), scores)
        return sorted(scores.items())

    def _choose(
        self,
        key: str,
        answers: list[Answer],
        outputs: list[dict[str, np.ndarray]],
    ) -> None:
        """Settles a question's answer and null odds.

        Where only no answer may be the best, the best other one is taken: it
        is the odds that decide.
        """
        if self._version != "squad2":
            self.predictions[key] = answers[0].text
            return
        answer = next((a for a in answers if a.text), answers[0])
        odds = min([_NO_WINDOW, *(o["null_score"] for o in outputs)])
        if not self._config.answerable_classifier:
            odds = odds - answer.start_score - answer.end_score
        self.null_odds[key] = float(odds)
        self.predictions[key] = answer.text

    def _null_score(self, results: Mapping[str, Any]) -> np.float32:
        if self._config.answerable_classifier:
            return np.float32(results["answerable_logit"])
        return np.float32(results["start_logits"][0]) + np.float32(
            results["end_logits"][0]
        )

    def _outputs_of(self, window: Window) -> dict[str, np.ndarray]:
        if window.eid not in self._outputs:
            raise ValueError(
                f"{self._name}: no outputs for window {window.eid}; the"
                " predictions are not those of the split that is scored"
            )
        return self._outputs[window.eid]


def _as_records(answers: list[Answer]) -> list[dict[str, Any]]:
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


def _write_json(path: str, value: Any) -> None:
    files.make_directory(os.path.dirname(path))
    with files.open_file(path + ".tmp", "wb") as file:
        file.write(json.dumps(value).encode())
    files.rename(path + ".tmp", path)
