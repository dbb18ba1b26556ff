# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strings to words in a graph, as `BasicTokenizer` does in Python.

All strings of a batch are one long row of characters, with a space after each
string, so that no word reaches from one string into the next. Every step is a
few operations over all characters; steps that most texts do not need stand
behind a condition.
"""

import dataclasses
import functools
import sys
import unicodedata
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.text import tokenization
from electra_tf.text import tokenizers_characters as library
from electra_tf.text.graph_added_tokens import (
    BARRIER,
    AddedTokens,
    Matches,
    TokenMatcher,
    is_ideograph,
    marks_of,
)
from electra_tf.text.tokenizer_settings import LIBRARY, TokenizerSettings

# What tokenization does to each code point: a row of flags, and in the low bits
# the code point that it becomes.
CHARACTER = (1 << 21) - 1
REMOVED = 1 << 21  # by cleaning
ACCENT = 1 << 22  # that stripping drops
SPACE = 1 << 23  # between words; no part of any
ALONE = 1 << 24  # a word by itself: punctuation and ideographs
CASED = 1 << 25  # a letter that has a case
CASE_IGNORABLE = 1 << 26  # does not count when looking for one
MOVABLE = 1 << 27  # a mark that stays; canonical ordering may move it
SIGMA = 1 << 28  # the capital; its small form depends on its neighbours
SEVERAL = 1 << 29  # characters; the low bits number the row in `Table.several`
# Part of an added token: the low bits are twice its id, plus one for all but
# its first character.
ADDED = 1 << 30

# From a small sigma to the one that ends words.
TO_FINAL_SIGMA = ord("AΣ".lower()[1]) - ord("Σ".lower())
PAGE_BITS = 8

_N_CODE_POINTS = sys.maxunicode + 1
_PAGE = 1 << PAGE_BITS


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of all code points."""

    # int32 [0x110000 >> PAGE_BITS], where in `rows` each block of code points
    # begins. Equal blocks are stored once.
    pages: np.ndarray
    rows: np.ndarray  # int32 [any], rows of the blocks
    # int32 [any], rows of the characters that one code point becomes.
    several: np.ndarray
    several_splits: np.ndarray  # int32 [number + 1], where each of these begins
    # int32 [M], sorted: code points of non-zero combining class.
    movable: np.ndarray
    movable_classes: np.ndarray  # int32 [M], their combining classes


_ORIGINAL = TokenizerSettings()


@functools.lru_cache(maxsize=4)
def build_table(
    do_lower_case: bool,
    strip_accents: bool,
    ideographs_apart: bool = True,
    settings: TokenizerSettings = _ORIGINAL,
) -> Table:
    """Work out the rows of all code points."""
    strip = settings.strips(do_lower_case, strip_accents)
    apart = ideographs_apart and settings.tokenize_chinese_chars
    builder = _Builder(do_lower_case, strip, apart)
    if settings.characters == LIBRARY:
        builder = _LibraryBuilder(
            do_lower_case, strip, apart, settings.clean_text
        )
    chars = map(chr, range(_N_CODE_POINTS))
    rows = np.fromiter(map(builder.row, chars), np.int32, _N_CODE_POINTS)
    blocks, places = np.unique(
        rows.reshape(-1, _PAGE), axis=0, return_inverse=True
    )
    classes = [
        (number, kind)
        for number in range(_N_CODE_POINTS)
        if (kind := builder.combining_class(chr(number)))
    ]
    movable, movable_classes = np.array(classes, np.int32).T
    return Table(
        pages=(places.reshape(-1) * _PAGE).astype(np.int32),
        rows=blocks.reshape(-1),
        several=np.array(builder.several, np.int32),
        several_splits=np.array(builder.several_splits, np.int32),
        movable=movable,
        movable_classes=movable_classes,
    )


