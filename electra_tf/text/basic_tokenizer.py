# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Splitting of text into words: cleaning, casing, accents, punctuation.

Source: google-research/electra, model/tokenization.py, `BasicTokenizer`.
"""

import re
import unicodedata

from electra_tf.text.characters import (
    SPLITTING_CONTROLS,
    CharacterTable,
    clean,
    splitting_table,
)
from electra_tf.text.wordpiece import as_text, chain

_SPLITTING_CONTROLS = re.compile(f"[{SPLITTING_CONTROLS}]")
# The most frequent punctuation marks, each with its replacement: the mark
# between spaces. Around a sigma, lower-casing skips "." and ":" to decide
# whether the sigma ends its word. These two marks are therefore separated only
# in ASCII text, which contains no sigma.
_MARKS = tuple((mark, f" {mark} ") for mark in ',"-;?!()')
_MARKS_IN_ASCII = (*_MARKS, *((mark, f" {mark} ") for mark in ".':"))
# In cleaned ASCII without spaces, all characters except letters and digits are
# punctuation.
_ASCII_PIECES = re.compile(r"[0-9A-Za-z]+|[^0-9A-Za-z]")


def split_raw_words(text: str) -> list[str]:
    """Split a text at white space and around frequent punctuation marks.

    Splitting first does not change the tokens, because later steps process
    single words and the original splits at all of these positions. Control
    characters that the original deletes before it splits at white space are
    also deleted here.
    """
    # Printable text contains none of these control characters. Most lines are
    # printable, so this fast test usually replaces the substitution.
    if not text.isprintable():
        text = _SPLITTING_CONTROLS.sub("", text)
    for mark, set_apart in _MARKS_IN_ASCII if text.isascii() else _MARKS:
        text = text.replace(mark, set_apart)
    return text.split()


class BasicTokenizer:
    """Splitter of text into words and punctuation marks."""

    def __init__(self, do_lower_case: bool = True, strip_accents: bool = True):
        self.do_lower_case = do_lower_case
        self.strip_accents = strip_accents
        self._decompose = bool(do_lower_case and strip_accents)
        self._cleaning = CharacterTable(clean)
        self._splitting = splitting_table(self._decompose)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Split a text into words and punctuation marks."""
        return chain(map(self.split_word, split_raw_words(as_text(text))))

    def raw_words(self, text: str) -> list[str]:
        """Split a text into words that can be processed independently."""
        # After lower-casing, "End" and "end" are one word, which is processed
        # once. Only ASCII text can be lower-cased before it is cleaned.
        if self.do_lower_case and text.isascii():
            text = text.lower()
        return split_raw_words(text)

    def split_word(self, word: str) -> list[str]:
        """Clean, lower-case and split one word of `split_raw_words`."""
        if not word.isascii():
            return self._split_any(word)
        if not word.isprintable():
            word = word.translate(self._cleaning)
        if self.do_lower_case:
            word = word.lower()
        return _ASCII_PIECES.findall(word)

    def _split_any(self, word: str) -> list[str]:
        tokens = []
        # A cleaned word is lower-cased as a whole, because the neighbors of a
        # sigma decide whether the sigma becomes final.
        for part in word.translate(self._cleaning).split():
            if self.do_lower_case:
                part = part.lower()
            if self._decompose:
                part = unicodedata.normalize("NFD", part)
            tokens += part.translate(self._splitting).split()
        return tokens
