# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The words of running text, with their places, for models that tag words."""

import functools

from electra_tf.text import characters

# What a character does to the words around it.
INSIDE, SPACE, ALONE = range(3)


def split_words(text: str) -> list[tuple[int, int]]:
    """Finds the words that tokenization starts from.

    White space separates them; punctuation marks and Chinese characters are
    words of their own. What tokenization would remove, such as control
    characters, stays inside its word, or is left out where it stands alone.
    """
    words: list[tuple[int, int]] = []
    start = -1  # of the word that is being read
    for i, char in enumerate(text):
        kind = kind_of(char)
        if kind == INSIDE:
            if start < 0:
                start = i
            continue
        if start >= 0:
            words.append((start, i))
            start = -1
        if kind == ALONE:
            words.append((i, i + 1))
    if start >= 0:
        words.append((start, len(text)))
    return [
        (first, last)
        for first, last in words
        if not all(map(characters.is_removed, text[first:last]))
    ]


@functools.lru_cache(2**16)
def kind_of(char: str) -> int:
    """Tells whether a character separates words, is one, or part of one."""
    if characters.is_removed(char):
        return INSIDE
    # Line and paragraph separators are white space to `str.split` only.
    if characters.is_whitespace(char) or char.isspace():
        return SPACE
    if characters.is_punctuation(char) or characters.is_cjk(char):
        return ALONE
    return INSIDE
