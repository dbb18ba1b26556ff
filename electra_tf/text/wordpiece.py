# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Splitting of words into wordpieces by greedy longest match.

Source: google-research/electra, model/tokenization.py, under the same names
unless a docstring names another.
"""

import itertools
from collections.abc import Collection, Iterable
from typing import TypeVar

_Value = TypeVar("_Value")

JOINER = "##"
MAX_WORD_LENGTH = 200  # characters; longer words become [UNK]


class WordpieceTokenizer:
    """Splitter of words into wordpieces by greedy longest match."""

    def __init__(
        self,
        vocab: Collection[str],
        unk_token: str = "[UNK]",
        max_input_chars_per_word: int = MAX_WORD_LENGTH,
    ):
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word
        # No match is longer than the longest piece, so the search need not
        # begin at the end of a word.
        self._longest_first = max(map(len, vocab), default=0)
        continuing = (len(piece) for piece in vocab if piece[:2] == JOINER)
        self._longest_next = max(continuing, default=0) - len(JOINER)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Split a text into words at white space, and each word into pieces."""
        return chain(map(self.split_word, as_text(text).split()))

    def split_word(self, word: str) -> list[str]:
        """Split a word into pieces; an unknown word becomes [UNK]."""
        vocab = self.vocab
        length = len(word)
        if length > self.max_input_chars_per_word:
            return [self.unk_token]
        if word in vocab:
            return [word]
        pieces = []
        start, prefix, longest = 0, "", self._longest_first
        while start < length:
            for end in range(min(length, start + longest), start, -1):
                piece = prefix + word[start:end]
                if piece in vocab:
                    break
            else:
                return [self.unk_token]
            pieces.append(piece)
            start, prefix, longest = end, JOINER, self._longest_next
        return pieces


def as_text(text: str | bytes) -> str:
    """Return a text as `str`, without bytes that are not UTF-8.

    Source: `convert_to_unicode`.
    """
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    kind = type(text).__name__
    raise ValueError(f"Text is of type {kind}; expected str or bytes.")


def chain(parts: Iterable[Iterable[_Value]]) -> list[_Value]:
    """Concatenate the elements of all parts in one list."""
    return list(itertools.chain.from_iterable(parts))