class _Builder:
    """Rows of code points, one at a time."""

    def __init__(self, lower: bool, strip: bool, ideographs_apart: bool):
        self._lower = lower
        self._strip = strip
        self._ideographs_apart = ideographs_apart
        # Never empty, so that a graph can always look something up.
        self.several = [REMOVED]
        self.several_splits = [0, 1]

    def row(self, char: str) -> int:
        if tokenization.is_removed(char):
            return REMOVED
        # `split` knows two separators more than cleaning does.
        if tokenization.is_whitespace(char) or char.isspace():
            return SPACE
        text = char.lower() if self._lower else char
        if self._strip:
            text = unicodedata.normalize("NFD", text)
        flags = self._flags(char)
        parts = self._visible([self._part(part) for part in text])
        return self._joined(parts, flags)

    def _joined(self, parts: list[int], flags: int) -> int:
        """Return the row of a character that becomes these parts."""
        if len(parts) == 1:
            return parts[0] | flags
        flags |= SEVERAL | (len(self.several_splits) - 1)
        for part in parts:
            flags |= part & MOVABLE
        self.several += parts
        self.several_splits.append(len(self.several))
        return flags

    def _part(self, char: str) -> int:
        """Row of a character that is not lowered or decomposed further."""
        if self._strip and tokenization.is_accent(char):
            return ord(char) | ACCENT
        row = ord(char)
        if tokenization.is_punctuation(char):
            row |= ALONE
        if self._strip and unicodedata.combining(char):
            row |= MOVABLE
        return row

    def combining_class(self, char: str) -> int:
        """Return the canonical combining class of a character."""
        return unicodedata.combining(char)

    def _visible(self, parts: list[int]) -> list[int]:
        """Leaves out accents, unless a mark could have to move past them."""
        if any(part & MOVABLE for part in parts):
            return parts
        visible = [part for part in parts if not part & ACCENT]
        if visible:
            return visible
        # Only accents: one of class 0, which no mark moves past, if any.
        return [
            min(parts, key=lambda p: self.combining_class(chr(p & CHARACTER)))
        ]

    def _flags(self, char: str) -> int:
        apart = self._ideographs_apart and tokenization.is_cjk(char)
        flags = ALONE if apart else 0
        if not self._lower:
            return flags
        if char == "Σ":
            flags |= SIGMA
        # `str.lower` alone knows which letters have a case.
        if _ends_in_final_sigma(char + "Σ"):
            return flags | CASED
        if _ends_in_final_sigma("A" + char + "Σ"):
            return flags | CASE_IGNORABLE
        return flags


class _LibraryBuilder(_Builder):
    """Rows of code points as the library `tokenizers` sees them."""

    def __init__(
        self, lower: bool, strip: bool, ideographs_apart: bool, clean: bool
    ):
        super().__init__(lower, strip, ideographs_apart)
        self._clean = clean

    def row(self, char: str) -> int:
        """Return the row of a character."""
        is_surrogate = 0xD800 <= ord(char) <= 0xDFFF
        if is_surrogate or (self._clean and library.is_removed(char)):
            return REMOVED
        if library.is_whitespace(char):
            return SPACE
        parts = []
        for part in library.decompose(char) if self._strip else char:
            if self._strip and library.is_accent(part):
                parts.append(ord(part) | ACCENT)
                continue
            text = library.lower(part) if self._lower else part
            parts += map(self._part, text)
        parts = self._visible(parts)
        apart = self._ideographs_apart and library.is_ideograph(char)
        flags = ALONE if apart else 0
        return self._joined(parts, flags)

    def _part(self, char: str) -> int:
        row = ord(char)
        if library.is_punctuation(char):
            row |= ALONE
        if self._strip and library.combining_class(char):
            row |= MOVABLE
        return row

    def combining_class(self, char: str) -> int:
        """Return the class that the library knows."""
        return library.combining_class(char)


def _ends_in_final_sigma(text: str) -> bool:
    return text.lower()[-1] == "ς"


# What only some texts hold, and plain ones can skip as a whole.
RARE = REMOVED | ACCENT | SIGMA | SEVERAL | MOVABLE


