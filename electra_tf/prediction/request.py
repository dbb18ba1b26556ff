# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What somebody asks a model, and what turns outputs into answers.

One `Answerer` a kind of task: it makes an example of a question, and answers
of what the task's head says.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from configure.errors import UserError
from electra_tf.finetuning.task import Example

Outputs = dict[str, np.ndarray]


class BadInputError(UserError):
    """Something that this model cannot be asked."""

    def __init__(self, found: Any, expected: str) -> None:
        text = found if isinstance(found, str) else repr(found)
        text = text if len(text) <= 80 else text[:77] + "..."
        super().__init__(f"found {text}; expected {expected}")
        self.found, self.expected = text, expected


@dataclasses.dataclass
class Asked:
    """An example with what its head said of it.

    Attributes:
      example: what was asked.
      rows: the head's outputs, one dictionary an input row (QA: a window).
    """

    example: Example
    rows: Sequence[Outputs]


class Answerer(Protocol):
    """Asks one kind of task.

    Attributes:
      fed: names of the task's own features that its head reads besides the
        shared ones, all int32 [L].
      outputs: names of the head's outputs that answers are made of.
    """

    fed: tuple[str, ...]
    outputs: tuple[str, ...]

    def column_names(self) -> dict[str, tuple[str, ...]]:
        """Returns the values of a question, and what files call them."""

    def example(self, item: Any, number: int) -> Example:
        """Makes an example of what somebody asks.

        Raises:
          BadInputError: it is nothing that can be asked.
        """

    def is_single(self, item: Any) -> bool:
        """Whether something is one question rather than a list of them."""

    def answers(self, asked: Sequence[Asked]) -> list[dict[str, Any]]:
        """Returns the answers, plain values that JSON can hold."""


def texts_of(
    item: Any, names: Sequence[tuple[str, ...]], expected: str
) -> list[str | None]:
    """Takes texts out of a question.

    Returns:
      A text for each, None for an optional one that is absent.

    Raises:
      BadInputError: something else.
    """
    required = sum(not name[0].endswith("?") for name in names)
    if isinstance(item, Mapping):
        values = [_named(item, options) for options in names]
    elif isinstance(item, str | bytes):
        values = [item]
    elif isinstance(item, Sequence):
        values = list(item)
    else:
        raise BadInputError(item, expected)
    if not required <= len(values) <= len(names):
        raise BadInputError(item, expected)
    values += [None] * (len(names) - len(values))
    texts = [_text(value) for value in values]
    for i, text in enumerate(texts):
        if text is None and (values[i] is not None or i < required):
            raise BadInputError(item, expected)
    return texts


def _named(item: Mapping[str, Any], options: tuple[str, ...]) -> Any:
    for name in options:
        value = item.get(name.rstrip("?"))
        if value is not None:
            return value
    return None


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "ignore")
    return value if isinstance(value, str) else None
