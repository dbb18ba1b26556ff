# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learning of a WordPiece vocabulary from text.

Words are counted after the tokenizer's splitting. The vocabulary consists of
the five special tokens, a reserve of `[unused*]` tokens, all frequent
characters, and the pieces that result from merging frequent neighbors. Pieces
are ordered by count and, for equal counts, by text, so that equal counts of
words result in equal vocabularies.
"""

import collections
import heapq
import itertools
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from configure.errors import UserError
from electra_tf.text.basic_tokenizer import BasicTokenizer, split_raw_words
from electra_tf.text.changed_letters import ScriptCounter
from electra_tf.text.characters import is_cjk, is_punctuation
from electra_tf.text.vocabulary import SPECIAL_TOKENS, UNK
from electra_tf.text.wordpiece import (
    JOINER,
    MAX_WORD_LENGTH,
    WordpieceTokenizer,
    as_text,
)

_Pair = tuple[str, str]


def spell(word: str) -> list[str]:
    """Split a word into pieces of one character."""
    return [word[0], *(JOINER + char for char in word[1:])]


def learn_pieces(
    word_counts: Mapping[str, int],
    alphabet: Collection[str],
    max_pieces: int,
    min_count: int = 2,
) -> list[str]:
    """Learn pieces of two or more characters, from frequent to rare.

    Pieces with equal counts are ordered by text, so that the result depends
    only on the counts.

    Source: Sennrich et al. 2016, "Neural Machine Translation of Rare Words with
      Subword Units", section 3.2, with pieces marked as in WordPiece.
    """
    merger = _Merger(word_counts, frozenset(alphabet))
    pieces: dict[str, None] = {}  # used as an ordered set
    while len(pieces) < max_pieces:
        if (pair := merger.most_frequent(min_count)) is None:
            break
        # Two pairs can form the same piece, which counts once.
        pieces[merger.merge(pair)] = None
    return list(pieces)


class _Merger:
    """Current pieces of all words, with the counts of adjacent pairs."""

    def __init__(self, word_counts: Mapping[str, int], alphabet: frozenset):
        usable = [
            word
            for word in word_counts
            if len(word) > 1 and alphabet.issuperset(word)
        ]
        self._words = [spell(word) for word in usable]
        self._counts = [word_counts[word] for word in usable]
        self._pair_counts: dict[_Pair, int] = collections.defaultdict(int)
        self._words_with: dict[_Pair, set[int]] = collections.defaultdict(set)
        for number, pieces in enumerate(self._words):
            for pair in itertools.pairwise(pieces):
                self._pair_counts[pair] += self._counts[number]
                self._words_with[pair].add(number)
        # Entries become stale as counts change; `most_frequent` skips stale
        # entries.
        self._heap = [(-n, pair) for pair, n in self._pair_counts.items()]
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
                continue  # An earlier merge replaced a piece of the pair.
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


def _merge_in_word(pieces: list[str], pair: _Pair, merged: str) -> list[str]:
    result: list[str] = []
    for piece in pieces:
        if result and (result[-1], piece) == pair:
            result[-1] = merged
        else:
            result.append(piece)
    return result


# Default maximum number of characters in a vocabulary. Languages with an
# alphabet have far fewer characters; further characters come from quotations in
# foreign languages. Chinese and Japanese need a larger limit.
MAX_CHARACTERS = 1000


class Coverage(NamedTuple):
    """Counts that measure how a vocabulary splits a text."""

    words: int  # number of words, with repetitions
    unknown: int  # number of words that become [UNK]
    pieces: int  # number of wordpieces of all words


def count_words(
    lines: Iterable[str | bytes],
    do_lower_case: bool = True,
    strip_accents: bool = True,
    letters: ScriptCounter | None = None,
) -> dict[str, int]:
    """Count the words of a text as the tokenizer splits them.

    Args:
      lines: lines of the text.
      do_lower_case, strip_accents: casing of the tokenizer.
      letters: counter to which the letters of the unchanged text are added.
    """
    raw_counts: dict[str, int] = collections.Counter()
    for line in lines:
        raw_counts.update(split_raw_words(as_text(line)))
    # For speed, each distinct raw word is split once.
    tokenizer = BasicTokenizer(do_lower_case, strip_accents)
    counts: dict[str, int] = collections.defaultdict(int)
    for raw_word, count in raw_counts.items():
        if letters is not None:
            letters.add(raw_word, count)
        for word in tokenizer.split_word(raw_word):
            counts[word] += count
    return dict(counts)


def build_vocab(
    text: Mapping[str, int] | Iterable[str | bytes],
    vocab_size: int = 30522,
    do_lower_case: bool = True,
    strip_accents: bool = True,
    num_unused: int = 99,
    min_count: int = 2,
    max_characters: int = MAX_CHARACTERS,
) -> list[str]:
    """Learn a WordPiece vocabulary from a text.

    Args:
      text: lines, or the counts of words that `count_words` returns.
      vocab_size: maximum number of tokens.
      do_lower_case, strip_accents: casing with which lines are counted.
      num_unused: number of `[unused*]` tokens.
      min_count: minimum count of characters and pairs; rarer characters and
        pairs are ignored.
      max_characters: maximum number of distinct characters.

    Returns:
      The tokens in the order of their ids: [PAD] [UNK] [CLS] [SEP] [MASK], the
      unused tokens, characters that begin a word, characters that continue a
      word, and longer pieces. The list is shorter than `vocab_size` if the text
      contains too few pairs.

    Differs: the original has no such program. TensorFlow Text's learner is
      slower, only approximates the size, and learns no beginnings of words.
    """
    for name, value, bound in (
        ("vocab_size", vocab_size, 1),
        ("num_unused", num_unused, 0),
        ("min_count", min_count, 1),
        ("max_characters", max_characters, 1),
    ):
        if value < bound:
            raise UserError(
                f"{name} is {value}; expected {bound} or more. Raise --{name}."
            )
    counts = text
    if not isinstance(text, Mapping):
        counts = count_words(text, do_lower_case, strip_accents)
    counts = {
        word: count
        for word, count in counts.items()
        # Longer words become [UNK], so their pieces would never be used.
        if 0 < len(word) <= MAX_WORD_LENGTH
    }
    if not counts:
        raise UserError(
            "The text contains no words; expected text from which a vocabulary"
            " can be learned. Pass a corpus that contains words."
        )
    alphabet = _frequent_characters(counts, min_count, max_characters)
    unused = [f"[unused{number}]" for number in range(num_unused)]
    reserved = [*SPECIAL_TOKENS, *unused]
    # Every character can begin a word. Punctuation marks and ideographs are
    # always separate words, and never continue a word.
    singles = alphabet + [
        JOINER + char
        for char in alphabet
        if not (is_punctuation(char) or is_cjk(char))
    ]
    num_pieces = vocab_size - len(reserved) - len(singles)
    if num_pieces < 0:
        raise UserError(
            f"vocab_size {vocab_size} is too small; expected at least"
            f" {vocab_size - num_pieces}: {len(reserved)} special and unused"
            f" tokens, and {len(singles)} tokens for {len(alphabet)}"
            " characters. Raise --vocab_size or --min_count, or lower"
            " --num_unused or --max_characters."
        )
    pieces = learn_pieces(counts, alphabet, num_pieces, min_count)
    return [*reserved, *singles, *pieces]


def _frequent_characters(
    word_counts: Mapping[str, int], min_count: int, max_characters: int
) -> list[str]:
    """Return the most frequent characters, sorted."""
    counts: dict[str, int] = collections.defaultdict(int)
    for word, count in word_counts.items():
        for char in word:
            counts[char] += count
    frequent = [char for char, count in counts.items() if count >= min_count]
    frequent.sort(key=lambda char: (-counts[char], char))
    return sorted(frequent[:max_characters])


def measure_coverage(
    tokens: Iterable[str], word_counts: Mapping[str, int]
) -> Coverage:
    """Measure how a vocabulary splits counted words."""
    tokenizer = WordpieceTokenizer(frozenset(tokens))
    total = unknown = pieces = 0
    for word, count in word_counts.items():
        word_pieces = tokenizer.split_word(word)
        total += count
        pieces += count * len(word_pieces)
        if word_pieces == [UNK]:
            unknown += count
    return Coverage(total, unknown, pieces)