class Characters(NamedTuple):
    """Characters of a batch, one after the other."""

    rows: tf.Tensor  # int32 [N], the table's row of each
    sources: tf.Tensor  # int32 [N], from which decoded character each comes


class Decoded(NamedTuple):
    """The characters of a batch as they stand in the strings."""

    codes: tf.Tensor  # int32 [D], their code points
    rows: tf.Tensor  # int32 [D], the table's row of each
    starts: tf.Tensor  # int32 [D], the byte of its string at which each begins
    # int32 [D], the byte after it; accents that are dropped belong to the
    # character before them.
    ends: tf.Tensor
    splits: tf.Tensor  # int32 [B + 1], where each string's characters begin


class Words(NamedTuple):
    """The words of a batch."""

    values: tf.Tensor  # string [W], in UTF-8
    splits: tf.Tensor  # int32 [W + 1], where each word's characters begin
    string_splits: tf.Tensor  # int32 [B + 1], where each string's words begin
    characters: tf.Tensor  # int32 [N], code points of all words
    sources: tf.Tensor  # int32 [N], from which decoded character each comes
    # int32 [W], the id of the added token that a word is; -1: none.
    added: tf.Tensor


class WordSpans(NamedTuple):
    """The words of a batch of texts, as they stand there."""

    words: tf.RaggedTensor  # string [B, (N)], without what is not UTF-8
    # int32 [B, (N)], the byte of its text each begins at.
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor  # int32 [B, (N)], the byte after it


