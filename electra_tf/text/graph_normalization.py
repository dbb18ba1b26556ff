# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strings to words in a graph, as `basic.py` does in Python.

All strings of a batch are one long row of characters, with a space after each
string, so that no word reaches from one string into the next. Every step is a
few operations over all characters; steps that most texts do not need stand
behind a condition.
"""

from typing import NamedTuple

import tensorflow as tf

from electra_tf.text import graph_characters as flag
from electra_tf.text.graph_characters import build_table

# What only some texts hold, and plain ones can skip as a whole.
_RARE = flag.REMOVED | flag.ACCENT | flag.SIGMA | flag.SEVERAL | flag.MOVABLE


class Characters(NamedTuple):
    """Characters of a batch, one after the other.

    Attributes:
      rows: int32 [N], the table's row of each.
      sources: int32 [N], from which decoded character each comes.
    """

    rows: tf.Tensor
    sources: tf.Tensor


class Decoded(NamedTuple):
    """The characters of a batch as they stand in the strings.

    Attributes:
      rows: int32 [D], the table's row of each.
      starts: int32 [D], the byte of its string at which each begins.
      ends: int32 [D], the byte after it; accents that are dropped belong to
        the character before them.
      splits: int32 [B + 1], where each string's characters begin.
    """

    rows: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    splits: tf.Tensor


class Words(NamedTuple):
    """The words of a batch.

    Attributes:
      values: string [W], in UTF-8.
      splits: int32 [W + 1], where each word's characters begin.
      string_splits: int32 [B + 1], where each string's words begin.
      characters: int32 [N], code points of all words.
      sources: int32 [N], from which decoded character each comes.
    """

    values: tf.Tensor
    splits: tf.Tensor
    string_splits: tf.Tensor
    characters: tf.Tensor
    sources: tf.Tensor


class GraphNormalizer(tf.Module):
    """Splits strings into words and punctuation marks.

    Args:
      do_lower_case: whether to lower-case.
      strip_accents: whether a lower-casing tokenizer drops accents.
      ideographs_apart: whether ideographs are words by themselves, as
        everywhere but in `WordAligner`.
    """

    def __init__(
        self,
        do_lower_case: bool = True,
        strip_accents: bool = True,
        ideographs_apart: bool = True,
    ):
        super().__init__()
        table = build_table(
            bool(do_lower_case), bool(strip_accents), ideographs_apart
        )
        self._pages = tf.constant(table.pages)
        self._rows = tf.constant(table.rows)
        self._several = tf.constant(table.several)
        self._several_splits = tf.constant(table.several_splits)
        self._movable = tf.constant(table.movable)
        self._movable_classes = tf.constant(table.movable_classes)

    def decode(self, strings: tf.Tensor) -> Decoded:
        """Looks up the characters of strings.

        Args:
          strings: string [B]; what is not UTF-8 is left out.

        Returns:
          The characters, with a space after each string's.
        """
        splits, codes, starts = tf.raw_ops.UnicodeDecodeWithOffsets(
            input=tf.strings.join([strings, " "]),
            input_encoding="UTF-8",
            errors="ignore",
            Tsplits=tf.int64,  # int32 makes this kernel abort
        )
        page = tf.bitwise.right_shift(codes, flag.PAGE_BITS)
        place = tf.bitwise.bitwise_and(codes, (1 << flag.PAGE_BITS) - 1)
        rows = tf.gather(self._rows, tf.gather(self._pages, page) + place)
        starts = tf.cast(starts, tf.int32)
        ends = starts + utf8_lengths(codes)
        ends = tf.cond(
            _any(rows, flag.ACCENT),
            lambda: _reach_over_accents(rows, ends),
            lambda: ends,
        )
        return Decoded(rows, starts, ends, tf.cast(splits, tf.int32))

    def split(self, decoded: Decoded) -> Words:
        """Splits characters into words.

        Args:
          decoded: what `decode` returned.

        Returns:
          The words.
        """
        n_decoded = tf.size(decoded.rows)
        plain = Characters(decoded.rows, tf.range(n_decoded))
        rows, sources = tf.cond(
            _any(decoded.rows, _RARE),
            lambda: self._normalize(plain),
            lambda: plain,
        )
        apart = _has(rows, flag.ALONE | flag.SPACE)
        after = tf.concat([[True], apart], axis=0)[:-1]
        begins = after | apart
        kept = _where(~_has(rows, flag.SPACE))
        starts = _where(tf.gather(begins, kept))
        codes = tf.bitwise.bitwise_and(tf.gather(rows, kept), flag.CHARACTER)
        sources = tf.gather(sources, kept)
        splits = tf.concat([starts, [tf.size(codes)]], axis=0)
        values = tf.raw_ops.UnicodeEncode(
            input_values=codes,
            input_splits=splits,
            output_encoding="UTF-8",
        )
        string_splits = tf.searchsorted(
            tf.gather(sources, starts), decoded.splits
        )
        return Words(values, splits, string_splits, codes, sources)

    def _normalize(self, chars: Characters) -> Characters:
        rows = tf.cond(
            _any(chars.rows, flag.SIGMA),
            lambda: _lower_sigmas(chars.rows),
            lambda: chars.rows,
        )
        chars = _keep(
            Characters(rows, chars.sources), ~_has(rows, flag.REMOVED)
        )
        chars = tf.cond(
            _any(chars.rows, flag.SEVERAL),
            lambda: self._expand(chars),
            lambda: chars,
        )
        chars = tf.cond(
            _any(chars.rows, flag.MOVABLE),
            lambda: self._reorder(chars),
            lambda: chars,
        )
        return _keep(chars, ~_has(chars.rows, flag.ACCENT))

    def _expand(self, chars: Characters) -> Characters:
        """Puts several characters in the place of those that become several."""
        several = _has(chars.rows, flag.SEVERAL)
        numbers = tf.bitwise.bitwise_and(chars.rows, flag.CHARACTER)
        numbers = tf.where(several, numbers, 0)
        firsts = tf.gather(self._several_splits, numbers)
        counts = tf.gather(self._several_splits, numbers + 1) - firsts
        places = tf.repeat(tf.range(tf.size(numbers)), counts)
        # How far each new character is from the first of its kin.
        steps = tf.range(tf.size(places)) - tf.gather(
            tf.cumsum(counts, exclusive=True), places
        )
        expanded = tf.gather(self._several, tf.gather(firsts, places) + steps)
        rows = tf.where(
            tf.gather(several, places),
            expanded,
            tf.gather(chars.rows, places),
        )
        return Characters(rows, tf.gather(chars.sources, places))

    def _reorder(self, chars: Characters) -> Characters:
        """Brings marks into canonical order, where they are not."""
        movable = _has(chars.rows, flag.MOVABLE)
        movable = tf.boolean_mask(movable, ~_has(chars.rows, flag.ACCENT))
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
        order = tf.argsort(keys, stable=True)
        return Characters(
            tf.gather(chars.rows, order), tf.gather(chars.sources, order)
        )

    def _combining_classes(self, rows: tf.Tensor) -> tf.Tensor:
        codes = tf.bitwise.bitwise_and(rows, flag.CHARACTER)
        places = tf.searchsorted(self._movable, codes)
        places = tf.minimum(places, tf.size(self._movable) - 1)
        found = tf.gather(self._movable, places) == codes
        return tf.where(found, tf.gather(self._movable_classes, places), 0)


def utf8_lengths(codes: tf.Tensor) -> tf.Tensor:
    """Counts the bytes that characters take.

    Args:
      codes: int32 [N], code points.

    Returns:
      int32 [N], 1 to 4.
    """
    return (
        1
        + tf.cast(codes > 0x7F, tf.int32)
        + tf.cast(codes > 0x7FF, tf.int32)
        + tf.cast(codes > 0xFFFF, tf.int32)
    )


def _lower_sigmas(rows: tf.Tensor) -> tf.Tensor:
    """Makes capital sigmas final where `str.lower` does.

    One is final if the character before it, and not the one after it, has a
    case; in either direction some characters do not count.
    """
    counting = _where(~_has(rows, flag.REMOVED | flag.CASE_IGNORABLE))
    counted = tf.gather(rows, counting)
    cased = tf.concat([[False], _has(counted, flag.CASED), [False]], axis=0)
    final = _has(counted, flag.SIGMA) & cased[:-2] & ~cased[2:]
    return tf.tensor_scatter_nd_add(
        rows,
        counting[:, tf.newaxis],
        tf.cast(final, tf.int32) * flag.TO_FINAL_SIGMA,
    )


def _reach_over_accents(rows: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """Lets characters end where the accents behind them end."""
    vanish = _has(rows, flag.ACCENT | flag.REMOVED)
    ends = tf.where(_has(rows, flag.REMOVED), 0, ends)
    groups = tf.cumsum(tf.cast(~vanish, tf.int32))
    return tf.gather(tf.math.segment_max(ends, groups), groups)


def _keep(chars: Characters, mask: tf.Tensor) -> Characters:
    kept = _where(mask)
    return Characters(
        tf.gather(chars.rows, kept), tf.gather(chars.sources, kept)
    )


def _has(rows: tf.Tensor, flags: int) -> tf.Tensor:
    return tf.bitwise.bitwise_and(rows, flags) != 0


def _any(rows: tf.Tensor, flags: int) -> tf.Tensor:
    return tf.reduce_any(_has(rows, flags))


def _where(mask: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.where(mask)[:, 0], tf.int32)
