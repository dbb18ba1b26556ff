# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Units in which answers are compared: words of any script, or characters.

The official scripts lower-case, remove English articles and the punctuation of
ASCII, and part words at white space, so that in Chinese, Japanese or Thai a
whole answer is one word. They go on to count here, but get each unit under a
name that they leave as it is.
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

# Values of a task's `match`, and how results name them.
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
    doc_tokens: list[str]  # the passage's words


class EncodedQuestion:
    """A question whose answers are encoded for the official scripts."""

    def __init__(self, key: str, answers: tuple[str, ...]) -> None:
        self.key, self.answers = key, answers


def keeps_script(match: str | None, question: ComparedQuestion) -> bool:
    """Return whether answers go to the official script as they are."""
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
    """Return a function from an answer to what the official scripts compare.

    Args:
      match: one of `MATCHES`; None for the official scripts' own words.
      question: it decides whether words are English ones.
    """
    if keeps_script(match, question):
        return lambda text: text
    split = _SPLITTERS[match]

    def encode(text: str) -> str:
        # Of symbols alone, such as "++", there are no words.
        units = split(text) or text.split()
        return " ".join(_name(unit) for unit in units)

    return encode


def encode_answers(
    match: str | None,
    questions: Sequence[ComparedQuestion],
    predictions: Mapping[str, str],
) -> tuple[Sequence[ComparedQuestion | EncodedQuestion], Mapping[str, str]]:
    """Return questions and predictions as the official scripts compare them.

    Args:
      predictions: answers by the questions' keys; some may be missing.
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
    """Letters and digits of ASCII that are no article."""
    return f"u{unit.encode('utf-8', 'surrogatepass').hex()}"