class GraphNormalizer(tf.Module):
    """Splits strings into words and punctuation marks."""

    def __init__(
        self,
        do_lower_case: bool = True,
        strip_accents: bool = True,
        ideographs_apart: bool = True,
        settings: TokenizerSettings = _ORIGINAL,
        tokens: AddedTokens | None = None,
    ):
        """Take casing and settings, the added tokens of which are `tokens`."""
        super().__init__()
        casing = (bool(do_lower_case), bool(strip_accents))
        without_tokens = dataclasses.replace(
            settings, added_tokens=(), never_split=()
        )
        table = build_table(*casing, ideographs_apart, without_tokens)
        self._marker = None
        if tokens:
            self._marker = _Marker(tokens, settings)
        self._pages = tf.constant(table.pages)
        self._rows = tf.constant(table.rows)
        self._several = tf.constant(table.several)
        self._several_splits = tf.constant(table.several_splits)
        self._movable = tf.constant(table.movable)
        self._movable_classes = tf.constant(table.movable_classes)

    def decode(self, strings: tf.Tensor) -> Decoded:
        """The characters of strings [B]; what is not UTF-8 is left out."""
        splits, codes, starts = tf.raw_ops.UnicodeDecodeWithOffsets(
            input=tf.strings.join([strings, " "]),
            input_encoding="UTF-8",
            errors="ignore",
            Tsplits=tf.int64,  # int32 makes this kernel abort
        )
        page = tf.bitwise.right_shift(codes, PAGE_BITS)
        place = tf.bitwise.bitwise_and(codes, (1 << PAGE_BITS) - 1)
        rows = tf.gather(self._rows, tf.gather(self._pages, page) + place)
        starts, splits = tf.cast(starts, tf.int32), tf.cast(splits, tf.int32)
        if self._marker:
            rows = self._marker.mark_text(codes, rows, splits)
        reach = functools.partial(_reach_over_accents, rows)
        own_ends = starts + utf8_lengths(codes)
        ends = _if_any(rows, ACCENT, reach, own_ends)
        if self._marker:
            ends = tf.where(_has(rows, ADDED), own_ends, ends)
        return Decoded(codes, rows, starts, ends, splits)

    def split(self, decoded: Decoded) -> Words:
        """Splits characters into words."""
        plain = Characters(decoded.rows, tf.range(tf.size(decoded.rows)))
        rows, sources = _if_any(decoded.rows, RARE, self._normalize, plain)
        if self._marker:
            rows = self._marker.mark_normalized(rows, sources, decoded)
        kept = where(~_has(rows, SPACE))
        starts = where(tf.gather(_begins_word(rows), kept))
        rows, sources = tf.gather(rows, kept), tf.gather(sources, kept)
        codes = tf.bitwise.bitwise_and(rows, CHARACTER)
        if not self._marker:
            return _words(codes, sources, starts, decoded)
        # Their low bits are no characters; the text's are as long in bytes.
        added = _has(rows, ADDED)
        codes = tf.where(added, tf.gather(decoded.codes, sources), codes)
        words = _words(codes, sources, starts, decoded)
        first = tf.gather(rows, starts)
        ids = tf.bitwise.right_shift(
            tf.bitwise.bitwise_and(first, CHARACTER), 1
        )
        return words._replace(added=tf.where(_has(first, ADDED), ids, -1))

    def _normalize(self, chars: Characters) -> Characters:
        rows = _if_any(chars.rows, SIGMA, _lower_sigmas, chars.rows)
        kept = where(~_has(rows, REMOVED))
        chars = _take(Characters(rows, chars.sources), kept)
        chars = _if_any(chars.rows, SEVERAL, self._expand, chars)
        chars = _if_any(chars.rows, MOVABLE, self._reorder, chars)
        return _take(chars, where(~_has(chars.rows, ACCENT)))

    def _expand(self, chars: Characters) -> Characters:
        """Puts several characters in the place of those that become several."""
        several = _has(chars.rows, SEVERAL)
        numbers = tf.bitwise.bitwise_and(chars.rows, CHARACTER)
        numbers = tf.where(several, numbers, 0)
        firsts = tf.gather(self._several_splits, numbers)
        counts = tf.gather(self._several_splits, numbers + 1) - firsts
        places = tf.repeat(tf.range(tf.size(numbers)), counts)
        # How far each new character is from the first of its kin.
        before = tf.gather(tf.cumsum(counts, exclusive=True), places)
        steps = tf.range(tf.size(places)) - before
        expanded = tf.gather(self._several, tf.gather(firsts, places) + steps)
        chars = _take(chars, places)
        rows = tf.where(tf.gather(several, places), expanded, chars.rows)
        return chars._replace(rows=rows)

    def _reorder(self, chars: Characters) -> Characters:
        """Brings marks into canonical order, where they are not."""
        movable = _has(chars.rows, MOVABLE)
        movable = tf.boolean_mask(movable, ~_has(chars.rows, ACCENT))
        return tf.cond(
            tf.reduce_any(movable[1:] & movable[:-1]),
            lambda: self._sort(chars),
            lambda: chars,
        )

    def _sort(self, chars: Characters) -> Characters:
        classes = self._combining_classes(chars.rows)
        # Marks stay behind the character of class 0 that they follow.
        groups = tf.cumsum(tf.cast(classes == 0, tf.int64))
        keys = groups * 256 + tf.cast(classes, tf.int64)
        return _take(chars, tf.argsort(keys, stable=True))

    def _combining_classes(self, rows: tf.Tensor) -> tf.Tensor:
        codes = tf.bitwise.bitwise_and(rows, CHARACTER)
        places = tf.searchsorted(self._movable, codes)
        places = tf.minimum(places, tf.size(self._movable) - 1)
        found = tf.gather(self._movable, places) == codes
        return tf.where(found, tf.gather(self._movable_classes, places), 0)


