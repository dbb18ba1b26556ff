# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wordpieces with the characters of the text that they come from."""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

from electra_tf.text import tokenizers_characters as library
from electra_tf.text.library_tokenizer import LibraryBasicTokenizer
from electra_tf.text.memo import Memo
from electra_tf.text.tokenization import (
    BasicTokenizer,
    FullTokenizer,
    is_accent,
    is_cjk,
    is_punctuation,
    is_removed,
    is_whitespace,
)
from electra_tf.text.wordpiece import JOINER

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
        """Returns the wordpieces of a text in order."""
        pieces = []
        for match in self._word.finditer(text):
            first = match.start()
            for token, start, end in self._pieces_of_word[match.group()]:
                pieces.append(Piece(token, first + start, first + end))
        return pieces

    def _split(self, text: str) -> tuple[Piece, ...]:
        ends = self._ends(text)
        pieces: list[Piece] = []
        for places in _parts(text):
            part = "".join([text[place] for place in places])
            for token, first, last in self._pieces_of_part[part]:
                pieces.append(Piece(token, places[first], ends[places[last]]))
        return tuple(pieces)

    def _split_part(self, part: str) -> tuple[Piece, ...]:
        """Returns wordpieces with their first and last characters' places."""
        places = list(range(len(part)))
        pieces: list[Piece] = []
        for word in _words(self._normalize(part)):
            pieces += self._split_word(word, places)
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
        self, text: str, places: range, ends: list[int]
    ) -> list[Piece]:
        """Splits what stands between tokens of the raw text."""
        basic, splitter = self._basic, self._tokenizer.splitter
        cleaned = [
            _Character(value, place)
            for place in places
            for value in basic.clean(text[place])
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
        """Finds tokens of normalized text; splits what is between."""
        chars = _fold(chars, self._basic)
        splitter, pieces, start = self._tokenizer.splitter, [], 0
        text = "".join(char.value for char in chars)
        for first, last, token in _matches(splitter.normalized_pattern, text):
            pieces += self._split_words(chars[start:first], ends)
            own = [c for c in chars[first:last] if c.value != " "]
            name = self._tokenizer.inv_vocab[splitter.normalized[token]]
            pieces.append(_piece(name, own, ends))
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
        if not self._drops_accents or not any(map(_is_dropped, text)):
            return ends
        base = None  # the last character that is neither removed nor dropped
        for place, char in enumerate(text):
            if _kind(char) == _REMOVED:
                continue
            if not _is_dropped(char):
                base = place
            elif base is not None:
                ends[base] = place + 1
        return ends

    def _normalize(self, part: str) -> list[_Character]:
        """Lower-cases a part of a text and drops accents."""
        chars = list(map(_Character, part, range(len(part))))
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
            for value in _decompose(char.value)
        ]
        kept = _in_canonical_order(chars)
        return [char for char in kept if not is_accent(char.value)]


def _decompose(text: str) -> str:
    return unicodedata.normalize("NFD", text)


# What cleaning makes of a character.
_REMOVED, _SPACE, _APART, _INSIDE = range(4)


@functools.lru_cache(2**16)
def _kind(char: str) -> int:
    if is_removed(char):
        return _REMOVED
    # `str.split` knows two separators more than cleaning does.
    if is_whitespace(char) or char.isspace():
        return _SPACE
    return _APART if is_cjk(char) else _INSIDE


@functools.lru_cache(2**16)
def _is_dropped(char: str) -> bool:
    """Whether a character is an accent that lower-casing text loses."""
    if is_removed(char):
        return False
    return all(map(is_accent, _decompose(char.lower())))


def _parts(text: str) -> list[list[int]]:
    """Splits at white space and ideographs: places of what cleaning keeps."""
    parts: list[list[int]] = [[]]
    for place, char in enumerate(text):
        kind = _kind(char)
        if kind == _INSIDE:
            parts[-1].append(place)
        elif kind == _APART:
            parts += [[place], []]
        elif kind == _SPACE:
            parts.append([])
    return parts


def _words(
    chars: list[_Character],
    is_punctuation: Callable[[str], bool] = is_punctuation,
) -> list[list[_Character]]:
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


def _in_canonical_order(
    chars: list[_Character],
    combining_class: Callable[[str], int] = unicodedata.combining,
) -> list[_Character]:
    """Orders the marks after each base character as NFD does."""
    keys, base = [], 0
    for char in chars:
        kind = combining_class(char.value)
        base += not kind
        keys.append((base, kind))
    order = sorted(range(len(chars)), key=keys.__getitem__)
    return [chars[place] for place in order]


# As the library splits text.


def library_ends(text: str, tokenizer: FullTokenizer) -> list[int]:
    """Returns the end of each character with the accents dropped after."""
    basic, ends = tokenizer.basic_tokenizer, list(range(1, len(text) + 1))
    if not basic.strip_accents or text.isascii():
        return ends
    barred = set()  # places in tokens of the raw text, which end as they are
    for first, last, _ in _matches(tokenizer.splitter.raw_pattern, text):
        barred.update(range(first, last))
    base = None
    for place, char in enumerate(text):
        if place in barred:
            base = None
        elif basic.clean(char) and not basic.fold(char):
            if base is not None:
                ends[base] = place + 1
        elif basic.clean(char):
            base = place
    return ends


def _matches(
    pattern: re.Pattern | None, text: str
) -> Iterator[tuple[int, int, str]]:
    for match in pattern.finditer(text) if pattern else ():
        yield match.start(), match.end(), match.group()


def _whitespace_words(chars: list[_Character]) -> Iterator[list[_Character]]:
    """Yields what is between white space."""
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
    """Drops accents and lower-cases, as far as the tokenizer does."""
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
