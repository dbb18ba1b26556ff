# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The check that labels differ in their meaning, not only in their notation."""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import NamedTuple

from configure.errors import UserError

# The pattern of a number: sign, digits, fraction.
_NUMBER = re.compile(r"([+-]?)([0-9]+)(\.[0-9]+)?")


class _Difference(NamedTuple):
    """A difference between texts that does not change their meaning."""

    location: str  # description of the difference, for messages
    normalize: Callable[[str], str]  # removes the difference from a text
    show: Callable[[str], str]  # formats a label so that the difference shows


def _without_invisible(text: str) -> str:
    """Return a text without format characters, which print nothing."""
    return "".join(c for c in text if unicodedata.category(c) != "Cf")


def _normalize_number(text: str) -> str:
    """Return a number without "+", and without a fraction of zeros.

    Leading zeros stay, because "01" and "1" may be codes. The trailing zeros of
    other fractions stay, because "1.1" and "1.10" may be versions.
    """
    match = _NUMBER.fullmatch(text)
    if not match:
        return text
    sign, digits, fraction = match.groups(default="")
    number = digits + fraction if fraction.strip(".0") else digits
    is_negative = sign == "-" and number.strip(".0")
    return f"-{number}" if is_negative else number


def _normalize_boolean(text: str) -> str:
    lower = text.lower()
    return lower if lower in ("true", "false") else text


# The order matters: each function receives the result of the one before.
_DIFFERENCES = (
    _Difference("in invisible characters", _without_invisible, ascii),
    _Difference(
        "in the Unicode form of characters (NFC, NFD)",
        functools.partial(unicodedata.normalize, "NFC"),
        ascii,
    ),
    _Difference("in white space", str.strip, repr),
    _Difference("in the notation of numbers", _normalize_number, repr),
    _Difference("in upper and lower case", _normalize_boolean, repr),
)


def refuse_equal_labels(task_name: str, labels: Iterable[str]) -> None:
    """Raise a UserError if labels mean the same, such as "1" and "1.0"."""
    by_meaning: dict[str, str] = {}
    for label in labels:
        meaning = label
        for difference in _DIFFERENCES:
            meaning = difference.normalize(meaning)
        first = by_meaning.setdefault(meaning, label)
        if first != label:
            location, texts = _describe_difference(first, label)
            raise UserError(
                f"task {task_name}: its labels {texts} differ only {location}."
                " Write both labels in the same way, or list all labels under"
                " labels in the description of the task."
            )


def _describe_difference(first: str, second: str) -> tuple[str, str]:
    """Return where two labels of one meaning differ, and both as text."""
    texts = [first, second]
    for difference in _DIFFERENCES:
        texts = [difference.normalize(text) for text in texts]
        if texts[0] == texts[1]:
            break
    show = difference.show
    return difference.location, f"{show(first)} and {show(second)}"