class _Marker(tf.Module):
    """Makes the characters of added tokens one word."""

    def __init__(self, tokens: AddedTokens, settings: TokenizerSettings):
        super().__init__()
        self._raw = TokenMatcher(tokens.raw) if tokens.raw else None
        self._words = TokenMatcher(tokens.words) if tokens.words else None
        self._normalized = None
        if tokens.normalized:
            self._normalized = TokenMatcher(tokens.normalized)
        self._spaces_are_plain = settings.clean_text
        self._ideographs_apart = settings.tokenize_chinese_chars

    def mark_text(
        self, codes: tf.Tensor, rows: tf.Tensor, splits: tf.Tensor
    ) -> tf.Tensor:
        """Mark tokens of the text as it is, and words that are not split."""
        if self._raw:
            ends = (splits[1:] - 1)[:, tf.newaxis]
            barred = tf.fill(tf.shape(splits[1:]), BARRIER)
            inside = tf.tensor_scatter_nd_update(codes, ends, barred)
            rows = _mark(rows, self._raw.find(inside))
        if self._words:
            kept = where(~_has(rows, REMOVED))
            rows = self._mark_words(
                rows, kept, tf.gather(codes, kept), self._words
            )
        return rows

    def mark_normalized(
        self, rows: tf.Tensor, sources: tf.Tensor, decoded: Decoded
    ) -> tf.Tensor:
        """Mark tokens and words in the normalized text."""
        places = tf.range(tf.size(rows))
        if self._words:
            codes = tf.bitwise.bitwise_and(rows, CHARACTER)
            rows = self._mark_words(rows, places, codes, self._words)
        if not self._normalized:
            return rows
        codes = tf.bitwise.bitwise_and(rows, CHARACTER)
        given = tf.gather(decoded.codes, sources)
        space = ord(" ") if self._spaces_are_plain else given
        codes = tf.where(_has(rows, SPACE), space, codes)
        ends = tf.scatter_nd(
            (decoded.splits[1:] - 1)[:, tf.newaxis],
            tf.ones_like(decoded.splits[1:]),
            tf.shape(decoded.codes),
        )
        barred = (tf.gather(ends, sources) > 0) | _has(rows, ADDED)
        codes = tf.where(barred, BARRIER, codes)
        return _mark(rows, self._normalized.find(codes))

    def _mark_words(
        self,
        rows: tf.Tensor,
        places: tf.Tensor,
        codes: tf.Tensor,
        matcher: TokenMatcher,
    ) -> tf.Tensor:
        """Mark whole words among characters at some places of the rows."""
        own = tf.gather(rows, places)
        apart = _has(own, SPACE | ADDED)
        if self._ideographs_apart:
            apart |= is_ideograph(codes)
        codes = tf.where(_has(own, SPACE | ADDED), BARRIER, codes)
        may_start = tf.concat([[True], apart[:-1]], 0)
        may_end = tf.concat([apart[1:], [True]], 0)
        if self._ideographs_apart:
            may_start |= apart
            may_end |= apart
        found = matcher.find(codes, may_start, may_end)
        return _mark(rows, found, places)


def _mark(
    rows: tf.Tensor, found: Matches, places: tf.Tensor | None = None
) -> tf.Tensor:
    """Put the rows of added tokens in the place of their characters'."""
    marks = marks_of(found)
    at = marks.places if places is None else tf.gather(places, marks.places)
    later = tf.cast(~marks.first, tf.int32)
    values = 2 * marks.ids + later + (ADDED | ALONE)
    return tf.tensor_scatter_nd_update(rows, at[:, tf.newaxis], values)


class GraphWordSplitter(tf.Module):
    """Finds the words that `words.split_words` finds."""

    def __init__(self) -> None:
        super().__init__()
        self._normalizer = GraphNormalizer(do_lower_case=False)

    def split(self, texts: tf.Tensor) -> WordSpans:
        """Splits strings [B] into words; what is not UTF-8 is left out."""
        decoded = self._normalizer.decode(texts)
        kept = where(~_has(decoded.rows, SPACE))
        begins = tf.gather(_begins_word(decoded.rows), kept)
        # Words of nothing but what tokenization removes are none.
        numbers = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        stays = ~_has(tf.gather(decoded.rows, kept), REMOVED)
        stays = tf.math.segment_max(tf.cast(stays, tf.int32), numbers) > 0
        stays = tf.gather(stays, numbers)
        sources = tf.boolean_mask(kept, stays)
        starts = where(tf.boolean_mask(begins, stays))
        codes = tf.gather(decoded.codes, sources)
        words = _words(codes, sources, starts, decoded)
        by_text = functools.partial(ragged, splits=words.string_splits)
        firsts = tf.gather(sources, words.splits[:-1])
        lasts = tf.gather(sources, words.splits[1:] - 1)
        return WordSpans(
            by_text(words.values),
            by_text(tf.gather(decoded.starts, firsts)),
            by_text(tf.gather(decoded.ends, lasts)),
        )


