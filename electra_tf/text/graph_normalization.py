# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Splitting of strings into words as graph operations.

The results equal those of `BasicTokenizer`. The strings of a batch are
concatenated into one row of characters, with a space after each string, so that
no word spans two strings. Each step consists of a few operations on all
characters; steps that most texts do not need are conditional.
"""

import dataclasses
import functools
import sys
import unicodedata
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.text import characters
from electra_tf.text import library_characters as library
from electra_tf.text.graph_added_tokens import (
    BARRIER,
    AddedTokens,
    Matches,
    TokenMatcher,
    is_ideograph,
    marks_of,
)
from electra_tf.text.tokenizer_settings import LIBRARY, TokenizerSettings

# A row describes the tokenization of a code point: flags, and in the low bits
# the resulting code point.
CHARACTER = (1 << 21) - 1
REMOVED = 1 << 21  # deleted by cleaning
ACCENT = 1 << 22  # deleted by accent stripping
SPACE = 1 << 23  # separates words
ALONE = 1 << 24  # always a separate word: punctuation, ideograph
CASED = 1 << 25  # letter that has a case
CASE_IGNORABLE = 1 << 26  # skipped between a sigma and a cased letter
MOVABLE = 1 << 27  # mark that is kept, but can move in canonical ordering
SIGMA = 1 << 28  # capital sigma; its lower-case form depends on neighbors
SEVERAL = 1 << 29  # becomes several characters, listed in `Table.several`
# Character of an added token. The low bits contain twice the token's id, plus 1
# for all characters but the first.
ADDED = 1 << 30

# Code point of the final sigma minus that of the small sigma.
TO_FINAL_SIGMA = ord("AΣ".lower()[1]) - ord("Σ".lower())
PAGE_BITS = 8

_N_CODE_POINTS = sys.maxunicode + 1
_PAGE = 1 << PAGE_BITS


@dataclasses.dataclass(frozen=True)
class Table:
    """Table that contains a row for each code point."""

    # int32 [0x110000 >> PAGE_BITS], index in `rows` of each block of code
    # points. Equal blocks are stored once.
    pages: np.ndarray
    rows: np.ndarray  # int32 [any], rows of the distinct blocks
    # int32 [any], groups of rows: the characters of each code point that
    # becomes several characters.
    several: np.ndarray
    several_splits: np.ndarray  # int32 [count + 1], starts of the groups
    # int32 [M], sorted: code points with a nonzero combining class.
    movable: np.ndarray
    movable_classes: np.ndarray  # int32 [M], combining classes of `movable`


_ORIGINAL = TokenizerSettings()


@functools.lru_cache(maxsize=4)
def build_table(
    do_lower_case: bool,
    strip_accents: bool,
    ideographs_apart: bool = True,
    settings: TokenizerSettings = _ORIGINAL,
) -> Table:
    """Return the table with the rows of all code points."""
    strip = settings.strips(do_lower_case, strip_accents)
    apart = ideographs_apart and settings.tokenize_chinese_chars
    builder = _Builder(do_lower_case, strip, apart)
    if settings.characters == LIBRARY:
        builder = _LibraryBuilder(
            do_lower_case, strip, apart, settings.clean_text
        )
    chars = map(chr, range(_N_CODE_POINTS))
    rows = np.fromiter(map(builder.row, chars), np.int32, _N_CODE_POINTS)
    blocks, block_indices = np.unique(
        rows.reshape(-1, _PAGE), axis=0, return_inverse=True
    )
    classes = [
        (code, combining_class)
        for code in range(_N_CODE_POINTS)
        if (combining_class := builder.combining_class(chr(code)))
    ]
    movable, movable_classes = np.array(classes, np.int32).T
    return Table(
        pages=(block_indices.reshape(-1) * _PAGE).astype(np.int32),
        rows=blocks.reshape(-1),
        several=np.array(builder.several, np.int32),
        several_splits=np.array(builder.several_splits, np.int32),
        movable=movable,
        movable_classes=movable_classes,
    )


class _Builder:
    """Builder of the rows of a `Table`."""

    def __init__(self, lower: bool, strip: bool, ideographs_apart: bool):
        self._lower = lower
        self._strip = strip
        self._ideographs_apart = ideographs_apart
        # Entry 0 is a placeholder, which the graph gathers for each character
        # that does not become several characters.
        self.several = [REMOVED]
        self.several_splits = [0, 1]

    def row(self, char: str) -> int:
        """Return the row of a character."""
        if characters.is_removed(char):
            return REMOVED
        # `is_whitespace` excludes line and paragraph separators, but
        # `str.split` splits there, too.
        if characters.is_whitespace(char) or char.isspace():
            return SPACE
        text = char.lower() if self._lower else char
        if self._strip:
            text = unicodedata.normalize("NFD", text)
        flags = self._flags(char)
        parts = self._visible([self._part(part) for part in text])
        return self._joined(parts, flags)

    def _joined(self, parts: list[int], flags: int) -> int:
        """Combine the rows of parts into the row of the whole character."""
        if len(parts) == 1:
            return parts[0] | flags
        flags |= SEVERAL | (len(self.several_splits) - 1)
        for part in parts:
            flags |= part & MOVABLE
        self.several += parts
        self.several_splits.append(len(self.several))
        return flags

    def _part(self, char: str) -> int:
        """Return the row of a lower-cased and decomposed character."""
        if self._strip and characters.is_accent(char):
            return ord(char) | ACCENT
        row = ord(char)
        if characters.is_punctuation(char):
            row |= ALONE
        if self._strip and unicodedata.combining(char):
            row |= MOVABLE
        return row

    def combining_class(self, char: str) -> int:
        """Return the canonical combining class of a character."""
        return unicodedata.combining(char)

    def _visible(self, parts: list[int]) -> list[int]:
        """Drop the accents that do not affect canonical ordering."""
        if any(part & MOVABLE for part in parts):
            return parts
        visible = [part for part in parts if not part & ACCENT]
        if visible:
            return visible
        # All parts are accents, of which one must stay. No mark moves past an
        # accent of class 0, so an accent of class 0 is preferred.
        return [
            min(parts, key=lambda p: self.combining_class(chr(p & CHARACTER)))
        ]

    def _flags(self, char: str) -> int:
        is_apart = self._ideographs_apart and characters.is_cjk(char)
        flags = ALONE if is_apart else 0
        if not self._lower:
            return flags
        if char == "Σ":
            flags |= SIGMA
        # Only the sigma in the result of `str.lower` shows which characters
        # Python treats as cased.
        if _ends_in_final_sigma(char + "Σ"):
            return flags | CASED
        if _ends_in_final_sigma("A" + char + "Σ"):
            return flags | CASE_IGNORABLE
        return flags


class _LibraryBuilder(_Builder):
    """Builder of rows with the character classes of `tokenizers`."""

    def __init__(
        self, lower: bool, strip: bool, ideographs_apart: bool, clean: bool
    ):
        super().__init__(lower, strip, ideographs_apart)
        self._clean = clean

    def row(self, char: str) -> int:
        """Return the row of a character by the rules of the library."""
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
        is_apart = self._ideographs_apart and library.is_ideograph(char)
        flags = ALONE if is_apart else 0
        return self._joined(parts, flags)

    def _part(self, char: str) -> int:
        row = ord(char)
        if library.is_punctuation(char):
            row |= ALONE
        if self._strip and library.combining_class(char):
            row |= MOVABLE
        return row

    def combining_class(self, char: str) -> int:
        """Return the combining class that a character has in the library."""
        return library.combining_class(char)


def _ends_in_final_sigma(text: str) -> bool:
    return text.lower()[-1] == "ς"


# Flags of characters that few texts contain; other texts skip the steps that
# process these characters.
RARE = REMOVED | ACCENT | SIGMA | SEVERAL | MOVABLE


class Characters(NamedTuple):
    """Characters of a batch of strings during normalization."""

    rows: tf.Tensor  # int32 [N], rows of the characters
    sources: tf.Tensor  # int32 [N], indices of the origins in `Decoded`


class Decoded(NamedTuple):
    """Characters of a batch of strings before normalization."""

    codes: tf.Tensor  # int32 [D], code points
    rows: tf.Tensor  # int32 [D], rows of the characters
    starts: tf.Tensor  # int32 [D], first byte of each character in its string
    # int32 [D], byte after each character and its stripped accents.
    ends: tf.Tensor
    splits: tf.Tensor  # int32 [B + 1], index of each string's first character


class Words(NamedTuple):
    """Words of a batch of strings."""

    values: tf.Tensor  # string [W], in UTF-8
    splits: tf.Tensor  # int32 [W + 1], index of each word's first character
    string_splits: tf.Tensor  # int32 [B + 1], index of each string's first word
    characters: tf.Tensor  # int32 [N], code points of all words
    sources: tf.Tensor  # int32 [N], indices of the origins in `Decoded`
    added: tf.Tensor  # int32 [W], ids of added tokens; -1: not an added token


class WordSpans(NamedTuple):
    """Words of a batch of texts before normalization."""

    words: tf.RaggedTensor  # string [B, (N)], without invalid UTF-8
    # int32 [B, (N)], first byte of each word in its text.
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor  # int32 [B, (N)], byte after each word


class GraphNormalizer(tf.Module):
    """Splitter of strings into words and punctuation marks."""

    def __init__(
        self,
        do_lower_case: bool = True,
        strip_accents: bool = True,
        ideographs_apart: bool = True,
        settings: TokenizerSettings = _ORIGINAL,
        tokens: AddedTokens | None = None,
    ):
        """Build the tables for a casing, other settings and added tokens."""
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
        """Decode strings [B], and skip bytes that are not UTF-8."""
        splits, codes, starts = tf.raw_ops.UnicodeDecodeWithOffsets(
            input=tf.strings.join([strings, " "]),
            input_encoding="UTF-8",
            errors="ignore",
            Tsplits=tf.int64,  # With int32, this kernel aborts.
        )
        page = tf.bitwise.right_shift(codes, PAGE_BITS)
        offset = tf.bitwise.bitwise_and(codes, (1 << PAGE_BITS) - 1)
        rows = tf.gather(self._rows, tf.gather(self._pages, page) + offset)
        starts, splits = tf.cast(starts, tf.int32), tf.cast(splits, tf.int32)
        if self._marker:
            rows = self._marker.mark_text(codes, rows, splits)
        extend = functools.partial(_extend_over_accents, rows)
        character_ends = starts + utf8_lengths(codes)
        ends = _if_any(rows, ACCENT, extend, character_ends)
        if self._marker:
            ends = tf.where(_has(rows, ADDED), character_ends, ends)
        return Decoded(codes, rows, starts, ends, splits)

    def split(self, decoded: Decoded) -> Words:
        """Split decoded characters into words."""
        plain = Characters(decoded.rows, tf.range(tf.size(decoded.rows)))
        rows, sources = _if_any(decoded.rows, RARE, self._normalize, plain)
        if self._marker:
            rows = self._marker.mark_normalized(rows, sources, decoded)
        in_words = where(~_has(rows, SPACE))
        starts = where(tf.gather(_begins_word(rows), in_words))
        rows, sources = tf.gather(rows, in_words), tf.gather(sources, in_words)
        codes = tf.bitwise.bitwise_and(rows, CHARACTER)
        if not self._marker:
            return _words(codes, sources, starts, decoded)
        # In the rows of an added token, the low bits contain the token's id
        # instead of code points, so the code points are read from the text.
        added = _has(rows, ADDED)
        codes = tf.where(added, tf.gather(decoded.codes, sources), codes)
        batch = _words(codes, sources, starts, decoded)
        first = tf.gather(rows, starts)
        ids = tf.bitwise.right_shift(
            tf.bitwise.bitwise_and(first, CHARACTER), 1
        )
        return batch._replace(added=tf.where(_has(first, ADDED), ids, -1))

    def _normalize(self, chars: Characters) -> Characters:
        rows = _if_any(chars.rows, SIGMA, _lower_sigmas, chars.rows)
        remaining = where(~_has(rows, REMOVED))
        chars = _take(Characters(rows, chars.sources), remaining)
        chars = _if_any(chars.rows, SEVERAL, self._expand, chars)
        chars = _if_any(chars.rows, MOVABLE, self._reorder, chars)
        return _take(chars, where(~_has(chars.rows, ACCENT)))

    def _expand(self, chars: Characters) -> Characters:
        """Replace each `SEVERAL` character by the characters it becomes."""
        several = _has(chars.rows, SEVERAL)
        several_rows = tf.bitwise.bitwise_and(chars.rows, CHARACTER)
        several_rows = tf.where(several, several_rows, 0)
        firsts = tf.gather(self._several_splits, several_rows)
        counts = tf.gather(self._several_splits, several_rows + 1) - firsts
        indices = tf.repeat(tf.range(tf.size(several_rows)), counts)
        # Distance of each new character from the first character of its group.
        group_starts = tf.gather(tf.cumsum(counts, exclusive=True), indices)
        steps = tf.range(tf.size(indices)) - group_starts
        expanded = tf.gather(self._several, tf.gather(firsts, indices) + steps)
        chars = _take(chars, indices)
        rows = tf.where(tf.gather(several, indices), expanded, chars.rows)
        return chars._replace(rows=rows)

    def _reorder(self, chars: Characters) -> Characters:
        """Sort marks into canonical order if any movable marks are adjacent."""
        movable = _has(chars.rows, MOVABLE)
        movable = tf.boolean_mask(movable, ~_has(chars.rows, ACCENT))
        return tf.cond(
            tf.reduce_any(movable[1:] & movable[:-1]),
            lambda: self._sort(chars),
            lambda: chars,
        )

    def _sort(self, chars: Characters) -> Characters:
        classes = self._combining_classes(chars.rows)
        # The sort must not move a mark past a character of class 0.
        groups = tf.cumsum(tf.cast(classes == 0, tf.int64))
        keys = groups * 256 + tf.cast(classes, tf.int64)
        return _take(chars, tf.argsort(keys, stable=True))

    def _combining_classes(self, rows: tf.Tensor) -> tf.Tensor:
        codes = tf.bitwise.bitwise_and(rows, CHARACTER)
        indices = tf.searchsorted(self._movable, codes)
        indices = tf.minimum(indices, tf.size(self._movable) - 1)
        is_movable = tf.gather(self._movable, indices) == codes
        classes = tf.gather(self._movable_classes, indices)
        return tf.where(is_movable, classes, 0)


class _Marker(tf.Module):
    """Marker of added tokens; the characters of each token stay one word."""

    def __init__(self, tokens: AddedTokens, settings: TokenizerSettings):
        super().__init__()
        self._raw = TokenMatcher(tokens.raw) if tokens.raw else None
        self._whole_words = None
        if tokens.whole_words:
            self._whole_words = TokenMatcher(tokens.whole_words)
        self._normalized = None
        if tokens.normalized:
            self._normalized = TokenMatcher(tokens.normalized)
        self._spaces_are_plain = settings.clean_text
        self._ideographs_apart = settings.tokenize_chinese_chars

    def mark_text(
        self, codes: tf.Tensor, rows: tf.Tensor, splits: tf.Tensor
    ) -> tf.Tensor:
        """Mark added tokens and `never_split` words in the raw text."""
        if self._raw:
            ends = (splits[1:] - 1)[:, tf.newaxis]
            barriers = tf.fill(tf.shape(splits[1:]), BARRIER)
            separated = tf.tensor_scatter_nd_update(codes, ends, barriers)
            rows = _mark(rows, self._raw.find(separated))
        if self._whole_words:
            remaining = where(~_has(rows, REMOVED))
            remaining_codes = tf.gather(codes, remaining)
            rows = self._mark_words(rows, remaining, remaining_codes)
        return rows

    def mark_normalized(
        self, rows: tf.Tensor, sources: tf.Tensor, decoded: Decoded
    ) -> tf.Tensor:
        """Mark added tokens and `never_split` words in the normalized text."""
        positions = tf.range(tf.size(rows))
        if self._whole_words:
            codes = tf.bitwise.bitwise_and(rows, CHARACTER)
            rows = self._mark_words(rows, positions, codes)
        if not self._normalized:
            return rows
        codes = tf.bitwise.bitwise_and(rows, CHARACTER)
        space = ord(" ")
        if not self._spaces_are_plain:
            space = tf.gather(decoded.codes, sources)
        codes = tf.where(_has(rows, SPACE), space, codes)
        ends = tf.scatter_nd(
            (decoded.splits[1:] - 1)[:, tf.newaxis],
            tf.ones_like(decoded.splits[1:]),
            tf.shape(decoded.codes),
        )
        is_barrier = (tf.gather(ends, sources) > 0) | _has(rows, ADDED)
        codes = tf.where(is_barrier, BARRIER, codes)
        return _mark(rows, self._normalized.find(codes))

    def _mark_words(
        self, rows: tf.Tensor, positions: tf.Tensor, codes: tf.Tensor
    ) -> tf.Tensor:
        """Mark `never_split` words among the characters at `positions`."""
        is_separator = _has(tf.gather(rows, positions), SPACE | ADDED)
        apart = is_separator
        if self._ideographs_apart:
            apart |= is_ideograph(codes)
        codes = tf.where(is_separator, BARRIER, codes)
        may_start = tf.concat([[True], apart[:-1]], 0)
        may_end = tf.concat([apart[1:], [True]], 0)
        if self._ideographs_apart:
            may_start |= apart
            may_end |= apart
        matches = self._whole_words.find(codes, may_start, may_end)
        return _mark(rows, matches, positions)


def _mark(
    rows: tf.Tensor, matches: Matches, positions: tf.Tensor | None = None
) -> tf.Tensor:
    """Replace the rows of matching characters by rows of added tokens.

    Args:
      rows: int32 [N], rows of characters.
      matches: matches of tokens in the searched characters.
      positions: int32 [M], indices of the searched characters in `rows`; None:
        all characters were searched.
    """
    marks = marks_of(matches)
    indices = marks.positions
    if positions is not None:
        indices = tf.gather(positions, indices)
    is_later = tf.cast(~marks.is_first, tf.int32)
    values = 2 * marks.ids + is_later + (ADDED | ALONE)
    return tf.tensor_scatter_nd_update(rows, indices[:, tf.newaxis], values)


class GraphWordSplitter(tf.Module):
    """Splitter of texts into the same words as `words.split_words`."""

    def __init__(self) -> None:
        super().__init__()
        self._normalizer = GraphNormalizer(do_lower_case=False)

    def split(self, texts: tf.Tensor) -> WordSpans:
        """Split strings [B] into words, and skip bytes that are not UTF-8."""
        decoded = self._normalizer.decode(texts)
        in_words = where(~_has(decoded.rows, SPACE))
        begins = tf.gather(_begins_word(decoded.rows), in_words)
        # A word that consists of removed characters has no wordpieces, so it is
        # left out.
        word_of = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        stays = ~_has(tf.gather(decoded.rows, in_words), REMOVED)
        stays = tf.math.segment_max(tf.cast(stays, tf.int32), word_of) > 0
        stays = tf.gather(stays, word_of)
        sources = tf.boolean_mask(in_words, stays)
        starts = where(tf.boolean_mask(begins, stays))
        codes = tf.gather(decoded.codes, sources)
        batch = _words(codes, sources, starts, decoded)
        by_text = functools.partial(ragged, splits=batch.string_splits)
        firsts = tf.gather(sources, batch.splits[:-1])
        lasts = tf.gather(sources, batch.splits[1:] - 1)
        return WordSpans(
            by_text(batch.values),
            by_text(tf.gather(decoded.starts, firsts)),
            by_text(tf.gather(decoded.ends, lasts)),
        )


def _begins_word(rows: tf.Tensor) -> tf.Tensor:
    """Return for each character whether a word begins there, bool [N]."""
    apart = _has(rows, ALONE | SPACE)
    begins = apart | tf.concat([[True], apart], axis=0)[:-1]
    return begins & ~(_has(rows, ADDED) & _has(rows, 1))


def _words(
    codes: tf.Tensor, sources: tf.Tensor, starts: tf.Tensor, decoded: Decoded
) -> Words:
    """Return the words of characters, given the start of each word."""
    splits = tf.concat([starts, [tf.size(codes)]], axis=0)
    values = tf.raw_ops.UnicodeEncode(
        input_values=codes, input_splits=splits, output_encoding="UTF-8"
    )
    string_splits = tf.searchsorted(tf.gather(sources, starts), decoded.splits)
    added = tf.fill(tf.shape(starts), -1)
    return Words(values, splits, string_splits, codes, sources, added)


def utf8_lengths(codes: tf.Tensor) -> tf.Tensor:
    """Return the number of UTF-8 bytes of each code point, int32 [N]."""
    further = [
        tf.cast(codes > limit, tf.int32) for limit in (0x7F, 0x7FF, 0xFFFF)
    ]
    return 1 + tf.add_n(further)


def _lower_sigmas(rows: tf.Tensor) -> tf.Tensor:
    """Replace sigmas by final sigmas in the places where `str.lower` does.

    A sigma is final if it follows a cased character and precedes a character
    without case. The searches skip the characters with `CASE_IGNORABLE`.
    """
    counting = where(~_has(rows, REMOVED | CASE_IGNORABLE))
    counted = tf.gather(rows, counting)
    cased = tf.concat([[False], _has(counted, CASED), [False]], axis=0)
    final = _has(counted, SIGMA) & cased[:-2] & ~cased[2:]
    changes = tf.cast(final, tf.int32) * TO_FINAL_SIGMA
    return tf.tensor_scatter_nd_add(rows, counting[:, tf.newaxis], changes)


def _extend_over_accents(rows: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """Extend the end of each character over the accents after it."""
    ends = tf.where(_has(rows, REMOVED), 0, ends)
    groups = tf.cumsum(tf.cast(~_has(rows, ACCENT | REMOVED), tf.int32))
    return tf.gather(tf.math.segment_max(ends, groups), groups)


def _take(chars: Characters, indices: tf.Tensor) -> Characters:
    return Characters(*(tf.gather(part, indices) for part in chars))


def _has(rows: tf.Tensor, flags: int) -> tf.Tensor:
    return tf.bitwise.bitwise_and(rows, flags) != 0


def _if_any(rows: tf.Tensor, flags: int, change: Callable, value: Any) -> Any:
    """Return `change(value)` if any row has a flag, otherwise `value`."""
    has_any = tf.reduce_any(_has(rows, flags))
    return tf.cond(has_any, lambda: change(value), lambda: value)


def where(mask: tf.Tensor) -> tf.Tensor:
    """Return the int32 indices of the true values in a mask [N]."""
    return tf.cast(tf.where(mask)[:, 0], tf.int32)


def ragged(values: tf.Tensor, splits: tf.Tensor) -> tf.RaggedTensor:
    """Return a ragged tensor; `splits` contains row starts and the last end."""
    splits = tf.cast(splits, tf.int64)
    return tf.RaggedTensor.from_row_splits(values, splits, validate=False)
