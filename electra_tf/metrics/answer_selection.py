# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Selection of answers: the texts of the spans with the highest scores.

Source: google-research/electra, finetune/qa/qa_metrics.py.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from electra_tf.metrics.scorers import (
    Row,
)
from electra_tf.text.basic_tokenizer import BasicTokenizer

# The null odds (odds that a question has no answer) of a question without
# windows.
NO_WINDOW = np.float32(1000000)
# Names of the head's outputs that determine the spans, by the value of
# `joint_prediction`.
SPAN_OUTPUTS: Mapping[bool, tuple[str, ...]] = {
    True: (
        "start_top_log_probs",
        "start_top_index",
        "end_top_log_probs",
        "end_top_index",
    ),
    False: ("start_logits", "end_logits"),
}


class Question(Protocol):
    """A question with its expected answers."""

    key: str  # id of the question in predictions
    answers: tuple[str, ...]  # texts that count as correct; may be empty
    question_text: str

    @property
    def doc_tokens(self) -> list[str]:
        """Words of the passage."""

    @property
    def passage_text(self) -> str:
        """Text of the passage."""


QuestionT = TypeVar("QuestionT", bound=Question)


class Window(NamedTuple):
    """A model input: a question and a part of its passage."""

    eid: int  # id of the window in the model's outputs
    tokens: list[str]  # with special tokens, without padding
    # Int [len(tokens)], index of each token's word in the passage; -1 if the
    # token is not part of the passage.
    words: np.ndarray
    # Bool [len(tokens)], whether this window is the one that gives the token
    # the most context.
    max_context: np.ndarray
    # Int [len(tokens), 2], offsets in the passage: of each token's first
    # character, and of the character after the token; -1 if the token is not
    # part of the passage. None: `project_to_passage` searches for answers in
    # the words.
    spans: np.ndarray | None = None


class Answer(NamedTuple):
    """A candidate answer."""

    text: str  # part of the passage; "empty" if no span is a candidate
    start_score: float  # logit or log probability of the first wordpiece
    end_score: float  # logit or log probability of the last wordpiece
    # indices of the first and the last word in the passage
    words: tuple[int, int] | None = None
    # Offsets in the passage: of the answer's first character, and of the
    # character after the answer. None: `project_to_passage` searched for the
    # answer in the words.
    span: tuple[int, int] | None = None

    @property
    def score(self) -> float:
        """Sum of `start_score` and `end_score`, which ranks the answers."""
        return self.start_score + self.end_score


class AnswerRule(NamedTuple):
    """Hparams by which answers are chosen from a head's outputs."""

    n_best_size: int  # number of answers that are kept per question
    max_answer_length: int  # maximum number of tokens in an answer
    joint_prediction: bool  # whether the score of an end depends on the start
    answerable_classifier: bool  # whether the head predicts answerability
    qa_na_threshold: float  # null odds above which "no answer" is predicted


class _Spans(NamedTuple):
    """Candidate spans; every array has one entry per candidate."""

    window: np.ndarray  # index of the window
    start: np.ndarray  # index of the first wordpiece in the window
    end: np.ndarray  # index of the last wordpiece in the window
    start_score: np.ndarray  # float32
    end_score: np.ndarray  # float32


def find_answers(
    rule: AnswerRule,
    windows: Sequence[Window],
    outputs: Sequence[Row],
    doc_tokens: Sequence[str],
    tokenizer: BasicTokenizer,
    passage: str | None = None,
) -> list[Answer]:
    """Return the `n_best_size` best answers with distinct texts, best first.

    If no span is a candidate, the only answer has the text "empty".

    Args:
      rule: settings of the search.
      windows: windows of the question.
      outputs: outputs of the head for each window.
      doc_tokens: words of the passage.
      tokenizer: tokenizer that produced the wordpieces.
      passage: text of the passage, in which `Window.spans` locate the
        characters of answers; None: `project_to_passage` searches answers in
        `doc_tokens`.
    """
    parts = []
    pairs = zip(windows, outputs, strict=True)
    for number, (window, output) in enumerate(pairs):
        parts.append(_allowed_spans(rule, number, window, output))
    if not parts:
        return [Answer("empty", 0.0, 0.0)]
    spans = _Spans(*map(np.concatenate, zip(*parts, strict=True)))
    # A stable sort keeps equal scores in the order of windows, starts and ends.
    order = np.argsort(-(spans.start_score + spans.end_score), kind="stable")
    answers: dict[str, Answer] = {}
    for row in order:
        if len(answers) >= rule.n_best_size:
            break
        window = windows[spans.window[row]]
        start, end = spans.start[row], spans.end[row]
        span = None
        if passage is not None:
            span = _character_span(window, start, end)
            text = passage[slice(*span)]
        else:
            text = _search_text(window, start, end, doc_tokens, tokenizer)
        if text not in answers:
            scores = spans.start_score[row], spans.end_score[row]
            words = int(window.words[start]), int(window.words[end])
            answers[text] = Answer(text, *scores, words, span)
    return list(answers.values()) or [Answer("empty", 0.0, 0.0)]


