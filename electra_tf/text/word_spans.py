# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The words of running text, with their places, for models that tag words."""

import functools

from electra_tf.text import characters

_INSIDE, _SPACE, _ALONE = range(3)


def split_words(text: str) -> list[tuple[int, int]]:
    """Finds the words that tokenization starts from.

    White space separates them; punctuation marks and Chinese characters are
    words of their own. What tokenization would remove, such as control
    characters, stays inside its word, or is left out where it stands alone.

    Args:
      text: any text.

    Returns:
      (start, end) of each word, in characters; end is exclusive.
    """
    words: list[tuple[int, int]] = []
    start = -1  # of the word that is being read
    for i, char in enumerate(text):
        kind = _kind(char)
        if kind == _INSIDE:
            if start < 0:
                start = i
            continue
        if start >= 0:
            words.append((start, i))
            start = -1
        if kind == _ALONE:
            words.append((i, i + 1))
    if start >= 0:
        words.append((start, len(text)))
    return [
        (first, last)
        for first, last in words
        if not all(map(characters.is_removed, text[first:last]))
    ]


@functools.lru_cache(2**16)
def _kind(char: str) -> int:
    """Whether a character separates words, is one itself, or part of one."""
    if characters.is_whitespace(char):
        return _SPACE
    if characters.is_punctuation(char) or characters.is_cjk(char):
        return _ALONE
    return _INSIDE
