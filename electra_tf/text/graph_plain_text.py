# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The strings that tensorflow-text's fast tokenizer gets right.

It is several times as fast as our own steps, but folds case, takes apart and
drops other characters than Python does. What it does to a character depends on
nothing else, so it is asked about every character once, when the graph is made;
strings of only such characters as come out right may be left to it.
"""

import functools

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from electra_tf.text import graph_characters as flag
from electra_tf.text.graph_characters import build_table
from electra_tf.text.graph_wordpiece import (
    MAX_CHARACTERS,
    GraphWordpiece,
    Pieces,
)

# Beyond are ideographs too rare to be worth the asking, and nothing else that
# comes out right.
_ASKED = 0x20000
# Each becomes one character by itself, so that tensorflow-text's offsets, made
# from those of bytes, are ours.
_NOT_PLAIN = (
    flag.REMOVED | flag.ACCENT | flag.SIGMA | flag.SEVERAL | flag.MOVABLE
)
# A part of text that may be one long word. Text without white space is common
# in some scripts, so their most usual punctuation and ideographs end it, too.
_LONG = (
    r"[^\t\n\r -/:-@\[-`{-~\x{3001}\x{3002}\x{ff0c}\x{4e00}-\x{9fff}]"
    f"{{{MAX_CHARACTERS + 1}}}"
)


class PlainTextTokenizer(tf.Module):
    """Tokenizes plain strings, fast.

    Args:
      wordpiece: holds the vocabulary.
      do_lower_case: whether to lower-case.
      strip_accents: whether a lower-casing tokenizer drops accents.
    """

    def __init__(
        self,
        wordpiece: GraphWordpiece,
        do_lower_case: bool,
        strip_accents: bool,
    ):
        super().__init__()
        self._normalizer = _Normalizer(do_lower_case, strip_accents)
        self._wordpiece = wordpiece
        plain = plain_characters(do_lower_case, do_lower_case and strip_accents)
        self._plain = f"[{_ranges(plain)}]*"

    def accepts(self, strings: tf.Tensor) -> tf.Tensor:
        """Tells plain strings from others.

        Args:
          strings: string [B], of any bytes.

        Returns:
          bool [B], True for strings that `split` may be given.
        """
        plain = tf.strings.regex_full_match(strings, self._plain)
        return tf.cond(
            tf.reduce_any(tf.strings.length(strings) > MAX_CHARACTERS),
            lambda: plain & ~_has_long_part(strings),
            lambda: plain,
        )

    def split(self, strings: tf.Tensor, with_offsets: bool) -> Pieces:
        """Splits plain strings into wordpieces.

        Args:
          strings: string [B], all of which `accepts` takes.
          with_offsets: whether `starts` and `ends` are wanted; else both are
            empty.

        Returns:
          The pieces.
        """
        texts, offsets = self._normalizer.normalize(strings, with_offsets)
        pieces = self._wordpiece.split_plain_text(texts)
        if not with_offsets:
            return pieces._replace(starts=pieces.ids[:0], ends=pieces.ids[:0])
        # One offset a byte and one for the end.
        firsts = tf.repeat(
            tf.cast(offsets.row_splits[:-1], tf.int32),
            pieces.splits[1:] - pieces.splits[:-1],
        )
        places = tf.cast(offsets.values, tf.int32)
        return pieces._replace(
            starts=tf.gather(places, firsts + pieces.starts),
            ends=tf.gather(places, firsts + pieces.ends),
        )


class _Normalizer(tf.Module):
    """Lower-cases and strips accents as tensorflow-text does."""

    def __init__(self, do_lower_case: bool, strip_accents: bool):
        super().__init__()
        strip = bool(do_lower_case and strip_accents)
        self._lower_first = bool(do_lower_case and not strip)
        self._normalizer = tf_text.FastBertNormalizer(strip)

    def normalize(
        self, strings: tf.Tensor, with_offsets: bool
    ) -> tuple[tf.Tensor, tf.RaggedTensor | None]:
        """Returns the texts [B] and, if wanted, offsets [B, (bytes + 1)]."""
        if self._lower_first:
            strings = tf.strings.lower(strings, encoding="utf-8")
        if with_offsets:
            return self._normalizer.normalize_with_offsets(strings)
        return self._normalizer.normalize(strings), None


@functools.lru_cache(maxsize=4)
def plain_characters(do_lower_case: bool, strip_accents: bool) -> np.ndarray:
    """Asks tensorflow-text what it does to each character.

    Args:
      do_lower_case: whether to lower-case.
      strip_accents: whether a lower-casing tokenizer drops accents.

    Returns:
      Sorted int64 [N], the code points that it treats as Python does, and of
      which each becomes one character.
    """
    table = build_table(do_lower_case, strip_accents)
    codes = np.arange(1, _ASKED)
    page, place = codes >> flag.PAGE_BITS, codes % (1 << flag.PAGE_BITS)
    rows = table.rows[table.pages[page] + place]
    plain = (rows & _NOT_PLAIN) == 0
    codes, rows = codes[plain], rows[plain]
    asked = _between_letters(codes)
    expected = _between_letters(rows & flag.CHARACTER)
    with tf.device("/CPU:0"):
        normalizer = _Normalizer(do_lower_case, strip_accents)
        texts, _ = normalizer.normalize(asked, with_offsets=False)
        words = tf_text.FastWordpieceTokenizer(
            ["a", "[UNK]"], token_out_type=tf.int32
        ).tokenize(texts)
    spaces = (rows & flag.SPACE) != 0
    n_words = np.where(spaces, 2, np.where(rows & flag.ALONE, 3, 1))
    same = spaces | (texts.numpy() == expected)
    same &= words.row_lengths().numpy() == n_words
    if do_lower_case and not strip_accents:
        # Lower-casing by itself keeps no offsets, so lengths must not change.
        same &= [len(a) == len(b) for a, b in zip(asked, expected, strict=True)]
    return codes[same]


def _between_letters(codes: np.ndarray) -> np.ndarray:
    return np.array([f"a{chr(code)}b".encode() for code in codes], object)


def _has_long_part(strings: tf.Tensor) -> tf.Tensor:
    return tf.strings.regex_full_match(strings, rf"(?s:.*{_LONG}.*)")


def _ranges(codes: np.ndarray) -> str:
    """A regular expression's character class, without its brackets."""
    breaks = np.flatnonzero(np.diff(codes) != 1) + 1
    return "".join(
        f"\\x{{{part[0]:x}}}-\\x{{{part[-1]:x}}}"
        for part in np.split(codes, breaks)
    )
