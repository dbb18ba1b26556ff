# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A WordPiece vocabulary learned from text.

The words are counted as the tokenizer will later see them. The vocabulary holds
the five special tokens, a reserve of `[unused*]` ones, every character seen
often enough, and the pieces that merging frequent neighbours finds. Everything
is ordered by counts and text, so equal counts give an equal vocabulary.
"""

import collections
import heapq
import itertools
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from configure.errors import UserError
from electra_tf.text import tokenization
from electra_tf.text.stripping import ScriptCounter
from electra_tf.text.tokenization import (
    BasicTokenizer,
    WordpieceTokenizer,
    as_text,
    split_raw_words,
)
from electra_tf.text.wordpiece import JOINER, MAX_WORD_LENGTH

# Learning wordpieces by merging the most frequent neighbours.

_Pair = tuple[str, str]


def spell(word: str) -> list[str]:
    """Splits a word into single-character pieces."""
    return [word[0], *(JOINER + char for char in word[1:])]


def learn_pieces(
    word_counts: Mapping[str, int],
    alphabet: Collection[str],
    max_pieces: int,
    min_count: int = 2,
) -> list[str]:
    """Learns the most useful pieces of more than one character.

    They come from frequent to rare. Equal counts are ordered by the pieces'
    text, so the result depends on the counts alone.

    Source: Sennrich et al. 2016, "Neural Machine Translation of Rare Words with
      Subword Units", section 3.2, with pieces marked as in WordPiece.
    """
    merger = _Merger(word_counts, frozenset(alphabet))
    pieces: dict[str, None] = {}  # as an ordered set
    while len(pieces) < max_pieces:
        if (pair := merger.most_frequent(min_count)) is None:
            break
        # Two pairs can spell the same piece; it is then counted once.
        pieces[merger.merge(pair)] = None
    return list(pieces)


class _Merger:
    """The words as they are split so far, and the counts of their pairs."""

    def __init__(self, word_counts: Mapping[str, int], alphabet: frozenset):
        kept = [w for w in word_counts if len(w) > 1 and alphabet.issuperset(w)]
        self._words = [spell(word) for word in kept]
        self._counts = [word_counts[word] for word in kept]
        self._pair_counts: dict[_Pair, int] = collections.defaultdict(int)
        self._words_with: dict[_Pair, set[int]] = collections.defaultdict(set)
        for number, pieces in enumerate(self._words):
            for pair in itertools.pairwise(pieces):
                self._pair_counts[pair] += self._counts[number]
                self._words_with[pair].add(number)
        # Entries go stale as counts change; `most_frequent` skips those.
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


def _merge_in_word(pieces: list[str], pair: _Pair, merged: str) -> list[str]:
    result: list[str] = []
    for piece in pieces:
        if result and (result[-1], piece) == pair:
            result[-1] = merged
        else:
            result.append(piece)
    return result


# A language has far fewer characters than this; beyond are those of others,
# quoted now and then. Chinese and Japanese need a larger limit.
MAX_CHARACTERS = 1000


class Coverage(NamedTuple):
    """How a vocabulary fits the words it is to split."""

    words: int  # how many words, counted with repetition
    unknown: int  # how many of them become [UNK]
    pieces: int  # how many wordpieces they all make


def count_words(
    lines: Iterable[str | bytes],
    do_lower_case: bool = True,
    strip_accents: bool = True,
    letters: ScriptCounter | None = None,
) -> dict[str, int]:
    """Counts the words of a text as the tokenizer splits them.

    `letters` counts the letters of the text as it is.
    """
    raw_counts: dict[str, int] = collections.Counter()
    for line in lines:
        raw_counts.update(split_raw_words(as_text(line)))
    # Each different raw word is worked on once only.
    tokenizer = BasicTokenizer(do_lower_case, strip_accents)
    counts: dict[str, int] = collections.defaultdict(int)
    for raw_word, count in raw_counts.items():
        if letters is not None:
            letters.add(raw_word, count)
        for word in tokenizer.split_word(raw_word):
            counts[word] += count
    return dict(counts)


def build_vocab(
    words: Mapping[str, int] | Iterable[str | bytes],
    vocab_size: int = 30522,
    do_lower_case: bool = True,
    strip_accents: bool = True,
    num_unused: int = 99,
    min_count: int = 2,
    max_characters: int = MAX_CHARACTERS,
) -> list[str]:
    """Learns a vocabulary; returns the tokens in order of their ids.

    [PAD] [UNK] [CLS] [SEP] [MASK], the unused ones, characters that begin a
    word, those that continue one, and longer pieces. Fewer than `vocab_size`
    when the text has no more to offer.

    Differs: the original has no such program. TensorFlow Text's learner is
      slower, comes only near the size and finds no beginnings of words.
    """
    for name, value, least in (
        ("vocab_size", vocab_size, 1),
        ("num_unused", num_unused, 0),
        ("min_count", min_count, 1),
        ("max_characters", max_characters, 1),
    ):
        if value < least:
            raise UserError(f"{name} is {value}; it must be {least} or more.")
    counts = words
    if not isinstance(words, Mapping):
        counts = count_words(words, do_lower_case, strip_accents)
    counts = {
        word: count
        for word, count in counts.items()
        # Longer ones become [UNK], so they have nothing to teach.
        if 0 < len(word) <= MAX_WORD_LENGTH
    }
    if not counts:
        raise UserError(
            "The text holds no words, so there is no vocabulary to learn."
        )
    characters: dict[str, int] = collections.defaultdict(int)
    for word, count in counts.items():
        for char in word:
            characters[char] += count
    frequent = [char for char, n in characters.items() if n >= min_count]
    frequent.sort(key=lambda char: (-characters[char], char))
    alphabet = sorted(frequent[:max_characters])
    unused = [f"[unused{number}]" for number in range(num_unused)]
    reserved = [*tokenization.SPECIAL_TOKENS, *unused]
    # Every character is usable wherever it may come to stand. Punctuation marks
    # and ideographs are words of their own, so they never continue one.
    singles = alphabet + [
        JOINER + char
        for char in alphabet
        if not (tokenization.is_punctuation(char) or tokenization.is_cjk(char))
    ]
    wanted = vocab_size - len(reserved) - len(singles)
    if wanted < 0:
        raise UserError(
            f"vocab_size {vocab_size} is too small: {len(reserved)} special"
            f" and unused tokens and {len(singles)} for {len(alphabet)}"
            f" characters make {vocab_size - wanted}. Raise vocab_size, or"
            " lower num_unused or max_characters, or raise min_count."
        )
    pieces = learn_pieces(counts, alphabet, wanted, min_count)
    return [*reserved, *singles, *pieces]


def measure_coverage(
    tokens: Iterable[str], word_counts: Mapping[str, int]
) -> Coverage:
    """Splits counted words with a vocabulary."""
    tokenizer = WordpieceTokenizer(frozenset(tokens))
    words = unknown = pieces = 0
    for word, count in word_counts.items():
        split = tokenizer.split_word(word)
        words += count
        pieces += count * len(split)
        unknown += count * (split == [tokenization.UNK])
    return Coverage(words, unknown, pieces)
