# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A WordPiece vocabulary learned from text.

The words are counted as the tokenizer will later see them. The vocabulary holds
the five special tokens, a reserve of `[unused*]` ones, every character seen
often enough, and the pieces that merging frequent neighbours finds. Everything
is ordered by counts and text, so equal counts give an equal vocabulary.
"""

import collections
import dataclasses
from collections.abc import Iterable, Mapping

from configure.errors import UserError
from electra_tf.text import characters, merging, vocab
from electra_tf.text.basic import BasicTokenizer, as_text, split_raw_words
from electra_tf.text.wordpiece import JOINER, WordpieceTokenizer

# A language has far fewer characters than this; beyond are those of others,
# quoted now and then. Chinese and Japanese need a larger limit.
MAX_CHARACTERS = 1000

# The tokenizer makes longer words [UNK], so they have nothing to teach.
_MAX_WORD_LENGTH = 200


@dataclasses.dataclass(frozen=True)
class Coverage:
    """How a vocabulary fits the words it is to split.

    Attributes:
      words: how many words, counted with repetition.
      unknown: how many of them become [UNK].
      pieces: how many wordpieces they all make.
    """

    words: int
    unknown: int
    pieces: int

    @property
    def unknown_rate(self) -> float:
        """The share of words that become [UNK]."""
        return self.unknown / max(self.words, 1)

    @property
    def pieces_per_word(self) -> float:
        """The mean number of wordpieces in a word."""
        return self.pieces / max(self.words, 1)


def count_words(
    lines: Iterable[str | bytes],
    do_lower_case: bool = True,
    strip_accents: bool = True,
) -> dict[str, int]:
    """Counts the words of a text as the tokenizer splits them.

    Args:
      lines: the text; where it is cut into lines does not matter, except that
        no word may straddle a cut.
      do_lower_case: as for `BasicTokenizer`.
      strip_accents: as for `BasicTokenizer`.

    Returns:
      From word or punctuation mark to how often it occurs.
    """
    raw_counts: dict[str, int] = collections.Counter()
    for line in lines:
        raw_counts.update(split_raw_words(as_text(line)))
    # Each different raw word is worked on once only.
    tokenizer = BasicTokenizer(do_lower_case, strip_accents)
    counts: dict[str, int] = collections.defaultdict(int)
    for raw_word, count in raw_counts.items():
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
    """Learns a vocabulary.

    Args:
      words: what `count_words` returned, or lines of text to count.
      vocab_size: how many tokens are wanted, the special ones included.
      do_lower_case: as for `BasicTokenizer`; of no effect on counted words.
      strip_accents: likewise.
      num_unused: how many `[unused*]` tokens to reserve for later use.
      min_count: what occurs less often gets no token of its own, be it a
        character or a pair of pieces.
      max_characters: at most so many different characters, the most frequent.

    Returns:
      The tokens in order of their ids: [PAD] [UNK] [CLS] [SEP] [MASK], the
      unused ones, characters that begin a word, those that continue one, and
      longer pieces from frequent to rare. Fewer than `vocab_size` when the
      text has no more to offer.

    Raises:
      UserError: there are no words, or `vocab_size` cannot hold even the
        specials, unused tokens and characters.

    Differs:
      The original has no such program. TensorFlow Text's learner was not taken
      because it offers only whole words and endings of words as pieces, and
      searches for a threshold that comes near the size; merging finds
      beginnings too, reaches the size, and takes a small part of the time.
    """
    _refuse_bad_numbers(vocab_size, num_unused, min_count, max_characters)
    counts = words
    if not isinstance(words, Mapping):
        counts = count_words(words, do_lower_case, strip_accents)
    counts = {
        word: count
        for word, count in counts.items()
        if 0 < len(word) <= _MAX_WORD_LENGTH
    }
    if not counts:
        raise UserError(
            "The text holds no words, so there is no vocabulary to learn."
        )
    alphabet = _frequent_characters(counts, min_count, max_characters)
    reserved = [*vocab.SPECIAL_TOKENS, *_unused_tokens(num_unused)]
    singles = _single_pieces(alphabet)
    wanted = vocab_size - len(reserved) - len(singles)
    if wanted < 0:
        raise UserError(
            f"vocab_size {vocab_size} is too small: {len(reserved)} special"
            f" and unused tokens and {len(singles)} for {len(alphabet)}"
            f" characters make {vocab_size - wanted}. Raise vocab_size, or"
            " lower num_unused or max_characters, or raise min_count."
        )
    pieces = merging.learn_pieces(counts, alphabet, wanted, min_count)
    return [*reserved, *singles, *pieces]


def measure_coverage(
    tokens: Iterable[str], word_counts: Mapping[str, int]
) -> Coverage:
    """Splits counted words with a vocabulary.

    Args:
      tokens: the vocabulary.
      word_counts: what `count_words` returned.

    Returns:
      How many words there are, how many are unknown, and in how many pieces.
    """
    tokenizer = WordpieceTokenizer(frozenset(tokens))
    unknown = pieces = 0
    for word, count in word_counts.items():
        split = tokenizer.split_word(word)
        pieces += count * len(split)
        if split == [vocab.UNK]:
            unknown += count
    return Coverage(sum(word_counts.values()), unknown, pieces)


def _refuse_bad_numbers(
    vocab_size: int, num_unused: int, min_count: int, max_characters: int
) -> None:
    for name, value, least in (
        ("vocab_size", vocab_size, 1),
        ("num_unused", num_unused, 0),
        ("min_count", min_count, 1),
        ("max_characters", max_characters, 1),
    ):
        if value < least:
            raise UserError(f"{name} is {value}; it must be {least} or more.")


def _unused_tokens(count: int) -> list[str]:
    return [f"[unused{number}]" for number in range(count)]


def _frequent_characters(
    word_counts: Mapping[str, int], min_count: int, max_characters: int
) -> list[str]:
    counts: dict[str, int] = collections.defaultdict(int)
    for word, count in word_counts.items():
        for char in word:
            counts[char] += count
    frequent = [char for char in counts if counts[char] >= min_count]
    frequent.sort(key=lambda char: (-counts[char], char))
    return sorted(frequent[:max_characters])


def _single_pieces(alphabet: list[str]) -> list[str]:
    """Makes every character usable wherever it may come to stand.

    Punctuation marks and ideographs are words of their own, so they never
    continue one.
    """
    continuing = [
        JOINER + char
        for char in alphabet
        if not characters.is_punctuation(char) and not characters.is_cjk(char)
    ]
    return [*alphabet, *continuing]
