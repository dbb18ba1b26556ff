# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Search for added tokens as graph operations.

The results equal those of `library_tokenizer`. The rows of a token's characters
are marked (see `graph_normalization`), so that these characters stay one word.
A trie is searched from all positions of a batch in parallel; at most positions,
the search fails at the first character.
"""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.text import library_characters as characters
from electra_tf.text.library_tokenizer import (
    LibraryBasicTokenizer,
    normalized_tokens,
)
from electra_tf.text.tokenizer_settings import TokenizerSettings

# Code point of a barrier, such as the end of a string. The value equals no
# character, so no token spans a barrier.
BARRIER = -1
_CODE_BITS = 21


class Matches(NamedTuple):
    """Nonoverlapping matches of tokens, from left to right."""

    starts: tf.Tensor  # int32 [M], position of the first character
    lengths: tf.Tensor  # int32 [M], number of characters
    ids: tf.Tensor  # int32 [M], ids of the tokens


class TokenMatcher(tf.Module):
    """Matcher that finds the leftmost and longest tokens in code points."""

    def __init__(self, tokens: Mapping[str, int]):
        """Build a trie of nonempty texts and their ids."""
        super().__init__()
        edges: dict[tuple[int, int], int] = {}
        values = [-1]
        for text, number in tokens.items():
            node = 0
            for char in text:
                edge = (node, ord(char))
                if edge not in edges:
                    edges[edge] = len(values)
                    values.append(-1)
                node = edges[edge]
            values[node] = number
        order = sorted(edges)
        keys = [(node << _CODE_BITS) + code for node, code in order]
        self._keys = tf.constant(keys, tf.int64)
        children = [edges[edge] for edge in order]
        self._children = tf.constant(children, tf.int32)
        self._values = tf.constant(values, tf.int32)

    def find(
        self,
        codes: tf.Tensor,
        may_start: tf.Tensor | None = None,
        may_end: tf.Tensor | None = None,
    ) -> Matches:
        """Find tokens in a sequence of characters.

        Args:
          codes: int32 [N], code points; `BARRIER` where nothing may match.
          may_start, may_end: bool [N], whether a match may begin or end at a
            position; None: at any position.
        """
        positions = tf.range(tf.size(codes))
        if may_start is not None:
            positions = tf.boolean_mask(positions, may_start)
        nodes = tf.zeros_like(positions)
        empty = nodes[:0]
        state = (tf.constant(0), positions, nodes, empty, empty, empty)
        vector = tf.TensorShape([None])
        scalar = tf.TensorShape([])
        shapes = (scalar, vector, vector, vector, vector, vector)

        def step(
            depth: tf.Tensor,
            positions: tf.Tensor,
            nodes: tf.Tensor,
            starts: tf.Tensor,
            lengths: tf.Tensor,
            ids: tf.Tensor,
        ) -> tuple[tf.Tensor, ...]:
            """Extend all remaining candidate matches by one character."""
            last = positions + depth
            inside = last < tf.size(codes)
            positions = tf.boolean_mask(positions, inside)
            nodes = tf.boolean_mask(nodes, inside)
            last = positions + depth
            nodes, alive = self._follow(nodes, tf.gather(codes, last))
            positions = tf.boolean_mask(positions, alive)
            nodes = tf.boolean_mask(nodes, alive)
            last = tf.boolean_mask(last, alive)
            values = tf.gather(self._values, nodes)
            ends = values >= 0
            if may_end is not None:
                ends &= tf.gather(may_end, last)
            new = tf.boolean_mask(positions, ends)
            return (
                depth + 1,
                positions,
                nodes,
                tf.concat([starts, new], 0),
                tf.concat([lengths, tf.fill(tf.shape(new), depth + 1)], 0),
                tf.concat([ids, tf.boolean_mask(values, ends)], 0),
            )

        *_, starts, lengths, ids = tf.while_loop(
            lambda _, positions, *rest: tf.size(positions) > 0,
            step,
            state,
            shapes,
        )
        return _leftmost_longest(Matches(starts, lengths, ids))

    def _follow(
        self, nodes: tf.Tensor, codes: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the child nodes [M], and whether each exists, bool [M]."""
        codes, nodes = tf.cast(codes, tf.int64), tf.cast(nodes, tf.int64)
        keys = tf.bitwise.left_shift(nodes, np.int64(_CODE_BITS)) + codes
        edges = tf.searchsorted(self._keys, keys)
        edges = tf.minimum(edges, tf.size(self._keys) - 1)
        # A barrier is excluded, because its key equals the last possible key of
        # the previous node.
        exists = (tf.gather(self._keys, edges) == keys) & (codes >= 0)
        return tf.gather(self._children, edges), exists


