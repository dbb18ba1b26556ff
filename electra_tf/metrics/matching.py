# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Units by which answers are compared: words of any script, or characters.

The official scripts lower-case answers, remove English articles and ASCII
punctuation, and split answers into words at white space. To these scripts, a
whole answer in Chinese, Japanese or Thai is one word. This module therefore
replaces each unit by a name of ASCII letters and digits. The official scripts
leave such names unchanged, and compute the metrics of the replaced answers.
"""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from electra_tf.text.measured_words import (
    SPACELESS_LETTERS,
    VERSION,
    is_english,
    split_into_characters,
    split_into_words,
)

# Values of a task's `match`, with their descriptions in results.
MATCHES: Mapping[str, str] = {
    "words": (
        "match words: as the official script where question and passage are in"
        f" English, else by words of any script (version {VERSION})"
    ),
    "characters": f"match characters (version {VERSION})",
}
_SPLITTERS = {"words": split_into_words, "characters": split_into_characters}


class ComparedQuestion(Protocol):
    """A question with a passage and expected answers."""

    key: str
    question_text: str
    answers: tuple[str, ...]

    @property
    def doc_tokens(self) -> list[str]:
        """Words of the passage."""


class EncodedQuestion:
    """A question whose answers are encoded for the official scripts."""

    def __init__(self, key: str, answers: tuple[str, ...]) -> None:
        self.key, self.answers = key, answers


def keeps_script(match: str | None, question: ComparedQuestion) -> bool:
    """Return whether the official script receives answers without encoding."""
    if match is None:
        return True
    if match == "characters" or any(map(_SPACELESS.search, question.answers)):
        return False
    passage = " ".join(question.doc_tokens)
    return _is_english(f"{question.question_text} {passage}")


_SPACELESS = re.compile(f"[{SPACELESS_LETTERS}]")
_is_english = functools.lru_cache(1024)(is_english)


def answer_encoder(
    match: str | None, question: ComparedQuestion
) -> Callable[[str], str]:
    """Return a function that encodes answers for the official scripts.

    Args:
      match: one of `MATCHES`; None: words of the official scripts.
      question: question whose language determines how words are split.
    """
    if match is None or keeps_script(match, question):
        return lambda text: text
    split = _SPLITTERS[match]

    def encode(text: str) -> str:
        # A text that consists of symbols, such as "++", has no words, so its
        # parts between white space are compared.
        units = split(text) or text.split()
        return " ".join(_name(unit) for unit in units)

    return encode


def encode_answers(
    match: str | None,
    questions: Sequence[ComparedQuestion],
    predictions: Mapping[str, str],
) -> tuple[Sequence[ComparedQuestion | EncodedQuestion], Mapping[str, str]]:
    """Encode questions and predictions for the official scripts.

    Args:
      predictions: answers by question key; questions may lack an answer.
    """
    if match is None:
        return questions, predictions
    encoded, texts = [], dict(predictions)
    for question in questions:
        encode = answer_encoder(match, question)
        answers = tuple(encode(answer) for answer in question.answers)
        encoded.append(EncodedQuestion(question.key, answers))
        if question.key in predictions:
            texts[question.key] = encode(predictions[question.key])
    return encoded, texts


def _name(unit: str) -> str:
    """Return a unit's name: ASCII letters and digits, never an article."""
    return f"u{unit.encode('utf-8', 'surrogatepass').hex()}"
