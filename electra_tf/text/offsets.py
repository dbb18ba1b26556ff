# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wordpieces with their positions in the text."""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

from electra_tf.text import library_characters as library
from electra_tf.text.basic_tokenizer import BasicTokenizer
from electra_tf.text.characters import (
    is_accent,
    is_cjk,
    is_punctuation,
    is_removed,
    is_whitespace,
)
from electra_tf.text.library_tokenizer import LibraryBasicTokenizer
from electra_tf.text.memo import Memo
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.wordpiece import JOINER

# Pattern of a word. No wordpiece spans white space, so words can be split
# separately.
_WORD = re.compile(r"[^ \t\r\n]+")


class Piece(NamedTuple):
    """A wordpiece with its position in the text."""

    token: str
    start: int  # position of the first character
    end: int  # position after the last character


class _Character(NamedTuple):
    """A character after normalization."""

    value: str
    source: int  # position of the character's origin in the text


class OffsetTokenizer:
    """A `FullTokenizer` that also returns the positions of wordpieces.

    The positions equal those of `GraphTokenizer.encode_with_offsets`, but count
    characters instead of bytes. A stripped accent belongs to the preceding
    character. A removed character belongs to a wordpiece only if other
    characters of the wordpiece are on both sides. An unknown word is a single
    wordpiece. A character that becomes several characters (Hangul) may belong
    to several wordpieces.
    """

    def __init__(self, tokenizer: FullTokenizer):
        self._tokenizer = tokenizer
        self._basic: BasicTokenizer = tokenizer.basic_tokenizer
        self._wordpiece = tokenizer.wordpiece_tokenizer
        self._drops_accents = bool(
            self._basic.do_lower_case and self._basic.strip_accents
        )
        split, self._word = self._split, _WORD
        if tokenizer.splitter:
            split = self._split_like_library
            self._word = tokenizer.splitter.alone
        self._pieces_of_word = Memo(split)
        self._pieces_of_part = Memo(self._split_part)

    def tokenize(self, text: str) -> list[Piece]:
        """Return the wordpieces of a text in order."""
        pieces = []
        for match in self._word.finditer(text):
            first = match.start()
            for token, start, end in self._pieces_of_word[match.group()]:
                pieces.append(Piece(token, first + start, first + end))
        return pieces

    def _split(self, text: str) -> tuple[Piece, ...]:
        ends = self._ends(text)
        pieces: list[Piece] = []
        for positions in _parts(text):
            part = "".join([text[position] for position in positions])
            for token, first, last in self._pieces_of_part[part]:
                start, end = positions[first], ends[positions[last]]
                pieces.append(Piece(token, start, end))
        return tuple(pieces)

    def _split_part(self, part: str) -> tuple[Piece, ...]:
        """Return the wordpieces of a part of a text, and their positions in it.

        Unlike elsewhere, `end` is the position of the last character.
        """
        positions = list(range(len(part)))
        pieces: list[Piece] = []
        for word in _words(self._normalize(part)):
            pieces += self._split_word(word, positions)
        return tuple(pieces)

    def _split_like_library(self, text: str) -> tuple[Piece, ...]:
        splitter, pieces = self._tokenizer.splitter, []
        ends = library_ends(text, self._tokenizer)
        start = 0
        for first, last, token in _matches(splitter.raw_pattern, text):
            pieces += self._split_between(text, range(start, first), ends)
            pieces.append(Piece(token, first, last))
            start = last
        pieces += self._split_between(text, range(start, len(text)), ends)
        return tuple(pieces)

    def _split_between(
        self, text: str, positions: range, ends: list[int]
    ) -> list[Piece]:
        """Split the text between two added tokens of the raw text."""
        basic, splitter = self._basic, self._tokenizer.splitter
        cleaned = [
            _Character(value, position)
            for position in positions
            for value in basic.clean(text[position])
        ]
        pieces: list[Piece] = []
        start, cleaned_text = 0, "".join(char.value for char in cleaned)
        for first, last, number in splitter.find_words(cleaned_text):
            pieces += self._split_normalized(cleaned[start:first], ends)
            token = self._tokenizer.inv_vocab[number]
            pieces.append(_piece(token, cleaned[first:last], ends))
            start = last
        return pieces + self._split_normalized(cleaned[start:], ends)

    def _split_normalized(
        self, chars: list[_Character], ends: list[int]
    ) -> list[Piece]:
        """Normalize cleaned text; return its added tokens and wordpieces."""
        chars = _fold(chars, self._basic)
        splitter, pieces, start = self._tokenizer.splitter, [], 0
        text = "".join(char.value for char in chars)
        for first, last, token in _matches(splitter.normalized_pattern, text):
            pieces += self._split_words(chars[start:first], ends)
            visible = [c for c in chars[first:last] if c.value != " "]
            name = self._tokenizer.inv_vocab[splitter.normalized[token]]
            pieces.append(_piece(name, visible, ends))
            start = last
        return pieces + self._split_words(chars[start:], ends)

    def _split_words(
        self, chars: list[_Character], ends: list[int]
    ) -> list[Piece]:
        pieces: list[Piece] = []
        for word in _whitespace_words(chars):
            for part in _words(word, library.is_punctuation):
                pieces += self._split_word(part, ends)
        return pieces

    def _split_word(
        self, word: list[_Character], ends: list[int]
    ) -> list[Piece]:
        tokens = self._wordpiece.split_word("".join(c.value for c in word))
        pieces, first = [], 0
        for i, token in enumerate(tokens):
            size = len(token) - (len(JOINER) if i else 0)
            sources = [c.source for c in word[first : first + size]]
            if token == self._wordpiece.unk_token:
                sources = [c.source for c in word]
            first += size
            # Canonical ordering moves marks, so the first character is not
            # always the leftmost in the text.
            end = max(ends[source] for source in sources)
            pieces.append(Piece(token, min(sources), end))
        return pieces

    def _ends(self, text: str) -> list[int]:
        """Return the end of each character, including its stripped accents."""
        ends = list(range(1, len(text) + 1))
        if not self._drops_accents or not any(map(_is_dropped, text)):
            return ends
        base = None  # last character that is not deleted
        for position, char in enumerate(text):
            if _role_of(char) == _REMOVED:
                continue
            if not _is_dropped(char):
                base = position
            elif base is not None:
                ends[base] = position + 1
        return ends

    def _normalize(self, part: str) -> list[_Character]:
        """Lower-case a part of a text and strip its accents."""
        chars = list(map(_Character, part, range(len(part))))
        if not self._basic.do_lower_case:
            return chars
        # The lower-case form of a sigma depends on its neighbors, so the whole
        # part is lower-cased at once.
        lowered = "".join(char.value for char in chars).lower()
        sources = [c.source for c in chars for _ in c.value.lower()]
        chars = list(map(_Character, lowered, sources))
        if not self._drops_accents or lowered.isascii():
            return chars
        chars = [
            _Character(value, char.source)
            for char in chars
            for value in _decompose(char.value)
        ]
        chars = _in_canonical_order(chars)
        return [char for char in chars if not is_accent(char.value)]


