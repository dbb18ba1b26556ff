# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Words of running text, and the wordpieces of each word."""

import functools
import itertools
import unicodedata
from collections.abc import Sequence

from electra_tf.text import characters
from electra_tf.text.memo import Memo
from electra_tf.text.tokenization import FullTokenizer

# Roles of a character in the splitting of text into words.
INSIDE, SPACE, ALONE = range(3)


def split_words(text: str) -> list[tuple[int, int]]:
    """Find the words of a text before tokenization.

    White space separates words; each punctuation mark and each Chinese
    character is a word. Characters that tokenization removes, such as control
    characters, stay in their words. Words that consist only of such characters
    are left out.

    Returns:
      Start and end of each word, in characters.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for role, chars in itertools.groupby(text, role_of):
        end = start + len(list(chars))
        if role == INSIDE:
            spans.append((start, end))
        elif role == ALONE:
            spans += [(i, i + 1) for i in range(start, end)]
        start = end
    return [
        (first, last)
        for first, last in spans
        if not all(map(characters.is_removed, text[first:last]))
    ]


@functools.lru_cache(2**16)
def role_of(char: str) -> int:
    """Return a character's role: separator, part of a word, or whole word."""
    if characters.is_removed(char):
        return INSIDE
    # `is_whitespace` excludes line and paragraph separators, but `str.split`
    # splits there, too.
    if characters.is_whitespace(char) or char.isspace():
        return SPACE
    if characters.is_punctuation(char) or characters.is_cjk(char):
        return ALONE
    return INSIDE


class WordAligner:
    """Tokenizer of single words, for tasks that label words.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      tokenize_and_align.
    """

    def __init__(self, tokenizer: FullTokenizer, as_in_text: bool = False):
        """Set a tokenizer, and the rule by which words are split.

        Args:
          tokenizer: tokenizer whose vocabulary splits the words.
          as_in_text: whether a word is split as the tokenizer splits text;
            False: as in the original, which always lower-cases words, strips
            accents and does not split Chinese characters.
        """
        self._tokenizer = tokenizer
        self._as_in_text = as_in_text
        self._splitting = characters.splitting_table(drop_accents=True)
        self._memo = Memo(self._encode)

    def encode_word(self, word: str) -> list[int]:
        """Return the ids of a word's pieces; [] if no characters remain."""
        return self._memo[word]

    def _encode(self, word: str) -> list[int]:
        if self._as_in_text:
            return self._tokenizer.encode(word)
        return self._tokenizer.convert_tokens_to_ids(self._split(word))

    def _split(self, word: str) -> list[str]:
        plain = [
            " " if characters.is_whitespace(char) else char
            for char in word
            if not characters.is_removed(char)
        ]
        word = unicodedata.normalize("NFD", "".join(plain).lower())
        pieces = []
        for token in word.translate(self._splitting).split():
            pieces += self._tokenizer.wordpiece_tokenizer.split_word(token)
        return pieces


def join_words(
    pieces_of_words: Sequence[Sequence[int]],
    cls_id: int,
    sep_id: int,
    max_length: int,
    count_words: bool = True,
) -> tuple[list[int], list[int]]:
    """Join the pieces of a sentence's words into one sequence.

    Args:
      pieces_of_words: ids of each word's pieces.
      cls_id, sep_id: ids of [CLS] and [SEP].
      max_length: maximum number of ids in the result.
      count_words: truncate as the original does: stop once the pieces so far
        plus the number of *words* in the whole sentence exceed `max_length`.
        Long sentences lose far more than necessary, and possibly all ids except
        [SEP].

    Returns:
      Ids that end in [SEP], and for each word that fits the position of its
      first piece (for a word without pieces, of the next piece).

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      featurize.
    Differs: a word with too many pieces is truncated; the original fails.
    """
    num_words = len(pieces_of_words)
    reserved = num_words + 2 if count_words else 0
    ids: list[int] = []
    positions: list[int] = []
    for i, pieces in enumerate([[cls_id], *pieces_of_words, [sep_id]]):
        is_word = 0 < i <= num_words
        # The last position is reserved for [SEP].
        overflows = is_word and len(ids) + len(pieces) > max_length - 1
        if overflows or reserved + len(ids) + 1 > max_length:
            ids.append(sep_id)
            break
        if is_word:
            positions.append(len(ids))
        ids += pieces
    return ids, positions
