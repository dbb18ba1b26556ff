# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What scoring needs to know of a question."""

from collections.abc import Sized
from typing import NamedTuple, Protocol

from configure.errors import UserError


class Question(NamedTuple):
    """A question and the answers that count as right.

    Attributes:
      key: its id.
      answers: texts; none for a question without an answer.
    """

    key: str
    answers: tuple[str, ...]


class QuestionExample(Protocol):
    """An example of a question answering task, as scoring sees it."""

    @property
    def key(self) -> str:
        """The question's id in predictions."""

    @property
    def answers(self) -> tuple[str, ...]:
        """The expected answers."""

    @property
    def doc_tokens(self) -> list[str]:
        """The passage's words."""


def require_answers(scored: Sized, n_questions: int) -> None:
    """Raises unless there is something to score."""
    if not len(scored):
        raise UserError(
            f"none of {n_questions} questions has both a prediction and an"
            " expected answer, so there is nothing to score; evaluate on a"
            " split with answers"
        )