def _character_span(window: Window, start: int, end: int) -> tuple[int, int]:
    """Return the character span from wordpiece `start` to wordpiece `end`."""
    if window.spans is None:
        raise ValueError(
            f"window {window.eid} has no character offsets, but a passage was"
            " passed. Set Window.spans, or pass no passage"
        )
    part = window.spans[start : end + 1]
    return int(part[:, 0].min()), int(part[:, 1].max())


def _search_text(
    window: Window,
    start: int,
    end: int,
    doc_tokens: Sequence[str],
    tokenizer: BasicTokenizer,
) -> str:
    """Search the passage for an answer's text, as the original does."""
    words = doc_tokens[window.words[start] : window.words[end] + 1]
    joined = " ".join(window.tokens[start : end + 1])
    joined = joined.replace(" ##", "").replace("##", "")
    joined = " ".join(joined.split())
    return project_to_passage(joined, " ".join(words), tokenizer)


def probabilities(answers: Sequence[Answer]) -> list[float]:
    """Return the softmax of the scores of one or more answers."""
    scores = np.array([answer.score for answer in answers], np.float64)
    odds = np.exp(scores - scores.max())
    return (odds / odds.sum()).tolist()


def _allowed_spans(
    rule: AnswerRule,
    number: int,
    window: Window,
    output: Row,
) -> _Spans:
    """Return the candidate spans of a window."""
    names = SPAN_OUTPUTS[rule.joint_prediction]
    arrays = [np.asarray(output[name]) for name in names]
    if rule.joint_prediction:
        # The head chose the best starts and, separately for each of these
        # starts, the best ends.
        start_score, start, end_score, end = arrays
        grid = np.broadcast_arrays(
            start[:, None], end, start_score[:, None], end_score
        )
    else:
        # Each of the best starts is combined with each of the best ends,
        # because an end has the same score for all starts.
        best = [
            np.argsort(-logits, kind="stable")[: rule.n_best_size]
            for logits in arrays
        ]
        start, end = np.meshgrid(*best, indexing="ij")
        start_logits, end_logits = arrays
        grid = [start, end, start_logits[start], end_logits[end]]
    start, end, start_score, end_score = (part.ravel() for part in grid)
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
        & (length <= rule.max_answer_length)
    )
    columns = [part[allowed] for part in (start, end, start_score, end_score)]
    return _Spans(np.full(len(columns[0]), number), *columns)


def project_to_passage(
    answer: str, passage: str, tokenizer: BasicTokenizer
) -> str:
    """Return the part of a passage that corresponds to a tokenized answer.

    Tokenization lower-cases a text, separates its punctuation and may strip its
    accents. The passage is tokenized in the same way, and the answer is
    searched in the tokenized passage. The positions of the answer's first and
    last characters are mapped to the original passage by counting characters
    that are not spaces. If tokenization changes the number of characters, or if
    the search fails, the whole passage is returned.
    """
    tokenized = " ".join(tokenizer.tokenize(passage))
    start = tokenized.find(answer)
    if start < 0:
        return passage
    end = start + len(answer) - 1
    passage_indices = [i for i, c in enumerate(passage) if c != " "]
    indices = [i for i, c in enumerate(tokenized) if c != " "]
    if len(passage_indices) != len(indices):
        return passage
    to_passage = dict(zip(indices, passage_indices, strict=True))
    if start not in to_passage or end not in to_passage:
        return passage
    return passage[to_passage[start] : to_passage[end] + 1]
