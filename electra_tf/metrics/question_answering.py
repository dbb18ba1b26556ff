# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a model's scores for windows of passages to answers and figures.

Source: google-research/electra, finetune/qa/qa_metrics.py.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from configure.finetuning import FinetuningConfig
from electra_tf.metrics import answer_scores
from electra_tf.metrics.scorers import Figures, Scorer
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


class QuestionExample(Protocol):
    """An example of a question answering task, as scoring sees it.

    Attributes:
      key: the question's id in predictions.
      answers: the expected answers.
      doc_tokens: the passage's words.
    """

    key: str
    answers: tuple[str, ...]
    doc_tokens: list[str]


class Window(NamedTuple):
    """Part of a passage behind its question, as the model sees it."""

    eid: int  # the number that the model's outputs for it carry
    # Its wordpieces, special ones among them, without padding.
    tokens: list[str]
    # Int [len(tokens)], the passage's word each belongs to; -1 for wordpieces
    # that are not the passage's.
    words: np.ndarray
    # Bool [len(tokens)], whether no other window shows more around the
    # wordpiece.
    max_context: np.ndarray


class Answer(NamedTuple):
    """A candidate answer."""

    text: str  # as it stands in the passage
    start_score: float  # of its first wordpiece: a logit or a log probability
    end_score: float  # of its last wordpiece
    # The passage's words it was found in, the first and the last.
    words: tuple[int, int] | None = None

    @property
    def score(self) -> float:
        """The sum that answers are ordered by, in the scores' precision."""
        return self.start_score + self.end_score


class _Spans(NamedTuple):
    """Candidates of one or several windows; one row each."""

    window: np.ndarray
    start: np.ndarray
    end: np.ndarray
    start_score: np.ndarray  # float32
    end_score: np.ndarray  # float32


def find_answers(
    config: FinetuningConfig,
    windows: Sequence[Window],
    outputs: Sequence[Mapping[str, Any]],
    doc_tokens: Sequence[str],
    tokenizer: BasicTokenizer,
) -> list[Answer]:
    """Returns a question's best answers with different texts, best first.

    At most `n_best_size`; where no span is allowed, the answer "empty" with
    score 0.
    """
    parts = [
        _allowed_spans(config, number, window, output)
        for number, (window, output) in enumerate(
            zip(windows, outputs, strict=True)
        )
    ]
    if not parts:
        return [Answer("empty", 0.0, 0.0)]
    spans = _Spans(*map(np.concatenate, zip(*parts, strict=True)))
    # Equal scores stay in the order of windows, starts and ends.
    order = np.argsort(-(spans.start_score + spans.end_score), kind="stable")
    answers: dict[str, Answer] = {}
    for row in order:
        if len(answers) >= config.n_best_size:
            break
        window = windows[spans.window[row]]
        start, end = spans.start[row], spans.end[row]
        words = doc_tokens[window.words[start] : window.words[end] + 1]
        text = project_to_passage(
            join_wordpieces(window.tokens[start : end + 1]),
            " ".join(words),
            tokenizer,
        )
        if text not in answers:
            scores = spans.start_score[row], spans.end_score[row]
            place = int(window.words[start]), int(window.words[end])
            answers[text] = Answer(text, *scores, place)
    return list(answers.values()) or [Answer("empty", 0.0, 0.0)]


def probabilities(answers: Sequence[Answer]) -> list[float]:
    """Returns the softmax over the scores of at least one answer."""
    scores = np.array([answer.score for answer in answers], np.float64)
    odds = np.exp(scores - scores.max())
    return (odds / odds.sum()).tolist()


def _allowed_spans(
    config: FinetuningConfig,
    number: int,
    window: Window,
    output: Mapping[str, Any],
) -> _Spans:
    """The window's candidates that can be answers."""
    start, end, start_score, end_score = (
        _joint_candidates(output)
        if config.joint_prediction
        else _independent_candidates(output, config.n_best_size)
    )
    count = len(window.tokens)
    inside = (start < count) & (end < count)
    first, last = np.where(inside, start, 0), np.where(inside, end, 0)
    length = end - start + 1
    allowed = (
        inside
        & (window.words[first] >= 0)
        & (window.words[last] >= 0)
        & window.max_context[first]
        & (length >= 1)
        & (length <= config.max_answer_length)
    )
    start = start[allowed]
    return _Spans(
        np.full(len(start), number),
        start,
        end[allowed],
        start_score[allowed],
        end_score[allowed],
    )


