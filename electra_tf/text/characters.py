# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Character classes of the original's tokenizer.

Source: google-research/electra, model/tokenization.py.
"""

import unicodedata
from collections.abc import Callable

# Inclusive ranges of code points that become separate words: the CJK ideographs
# up to extension E of Unicode, without hiragana, katakana and hangul.
CJK_RANGES = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)

# Control characters at which `str.split()` splits. Cleaning deletes these
# characters and thereby joins their neighbors, so these characters must be
# deleted before any split.
SPLITTING_CONTROLS = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"

_SPACING_CONTROLS = frozenset("\t\n\r")


def is_whitespace(char: str) -> bool:
    """Return whether cleaning turns a character into a space.

    Source: `_is_whitespace`.
    """
    return char in _SPACING_CONTROLS or unicodedata.category(char) == "Zs"


def is_removed(char: str) -> bool:
    """Return whether cleaning deletes a character.

    Cleaning deletes the categories C* and U+FFFD, except tabs and line ends.

    Source: `_is_control`, `BasicTokenizer._clean_text`.
    """
    if char in _SPACING_CONTROLS:
        return False
    return char == "\ufffd" or unicodedata.category(char).startswith("C")


def is_punctuation(char: str) -> bool:
    """Return whether a character is punctuation, which is a separate token.

    Source: `_is_punctuation`.
    """
    if char.isascii():
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char).startswith("P")


def is_cjk(char: str) -> bool:
    """Return whether a character is a CJK ideograph.

    Source: `_is_chinese_char`.
    """
    code_point = ord(char)
    return any(first <= code_point <= last for first, last in CJK_RANGES)


def is_accent(char: str) -> bool:
    """Return whether accent stripping deletes a character of NFD text.

    Source: `_run_strip_accents`.
    """
    return unicodedata.category(char) == "Mn"


class CharacterTable(dict):
    """A `str.translate` table that computes entries at their first use."""

    def __init__(self, row: Callable[[str], str | None]):
        """Set the function that maps a character to its replacement.

        If the function returns None, the character is deleted.
        """
        super().__init__()
        self._row = row

    def __missing__(self, code_point: int) -> str | int | None:
        char = chr(code_point)
        row = self._row(char)
        # `str.translate` is faster if an unchanged character is stored as a
        # code point instead of a text.
        self[code_point] = code_point if row == char else row
        return self[code_point]

    def __reduce__(self) -> tuple:
        return CharacterTable, (self._row,)


def clean(char: str) -> str | None:
    """Return the cleaned form of a character, or None if it is deleted.

    White space becomes a plain space, and ideographs get spaces around them.
    """
    if is_removed(char):
        return None
    if is_whitespace(char):
        return " "
    return f" {char} " if is_cjk(char) else char


def _set_apart(char: str) -> str:
    return f" {char} " if is_punctuation(char) else char


def _set_apart_and_strip(char: str) -> str | None:
    return None if is_accent(char) else _set_apart(char)


def splitting_table(drop_accents: bool) -> CharacterTable:
    """Return a table that puts spaces around punctuation marks.

    With `drop_accents`, the table also deletes accents.
    """
    return CharacterTable(_set_apart_and_strip if drop_accents else _set_apart)