def _decompose(text: str) -> str:
    return unicodedata.normalize("NFD", text)


# Roles of a character in cleaning.
_REMOVED, _SPACE, _APART, _INSIDE = range(4)


@functools.lru_cache(2**16)
def _role_of(char: str) -> int:
    if is_removed(char):
        return _REMOVED
    # `is_whitespace` excludes line and paragraph separators, but `str.split`
    # splits there, too.
    if is_whitespace(char) or char.isspace():
        return _SPACE
    return _APART if is_cjk(char) else _INSIDE


@functools.lru_cache(2**16)
def _is_dropped(char: str) -> bool:
    """Return whether normalization deletes a character as an accent."""
    if is_removed(char):
        return False
    return all(map(is_accent, _decompose(char.lower())))


def _parts(text: str) -> list[list[int]]:
    """Return the character positions of each word and each ideograph."""
    parts: list[list[int]] = [[]]
    for position, char in enumerate(text):
        role = _role_of(char)
        if role == _INSIDE:
            parts[-1].append(position)
        elif role == _APART:
            parts += [[position], []]
        elif role == _SPACE:
            parts.append([])
    return parts


def _words(
    chars: list[_Character],
    is_punctuation: Callable[[str], bool] = is_punctuation,
) -> list[list[_Character]]:
    """Split characters into words and punctuation marks."""
    result: list[list[_Character]] = []
    inside = False  # whether the last word can continue
    for char in chars:
        if inside and not is_punctuation(char.value):
            result[-1].append(char)
            continue
        result.append([char])
        inside = not is_punctuation(char.value)
    return result


def _in_canonical_order(
    chars: list[_Character],
    combining_class: Callable[[str], int] = unicodedata.combining,
) -> list[_Character]:
    """Sort the marks after each base character as NFD does."""
    keys, base = [], 0
    for char in chars:
        mark_class = combining_class(char.value)
        if not mark_class:
            base += 1
        keys.append((base, mark_class))
    order = sorted(range(len(chars)), key=keys.__getitem__)
    return [chars[position] for position in order]


# The following functions split text as the library `tokenizers` does.


def library_ends(text: str, tokenizer: FullTokenizer) -> list[int]:
    """Return the end of each character, including its stripped accents."""
    basic, ends = tokenizer.basic_tokenizer, list(range(1, len(text) + 1))
    if not basic.strip_accents or text.isascii():
        return ends
    # Added tokens that are found in the raw text keep their accents.
    in_tokens = set()
    for first, last, _ in _matches(tokenizer.splitter.raw_pattern, text):
        in_tokens.update(range(first, last))
    base = None
    for position, char in enumerate(text):
        if position in in_tokens:
            base = None
        elif basic.clean(char) and not basic.fold(char):
            if base is not None:
                ends[base] = position + 1
        elif basic.clean(char):
            base = position
    return ends


def _matches(
    pattern: re.Pattern | None, text: str
) -> Iterator[tuple[int, int, str]]:
    for match in pattern.finditer(text) if pattern else ():
        yield match.start(), match.end(), match.group()


def _whitespace_words(chars: list[_Character]) -> Iterator[list[_Character]]:
    """Yield the words between white space."""
    word: list[_Character] = []
    for char in chars:
        if not library.is_whitespace(char.value):
            word.append(char)
        elif word:
            yield word
            word = []
    if word:
        yield word


def _fold(
    chars: list[_Character], basic: LibraryBasicTokenizer
) -> list[_Character]:
    """Apply the settings for accents and casing to characters."""
    if basic.strip_accents:
        chars = [
            _Character(value, char.source)
            for char in chars
            for value in library.decompose(char.value)
        ]
        chars = _in_canonical_order(chars, library.combining_class)
        chars = [char for char in chars if not library.is_accent(char.value)]
    if not basic.do_lower_case:
        return chars
    return [
        _Character(value, char.source)
        for char in chars
        for value in library.lower(char.value)
    ]


def _piece(token: str, chars: list[_Character], ends: list[int]) -> Piece:
    sources = [char.source for char in chars]
    return Piece(token, min(sources), max(ends[source] for source in sources))