def _joint_candidates(output: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
    """The beam: each start with the ends that follow from it."""
    end = np.asarray(output["end_top_index"])  # [beam, beam]
    start = np.asarray(output["start_top_index"])[:, None]
    start_score = np.asarray(output["start_top_log_probs"])[:, None]
    return (
        np.broadcast_to(start, end.shape).ravel(),
        end.ravel(),
        np.broadcast_to(start_score, end.shape).ravel(),
        np.asarray(output["end_top_log_probs"]).ravel(),
    )


def _independent_candidates(
    output: Mapping[str, Any], n_best_size: int
) -> tuple[np.ndarray, ...]:
    """Each of the best starts with each of the best ends."""
    start_logits = np.asarray(output["start_logits"])
    end_logits = np.asarray(output["end_logits"])
    starts = np.argsort(-start_logits, kind="stable")[:n_best_size]
    ends = np.argsort(-end_logits, kind="stable")[:n_best_size]
    start, end = np.meshgrid(starts, ends, indexing="ij")
    start, end = start.ravel(), end.ravel()
    return start, end, start_logits[start], end_logits[end]


def join_wordpieces(tokens: Sequence[str]) -> str:
    """Puts wordpieces together to words with single spaces between them."""
    text = " ".join(tokens).replace(" ##", "").replace("##", "")
    return " ".join(text.split())


def project_to_passage(
    answer: str, passage: str, tokenizer: BasicTokenizer
) -> str:
    """Finds the part of a passage that a tokenized answer stands for.

    Tokenizing lower-cases, splits punctuation off and may drop accents. The
    passage is tokenized in the same way, the answer is looked for in the
    result, and its first and last character are carried back by counting
    characters that are not spaces. It is the whole passage where tokenizing
    changed the number of characters or the answer cannot be found.
    """
    tokenized = " ".join(tokenizer.tokenize(passage))
    start = tokenized.find(answer)
    if start < 0:
        return passage
    end = start + len(answer) - 1
    passage_places = [i for i, c in enumerate(passage) if c != " "]
    places = [i for i, c in enumerate(tokenized) if c != " "]
    if len(passage_places) != len(places):
        return passage
    numbers = {place: number for number, place in enumerate(places)}
    if start not in numbers or end not in numbers:
        return passage
    first = passage_places[numbers[start]]
    return passage[first : passage_places[numbers[end]] + 1]


class SpanScorer(Scorer):
    """Puts the windows of each question together, and scores the answers.

    Args:
      windows_of: from an example to its windows, in order.

    Attributes:
      predictions: question's id -> best answer; there once `answer` or
        `get_results` was called.
      null_odds: question's id -> odds of having no answer ("squad2" only).
      best: question's id -> its best answers, the best first.
      scores: the figures in the official script's order.

    Differs: windows may come in any order. Only what the answers need is
      kept of a window's outputs. The best answers with their probabilities,
      which the original computes and drops, are among the files.
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
        self.scores: dict[str, float] = {}

    def update(self, results: Mapping[str, Any]) -> None:
        """Takes `eid`, `loss`, `answerable_logit`, and logits or the beam."""
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

    def get_details(self) -> Figures:
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
        """Finds the answers to all questions."""
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

    def files(self) -> dict[str, Any]:
        """Answers, odds of having none, best answers, figures; for JSON."""
        self.get_results()
        best = {key: _as_records(found) for key, found in self.best.items()}
        found = {"preds": self.predictions, "nbest": best}
        if self._version == "squad2":
            found["null_odds"] = self.null_odds
        return found | {"eval": self.scores}

    def _get_results(self) -> Figures:
        self.answer()
        questions = [
            answer_scores.Question(e.key, e.answers) for e in self._examples
        ]
        if self._version == "squad2":
            self.scores = answer_scores.evaluate_squad2(
                questions,
                self.predictions,
                self.null_odds,
                self._config.qa_na_threshold,
            )
        elif self._version == "squad1":
            self.scores = answer_scores.evaluate_squad1(
                questions, self.predictions
            )
        else:
            self.scores = answer_scores.evaluate_mrqa(
                questions, self.predictions
            )
        return sorted(self.scores.items())

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
