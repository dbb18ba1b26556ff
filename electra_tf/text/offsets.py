# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wordpieces with the characters of the text that they come from."""

import re
import unicodedata
from typing import NamedTuple

from electra_tf.text.tokenization import (
    JOINER,
    BasicTokenizer,
    FullTokenizer,
    Memo,
    is_accent,
    is_cjk,
    is_punctuation,
    is_removed,
    is_whitespace,
)

# No wordpiece has characters on both sides of these.
_WORD = re.compile(r"[^ \t\r\n]+")


class Piece(NamedTuple):
    """A wordpiece and its place in the text."""

    token: str
    start: int  # characters before it
    end: int  # ... and before the character after it


class _Character(NamedTuple):
    """A character after normalization."""

    value: str
    source: int  # place in the text of the character that it comes from


class OffsetTokenizer:
    """Splits text like `FullTokenizer` and keeps each wordpiece's place.

    The places are those of `GraphTokenizer.encode_with_offsets`, in characters:
    a dropped accent belongs to the character before it, a removed character
    only to a wordpiece that has others on both sides of it, an unknown word is
    one wordpiece, and one character that becomes several (Hangul) may belong
    to several wordpieces.
    """

    def __init__(self, tokenizer: FullTokenizer):
        self._basic: BasicTokenizer = tokenizer.basic_tokenizer
        self._wordpiece = tokenizer.wordpiece_tokenizer
        self._drops_accents = bool(
            self._basic.do_lower_case and self._basic.strip_accents
        )
        self._pieces_of_word = Memo(self._split)

    def tokenize(self, text: str) -> list[Piece]:
        """Returns the wordpieces of a text in order."""
        pieces = []
        for match in _WORD.finditer(text):
            first = match.start()
            for token, start, end in self._pieces_of_word[match.group()]:
                pieces.append(Piece(token, first + start, first + end))
        return pieces

    def _split(self, text: str) -> tuple[Piece, ...]:
        ends = self._ends(text)
        pieces: list[Piece] = []
        for part in _parts(text):
            for word in _words(self._normalize(text, part)):
                pieces += self._split_word(word, ends)
        return tuple(pieces)

    def _split_word(
        self, word: list[_Character], ends: list[int]
    ) -> list[Piece]:
        tokens = self._wordpiece.split_word("".join(c.value for c in word))
        pieces, first = [], 0
        for number, token in enumerate(tokens):
            size = len(token) - (len(JOINER) if number else 0)
            sources = [c.source for c in word[first : first + size]]
            if token == self._wordpiece.unk_token:
                sources = [c.source for c in word]
            first += size
            # Canonical order may have moved marks: the first character is not
            # always the leftmost.
            end = max(ends[source] for source in sources)
            pieces.append(Piece(token, min(sources), end))
        return pieces

    def _ends(self, text: str) -> list[int]:
        """Returns the end of each character with the accents dropped after."""
        ends = list(range(1, len(text) + 1))
        if not self._drops_accents or text.isascii():
            return ends
        base = None  # the last character that is neither removed nor dropped
        for place, char in enumerate(text):
            if is_removed(char):
                continue
            if not all(map(is_accent, self._decompose(char.lower()))):
                base = place
            elif base is not None:
                ends[base] = place + 1
        return ends

    def _normalize(self, text: str, part: list[int]) -> list[_Character]:
        """Lower-cases a part (places in the text) and drops accents."""
        chars = [_Character(text[place], place) for place in part]
        if not self._basic.do_lower_case:
            return chars
        # A sigma's small form depends on its neighbours, so the part is
        # lower-cased as a whole; every other character stands for itself.
        lowered = "".join(char.value for char in chars).lower()
        sources = [c.source for c in chars for _ in c.value.lower()]
        chars = list(map(_Character, lowered, sources))
        if not self._drops_accents or lowered.isascii():
            return chars
        chars = [
            _Character(value, char.source)
            for char in chars
            for value in self._decompose(char.value)
        ]
        kept = _in_canonical_order(chars)
        return [char for char in kept if not is_accent(char.value)]

    @staticmethod
    def _decompose(text: str) -> str:
        return unicodedata.normalize("NFD", text)


def _parts(text: str) -> list[list[int]]:
    """Splits at white space and ideographs: places of what cleaning keeps."""
    parts: list[list[int]] = [[]]
    for place, char in enumerate(text):
        if is_removed(char):
            continue
        # `str.split` knows two separators more than cleaning does.
        if is_whitespace(char) or char.isspace():
            parts.append([])
        elif is_cjk(char):
            parts += [[place], []]
        else:
            parts[-1].append(place)
    return parts


def _words(chars: list[_Character]) -> list[list[_Character]]:
    """Sets punctuation marks apart."""
    words: list[list[_Character]] = []
    inside = False  # whether the last word may go on
    for char in chars:
        if inside and not is_punctuation(char.value):
            words[-1].append(char)
            continue
        words.append([char])
        inside = not is_punctuation(char.value)
    return words


def _in_canonical_order(chars: list[_Character]) -> list[_Character]:
    """Orders the marks after each base character as NFD does."""
    keys, base = [], 0
    for char in chars:
        kind = unicodedata.combining(char.value)
        base += not kind
        keys.append((base, kind))
    order = sorted(range(len(chars)), key=keys.__getitem__)
    return [chars[place] for place in order]