def _begins_word(rows: tf.Tensor) -> tf.Tensor:
    """Where a word would begin, if a character of one stands there."""
    apart = _has(rows, ALONE | SPACE)
    begins = apart | tf.concat([[True], apart], axis=0)[:-1]
    return begins & ~(_has(rows, ADDED) & _has(rows, 1))


def _words(
    codes: tf.Tensor, sources: tf.Tensor, starts: tf.Tensor, decoded: Decoded
) -> Words:
    """Makes words of their characters, and of where each word begins."""
    splits = tf.concat([starts, [tf.size(codes)]], axis=0)
    values = tf.raw_ops.UnicodeEncode(
        input_values=codes, input_splits=splits, output_encoding="UTF-8"
    )
    string_splits = tf.searchsorted(tf.gather(sources, starts), decoded.splits)
    none = tf.fill(tf.shape(starts), -1)
    return Words(values, splits, string_splits, codes, sources, none)


def utf8_lengths(codes: tf.Tensor) -> tf.Tensor:
    """Counts the bytes that characters (int32 [N]) take: 1 to 4."""
    more = [tf.cast(codes > most, tf.int32) for most in (0x7F, 0x7FF, 0xFFFF)]
    return 1 + tf.add_n(more)


def _lower_sigmas(rows: tf.Tensor) -> tf.Tensor:
    """Makes capital sigmas final where `str.lower` does.

    One is final if the character before it, and not the one after it, has a
    case; in either direction some characters do not count.
    """
    counting = where(~_has(rows, REMOVED | CASE_IGNORABLE))
    counted = tf.gather(rows, counting)
    cased = tf.concat([[False], _has(counted, CASED), [False]], axis=0)
    final = _has(counted, SIGMA) & cased[:-2] & ~cased[2:]
    changes = tf.cast(final, tf.int32) * TO_FINAL_SIGMA
    return tf.tensor_scatter_nd_add(rows, counting[:, tf.newaxis], changes)


def _reach_over_accents(rows: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """Lets characters end where the accents behind them end."""
    ends = tf.where(_has(rows, REMOVED), 0, ends)
    groups = tf.cumsum(tf.cast(~_has(rows, ACCENT | REMOVED), tf.int32))
    return tf.gather(tf.math.segment_max(ends, groups), groups)


def _take(chars: Characters, places: tf.Tensor) -> Characters:
    return Characters(*(tf.gather(part, places) for part in chars))


def _has(rows: tf.Tensor, flags: int) -> tf.Tensor:
    return tf.bitwise.bitwise_and(rows, flags) != 0


def _if_any(rows: tf.Tensor, flags: int, change: Callable, value: Any) -> Any:
    """The changed value where a row has one of the flags, else as it is."""
    some = tf.reduce_any(_has(rows, flags))
    return tf.cond(some, lambda: change(value), lambda: value)


def where(mask: tf.Tensor) -> tf.Tensor:
    """Where a mask [N] is true, int32."""
    return tf.cast(tf.where(mask)[:, 0], tf.int32)


def ragged(values: tf.Tensor, splits: tf.Tensor) -> tf.RaggedTensor:
    """Rows of values, by where each begins and the last ends."""
    splits = tf.cast(splits, tf.int64)
    return tf.RaggedTensor.from_row_splits(values, splits, validate=False)
