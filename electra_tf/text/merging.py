# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learning wordpieces by merging the most frequent neighbours.

Words start as single characters. The pair of neighbouring pieces that occurs
most often becomes a new piece, wherever it stands; then the next pair, until
there are pieces enough. A merge changes the counts only of the pairs around it,
so each step touches just the words that hold the pair.
"""

import collections
import heapq
import itertools
from collections.abc import Collection, Mapping

from electra_tf.text.wordpiece import JOINER

_Pair = tuple[str, str]


def spell(word: str) -> list[str]:
    """Splits a word into single-character pieces.

    Args:
      word: a word, not empty.

    Returns:
      Its characters, all but the first marked as continuing the word.
    """
    return [word[0], *(JOINER + char for char in word[1:])]


def learn_pieces(
    word_counts: Mapping[str, int],
    alphabet: Collection[str],
    max_pieces: int,
    min_count: int = 2,
) -> list[str]:
    """Learns the most useful pieces of more than one character.

    Args:
      word_counts: from word to how often it occurs.
      alphabet: the characters that may occur in pieces; words with others are
        passed over.
      max_pieces: how many pieces are wanted.
      min_count: a pair that occurs less often is not merged.

    Returns:
      At most `max_pieces` pieces, in the order in which they were formed, that
      is from frequent to rare. Equal counts are ordered by the pieces' text, so
      the result depends on the counts alone.

    Source:
      Sennrich et al. 2016, "Neural Machine Translation of Rare Words with
      Subword Units", section 3.2, with pieces marked as in WordPiece.
    """
    merger = _Merger(word_counts, frozenset(alphabet))
    pieces: dict[str, None] = {}  # as an ordered set
    while len(pieces) < max_pieces:
        pair = merger.most_frequent(min_count)
        if pair is None:
            break
        # Two pairs can spell the same piece; it is then counted once.
        pieces[merger.merge(pair)] = None
    return list(pieces)


class _Merger:
    """The words as they are split so far, and the counts of their pairs."""

    def __init__(self, word_counts: Mapping[str, int], alphabet: frozenset):
        self._words: list[list[str]] = []
        self._counts: list[int] = []
        self._pair_counts: dict[_Pair, int] = collections.defaultdict(int)
        self._words_with: dict[_Pair, set[int]] = collections.defaultdict(set)
        for word, count in word_counts.items():
            if len(word) > 1 and alphabet.issuperset(word):
                self._add(spell(word), count)
        # Entries go stale as counts change; `most_frequent` skips those.
        self._heap = [
            (-count, pair) for pair, count in self._pair_counts.items()
        ]
        heapq.heapify(self._heap)

    def most_frequent(self, min_count: int) -> _Pair | None:
        while self._heap:
            negative, pair = self._heap[0]
            count = self._pair_counts.get(pair, 0)
            if count == -negative:
                return pair if count >= min_count else None
            heapq.heappop(self._heap)
        return None

    def merge(self, pair: _Pair) -> str:
        merged = pair[0] + pair[1][len(JOINER) :]
        changed: set[_Pair] = set()
        for number in self._words_with.pop(pair):
            before = self._words[number]
            after = _merge_in_word(before, pair, merged)
            if len(after) == len(before):
                continue  # an earlier merge took one of the two
            self._words[number] = after
            count = self._counts[number]
            for old in itertools.pairwise(before):
                self._pair_counts[old] -= count
                changed.add(old)
            for new in itertools.pairwise(after):
                self._pair_counts[new] += count
                self._words_with[new].add(number)
                changed.add(new)
        del self._pair_counts[pair]
        changed.discard(pair)
        for other in changed:
            heapq.heappush(self._heap, (-self._pair_counts[other], other))
        return merged

    def _add(self, pieces: list[str], count: int) -> None:
        number = len(self._words)
        self._words.append(pieces)
        self._counts.append(count)
        for pair in itertools.pairwise(pieces):
            self._pair_counts[pair] += count
            self._words_with[pair].add(number)


def _merge_in_word(pieces: list[str], pair: _Pair, merged: str) -> list[str]:
    first, second = pair
    result = []
    position, last = 0, len(pieces) - 1
    while position <= last:
        piece = pieces[position]
        if (
            piece == first
            and position < last
            and pieces[position + 1] == second
        ):
            result.append(merged)
            position += 2
        else:
            result.append(piece)
            position += 1
    return result
