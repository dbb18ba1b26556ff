# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The classes of characters that tokenization tells apart.

Every class is read from Python's own `unicodedata`, as in the original, so it
follows the Unicode version of the running Python: a code point that is
unassigned there counts as a control character and is removed.
"""

import abc
import unicodedata

# Inclusive ranges of the code points that become words of their own. These are
# the blocks of CJK ideographs as they stood in 2018; hiragana, katakana, hangul
# and the extensions added since are not in them.
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

# Control characters at which `str.split()` nevertheless splits. They are to be
# deleted, which joins their neighbours, so this must happen before any split.
SPLITTING_CONTROLS = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"

_SPACING_CONTROLS = frozenset("\t\n\r")


def is_whitespace(char: str) -> bool:
    """Whether a character becomes a space.

    Source: model/tokenization.py `_is_whitespace`.
    """
    return char in _SPACING_CONTROLS or unicodedata.category(char) == "Zs"


def is_control(char: str) -> bool:
    """Whether a character counts as a control: C*, but tab and line ends no.

    Source: model/tokenization.py `_is_control`.
    """
    if char in _SPACING_CONTROLS:
        return False
    return unicodedata.category(char).startswith("C")


def is_removed(char: str) -> bool:
    """Whether cleaning deletes a character: controls and U+FFFD.

    Source: model/tokenization.py `BasicTokenizer._clean_text`.
    """
    return char == "\ufffd" or is_control(char)


def is_punctuation(char: str) -> bool:
    """Whether a character is a token of its own as punctuation.

    Source: model/tokenization.py `_is_punctuation`.
    """
    if char.isascii():
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char).startswith("P")


def is_cjk(char: str) -> bool:
    """Whether a character is an ideograph, set apart by spaces.

    Source: model/tokenization.py `BasicTokenizer._is_chinese_char`.
    """
    code_point = ord(char)
    return any(first <= code_point <= last for first, last in CJK_RANGES)


def is_accent(char: str) -> bool:
    """Whether stripping accents drops a character of decomposed (NFD) text.

    Source: model/tokenization.py `BasicTokenizer._run_strip_accents`.
    """
    return unicodedata.category(char) == "Mn"


class _Table(dict, abc.ABC):
    """A `str.translate` table whose rows are worked out when first wanted.

    Filling it for all of Unicode would delay every start.
    """

    def __missing__(self, code_point: int) -> str | int | None:
        row = self._row(chr(code_point))
        self[code_point] = row
        return row

    @abc.abstractmethod
    def _row(self, char: str) -> str | int | None:
        """What a character becomes; None deletes it."""


class CleaningTable(_Table):
    """Deletes what is removed, makes spaces plain, sets ideographs apart."""

    def _row(self, char: str) -> str | int | None:
        if is_removed(char):
            return None
        if is_whitespace(char):
            return " "
        # A character that stays goes in as a number: `translate` is quicker.
        return f" {char} " if is_cjk(char) else ord(char)


class SplittingTable(_Table):
    """Sets punctuation apart by spaces; optionally drops accents."""

    def __init__(self, drop_accents: bool):
        super().__init__()
        self._drop_accents = drop_accents

    def __reduce__(self) -> tuple:
        return SplittingTable, (self._drop_accents,)

    def _row(self, char: str) -> str | int | None:
        if self._drop_accents and is_accent(char):
            return None
        return f" {char} " if is_punctuation(char) else ord(char)