def _leftmost_longest(matches: Matches) -> Matches:
    """Sort matches, and drop those that overlap an earlier match."""
    longest = 1 << 20
    keys = tf.cast(matches.starts, tf.int64) * longest
    keys -= tf.cast(matches.lengths, tf.int64)
    matches = _take(matches, tf.argsort(keys))
    ends = matches.starts + matches.lengths
    overlaps = tf.reduce_any(matches.starts[1:] < ends[:-1])

    def disjoint() -> Matches:
        def next_end(end: tf.Tensor, match: tf.Tensor) -> tf.Tensor:
            return tf.where(match[0] >= end, match[1], end)

        spans = tf.stack([matches.starts, ends], 1)
        last_ends = tf.scan(next_end, spans, tf.constant(0))
        previous_ends = tf.concat([[0], last_ends[:-1]], 0)
        is_first = matches.starts >= previous_ends
        return _take(matches, tf.where(is_first)[:, 0])

    return tf.cond(overlaps, disjoint, lambda: matches)


def _take(matches: Matches, indices: tf.Tensor) -> Matches:
    return Matches(*(tf.gather(part, indices) for part in matches))


class Marks(NamedTuple):
    """Characters that belong to added tokens."""

    positions: tf.Tensor  # int32 [C]
    ids: tf.Tensor  # int32 [C], id of the token
    is_first: tf.Tensor  # bool [C], whether the token begins here


def marks_of(matches: Matches) -> Marks:
    """Return the marks of all characters that belong to matches."""
    splits = tf.concat([[0], tf.cumsum(matches.lengths)], 0)
    indices = tf.repeat(tf.range(tf.size(matches.lengths)), matches.lengths)
    steps = tf.range(tf.size(indices)) - tf.gather(splits, indices)
    return Marks(
        tf.gather(matches.starts, indices) + steps,
        tf.gather(matches.ids, indices),
        steps == 0,
    )


class AddedTokens:
    """Added tokens, grouped by the step that searches for them."""

    def __init__(
        self,
        settings: TokenizerSettings,
        do_lower_case: bool,
        strip: bool,
        vocab: Mapping[str, int],
    ):
        self.raw = {
            token.content: token.id
            for token in settings.added_tokens
            if not token.normalized
        }
        basic = LibraryBasicTokenizer(settings, do_lower_case, strip)
        # `normalized_tokens` raises a UserError for unusable tokens.
        normalized_tokens(settings, basic)
        # In the graph, the flag `ALONE` separates ideographs, so texts contain
        # no additional spaces around ideographs.
        unspaced = dataclasses.replace(settings, tokenize_chinese_chars=False)
        basic = LibraryBasicTokenizer(unspaced, do_lower_case, strip)
        self.normalized = {
            basic.normalize(token.content): token.id
            for token in settings.added_tokens
            if token.normalized
        }
        # Words that are never split. In raw and in folded text, these words
        # match only between white space.
        self.whole_words = {
            word: vocab[word]
            for word in settings.never_split
            if basic.clean(word) == word
            and not any(map(characters.is_whitespace, word))
            and not (
                settings.tokenize_chinese_chars
                and len(word) > 1
                and any(map(characters.is_ideograph, word))
            )
        }

    def first_characters(self) -> tuple[set[int], set[int]]:
        """Return the first code points of tokens, in raw and in folded text."""
        raw_texts = [*self.raw, *self.whole_words]
        folded_texts = [*self.normalized, *self.whole_words]
        return (
            {ord(text[0]) for text in raw_texts},
            {ord(text[0]) for text in folded_texts},
        )


def is_ideograph(codes: tf.Tensor) -> tf.Tensor:
    """Return whether each code point (int32 [N]) is an ideograph, bool [N]."""
    inside = [
        (codes >= first) & (codes <= last)
        for first, last in characters.IDEOGRAPHS
    ]
    return tf.reduce_any(tf.stack(inside), 0)
