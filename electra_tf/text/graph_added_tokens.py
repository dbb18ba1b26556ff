# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Added tokens in a graph, as `library_tokenizer` finds them in Python.

A token is found among the code points of a batch and marked in their rows, so
that its characters stay one word. All positions walk a trie at once: most
leave it at the first character.
"""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.text import tokenizers_characters as characters
from electra_tf.text.library_tokenizer import (
    LibraryBasicTokenizer,
    normalized_tokens,
)
from electra_tf.text.tokenizer_settings import TokenizerSettings

# No character: it matches nothing, and no token reaches over it.
BARRIER = -1
_CODE_BITS = 21


class Matches(NamedTuple):
    """Tokens found, from left to right; none overlaps another."""

    starts: tf.Tensor  # int32 [M], position of the first character
    lengths: tf.Tensor  # int32 [M], characters
    ids: tf.Tensor  # int32 [M], the tokens' ids


class TokenMatcher(tf.Module):
    """Finds texts among code points: leftmost first, the longest of several."""

    def __init__(self, tokens: Mapping[str, int]):
        """Take texts, none of them empty, and their ids."""
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
        """Find tokens among characters.

        Args:
          codes: int32 [N]; `BARRIER` where nothing may match.
          may_start, may_end: bool [N], where a match may have its first and
            last character; default: anywhere.
        """
        places = tf.range(tf.size(codes))
        if may_start is not None:
            places = tf.boolean_mask(places, may_start)
        zeros = tf.zeros_like(places)
        state = (tf.constant(0), places, zeros, zeros[:0], zeros[:0], zeros[:0])
        many = tf.TensorShape([None])
        shapes = (tf.TensorShape([]), many, many, many, many, many)

        def step(
            depth: tf.Tensor,
            places: tf.Tensor,
            nodes: tf.Tensor,
            starts: tf.Tensor,
            lengths: tf.Tensor,
            ids: tf.Tensor,
        ) -> tuple[tf.Tensor, ...]:
            last = places + depth
            inside = last < tf.size(codes)
            places, nodes = (
                tf.boolean_mask(part, inside) for part in (places, nodes)
            )
            last = places + depth
            nodes, alive = self._follow(nodes, tf.gather(codes, last))
            places, nodes, last = (
                tf.boolean_mask(part, alive) for part in (places, nodes, last)
            )
            values = tf.gather(self._values, nodes)
            ends = values >= 0
            if may_end is not None:
                ends &= tf.gather(may_end, last)
            found = tf.boolean_mask(places, ends)
            return (
                depth + 1,
                places,
                nodes,
                tf.concat([starts, found], 0),
                tf.concat([lengths, tf.fill(tf.shape(found), depth + 1)], 0),
                tf.concat([ids, tf.boolean_mask(values, ends)], 0),
            )

        *_, starts, lengths, ids = tf.while_loop(
            lambda _, places, *rest: tf.size(places) > 0, step, state, shapes
        )
        return _leftmost_longest(Matches(starts, lengths, ids))

    def _follow(
        self, nodes: tf.Tensor, codes: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the next nodes [M], and which there are, bool [M]."""
        codes, nodes = tf.cast(codes, tf.int64), tf.cast(nodes, tf.int64)
        keys = tf.bitwise.left_shift(nodes, np.int64(_CODE_BITS)) + codes
        edges = tf.searchsorted(self._keys, keys)
        edges = tf.minimum(edges, tf.size(self._keys) - 1)
        # A barrier's key is another node's last one.
        known = (tf.gather(self._keys, edges) == keys) & (codes >= 0)
        return tf.gather(self._children, edges), known


def _leftmost_longest(found: Matches) -> Matches:
    """Sort matches and drop those inside or across an earlier one."""
    longest = 1 << 20
    keys = tf.cast(found.starts, tf.int64) * longest
    keys -= tf.cast(found.lengths, tf.int64)
    found = _take(found, tf.argsort(keys))
    ends = found.starts + found.lengths
    overlaps = tf.reduce_any(found.starts[1:] < ends[:-1])

    def disjoint() -> Matches:
        def next_end(end: tf.Tensor, match: tf.Tensor) -> tf.Tensor:
            return tf.where(match[0] >= end, match[1], end)

        spans = tf.stack([found.starts, ends], 1)
        reached = tf.scan(next_end, spans, tf.constant(0))
        before = tf.concat([[0], reached[:-1]], 0)
        return _take(found, tf.where(found.starts >= before)[:, 0])

    return tf.cond(overlaps, disjoint, lambda: found)


def _take(found: Matches, places: tf.Tensor) -> Matches:
    return Matches(*(tf.gather(part, places) for part in found))


class Marks(NamedTuple):
    """Characters that belong to tokens."""

    places: tf.Tensor  # int32 [C], positions
    ids: tf.Tensor  # int32 [C], the id of the token
    first: tf.Tensor  # bool [C], whether the token begins there


def marks_of(found: Matches) -> Marks:
    """Return the characters that matches consist of."""
    splits = tf.concat([[0], tf.cumsum(found.lengths)], 0)
    numbers = tf.repeat(tf.range(tf.size(found.lengths)), found.lengths)
    steps = tf.range(tf.size(numbers)) - tf.gather(splits, numbers)
    return Marks(
        tf.gather(found.starts, numbers) + steps,
        tf.gather(found.ids, numbers),
        steps == 0,
    )


class AddedTokens:
    """The texts that are looked for, in the order of the steps."""

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
        normalized_tokens(settings, basic)  # Refuses some.
        # Ideographs are words by a flag here, without spaces around them.
        together = dataclasses.replace(settings, tokenize_chinese_chars=False)
        basic = LibraryBasicTokenizer(together, do_lower_case, strip)
        self.normalized = {
            basic.normalize(token.content): token.id
            for token in settings.added_tokens
            if token.normalized
        }
        # Words between white space, as they are and folded.
        self.words = {
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
        """Return how tokens begin: as given, and in normalized text."""
        raw = {ord(text[0]) for text in (*self.raw, *self.words)}
        folded = {ord(text[0]) for text in (*self.normalized, *self.words)}
        return raw, folded


def is_ideograph(codes: tf.Tensor) -> tf.Tensor:
    """Return which code points (int32 [N]) are ideographs, bool [N]."""
    inside = [
        (codes >= first) & (codes <= last)
        for first, last in characters.IDEOGRAPHS
    ]
    return tf.reduce_any(tf.stack(inside), 0)
