# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What tokenization does to each code point, as arrays for a graph.

Everything is asked of the predicates in `characters.py`, of `str.lower` and of
`unicodedata.normalize`, the sources of the Python tokenizer, so that the two
cannot drift apart.

A code point's row is one int32. Its low bits hold the character that it
becomes or, for the few that become several, a place in a list; flags above
them hold all else that is to be known.
"""

import dataclasses
import functools
import sys
import unicodedata

import numpy as np

from electra_tf.text import characters

# The low bits: any code point fits.
CHARACTER = (1 << 21) - 1
# Removed by cleaning.
REMOVED = 1 << 21
# An accent that stripping drops.
ACCENT = 1 << 22
# Between words; no part of any.
SPACE = 1 << 23
# A word by itself: punctuation and ideographs.
ALONE = 1 << 24
# A letter that has a case; whether it counts when looking for one.
CASED = 1 << 25
CASE_IGNORABLE = 1 << 26
# Canonical ordering may move it: a mark which is not dropped.
MOVABLE = 1 << 27
# Becomes the capital sigma's small form, which depends on its neighbours.
SIGMA = 1 << 28
# Becomes several characters; the low bits number the row in `Table.several`.
SEVERAL = 1 << 29

# From a small sigma to the one that ends words.
TO_FINAL_SIGMA = ord("AΣ".lower()[1]) - ord("Σ".lower())
PAGE_BITS = 8

_N_CODE_POINTS = sys.maxunicode + 1
_PAGE = 1 << PAGE_BITS


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of all code points.

    Attributes:
      pages: int32 [0x110000 >> PAGE_BITS], where in `rows` each block of code
        points begins. Equal blocks are stored once.
      rows: int32 [any], rows of the blocks.
      several: int32 [any], rows of the characters that one code point becomes.
      several_splits: int32 [number + 1], where each of these begins.
      movable: int32 [M], sorted: code points of non-zero combining class.
      movable_classes: int32 [M], their combining classes.
    """

    pages: np.ndarray
    rows: np.ndarray
    several: np.ndarray
    several_splits: np.ndarray
    movable: np.ndarray
    movable_classes: np.ndarray


@functools.lru_cache(maxsize=4)
def build_table(
    do_lower_case: bool, strip_accents: bool, ideographs_apart: bool = True
) -> Table:
    """Works out the rows of all code points.

    Args:
      do_lower_case: whether to lower-case.
      strip_accents: whether a lower-casing tokenizer drops accents.
      ideographs_apart: whether ideographs are words by themselves.

    Returns:
      The table; the same object for the same settings.
    """
    strip = do_lower_case and strip_accents
    builder = _Builder(do_lower_case, strip, ideographs_apart)
    rows = np.fromiter(
        map(builder.row, map(chr, range(_N_CODE_POINTS))),
        np.int32,
        _N_CODE_POINTS,
    )
    blocks, places = np.unique(
        rows.reshape(-1, _PAGE), axis=0, return_inverse=True
    )
    classes = [
        (number, unicodedata.combining(chr(number)))
        for number in range(_N_CODE_POINTS)
        if unicodedata.combining(chr(number))
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
        if characters.is_removed(char):
            return REMOVED
        # `split` knows two separators more than cleaning does.
        if characters.is_whitespace(char) or char.isspace():
            return SPACE
        text = char.lower() if self._lower else char
        if self._strip:
            text = unicodedata.normalize("NFD", text)
        flags = self._flags(char)
        parts = self._visible([self._part(part) for part in text])
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
        if self._strip and characters.is_accent(char):
            return ord(char) | ACCENT
        row = ord(char)
        if characters.is_punctuation(char):
            row |= ALONE
        if self._strip and unicodedata.combining(char):
            row |= MOVABLE
        return row

    def _visible(self, parts: list[int]) -> list[int]:
        """Leaves out accents, unless a mark could have to move past them."""
        if any(part & MOVABLE for part in parts):
            return parts
        visible = [part for part in parts if not part & ACCENT]
        if visible:
            return visible
        # Only accents: one of class 0, which no mark moves past, if any.
        return [
            min(parts, key=lambda p: unicodedata.combining(chr(p & CHARACTER)))
        ]

    def _flags(self, char: str) -> int:
        apart = self._ideographs_apart and characters.is_cjk(char)
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


def _ends_in_final_sigma(text: str) -> bool:
    return text.lower()[-1] == "ς"
