# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The best answers that a model's scores for windows of a passage allow."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from configure.finetuning import FinetuningConfig
from electra_tf.metrics.answer_text import (
    join_wordpieces,
    project_to_passage,
)
from electra_tf.text.tokenization import BasicTokenizer


@dataclasses.dataclass(frozen=True)
class Window:
    """Part of a passage behind its question, as the model sees it.

    Attributes:
      eid: the number that the model's outputs for it carry.
      tokens: its wordpieces, special ones among them, without padding.
      words: int [len(tokens)], the passage's word each belongs to; -1 for
        wordpieces that are not the passage's.
      max_context: bool [len(tokens)], whether no other window shows more
        around the wordpiece.
    """

    eid: int
    tokens: list[str]
    words: np.ndarray
    max_context: np.ndarray


class Answer(NamedTuple):
    """A candidate answer.

    Attributes:
      text: as it stands in the passage.
      start_score: of its first wordpiece: a logit or a log probability.
      end_score: of its last wordpiece.
      words: the passage's words it was found in, the first and the last.
    """

    text: str
    start_score: float
    end_score: float
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

    Returns:
      At most `n_best_size` answers; where no span is allowed, the answer
      "empty" with score 0.

    Source: google-research/electra, finetune/qa/qa_metrics.py,
      write_predictions.
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
    """Returns the softmax over the answers' scores.

    Args:
      answers: at least one.
    """
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
