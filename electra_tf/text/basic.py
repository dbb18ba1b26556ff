# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text to words: cleaning, lower-casing, accents, punctuation."""

import re
import unicodedata

from electra_tf.text import characters

_SPLITTING_CONTROLS = re.compile(f"[{characters.SPLITTING_CONTROLS}]")
# The commonest marks, as they stand in the text and set apart. Those of the
# second kind are among the characters that lower-casing looks past to see
# whether a sigma ends its word, so they are set apart only where no sigma is.
_MARKS = tuple((mark, f" {mark} ") for mark in ',"-;?!()')
_MARKS_IN_ASCII = (*_MARKS, *((mark, f" {mark} ") for mark in ".':"))
# In cleaned ASCII without spaces, what is not alphanumeric is punctuation.
_ASCII_PIECES = re.compile(r"[0-9A-Za-z]+|[^0-9A-Za-z]")


def as_text(text: str | bytes) -> str:
    """Makes a `str` of text given as either type.

    Args:
      text: a string, or bytes in UTF-8.

    Returns:
      The string; byte sequences that are not UTF-8 are left out.

    Raises:
      ValueError: `text` is of another type.

    Source:
      model/tokenization.py `convert_to_unicode`.
    """
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    raise ValueError(f"Text must be str or bytes, not {type(text).__name__}.")


def split_raw_words(text: str) -> list[str]:
    """Splits text at white space and around the commonest marks.

    All other work is left to each word. Every later step looks at one word at
    a time, so splitting first changes nothing as long as it happens where the
    original would split: at the characters `str.split` knows, except the few
    controls that the original deletes before it splits; and on both sides of
    punctuation, which is always a token of its own ("end," and "end." both
    hold the word "end", which need then be worked out only once).

    Args:
      text: any string.

    Returns:
      Words as they stand in the text, not cleaned yet.
    """
    # Most lines are printable throughout, hence hold none of those controls.
    if not text.isprintable():
        text = _SPLITTING_CONTROLS.sub("", text)
    for mark, set_apart in _MARKS_IN_ASCII if text.isascii() else _MARKS:
        text = text.replace(mark, set_apart)
    return text.split()


class BasicTokenizer:
    """Splits text into words and punctuation marks.

    The settings are read when the tokenizer is made; changing the attributes
    afterwards has no effect.

    Args:
      do_lower_case: whether to lower-case.
      strip_accents: whether to decompose characters and drop accents. Only
        lower-casing tokenizers do so: without `do_lower_case` accents stay.

    Source:
      model/tokenization.py `BasicTokenizer`.
    """

    def __init__(self, do_lower_case: bool = True, strip_accents: bool = True):
        self.do_lower_case = do_lower_case
        self.strip_accents = strip_accents
        self._decompose = bool(do_lower_case and strip_accents)
        self._cleaning = characters.CleaningTable()
        self._splitting = characters.SplittingTable(self._decompose)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits text into words and punctuation marks.

        Args:
          text: any string, or bytes in UTF-8.

        Returns:
          The tokens in order; none is empty or holds white space.
        """
        tokens = []
        for word in split_raw_words(as_text(text)):
            tokens += self.split_word(word)
        return tokens

    def split_word(self, word: str) -> list[str]:
        """Does to one word of `split_raw_words` all that remains to be done.

        Args:
          word: a word without white space, not cleaned yet.

        Returns:
          Its tokens: none when nothing is left of it.
        """
        if not word.isascii():
            return self._split_any(word)
        if not word.isprintable():
            word = word.translate(self._cleaning)
        if self.do_lower_case:
            word = word.lower()
        return _ASCII_PIECES.findall(word)

    def _split_any(self, word: str) -> list[str]:
        tokens = []
        # Lower-casing must see each cleaned word whole and alone: a sigma is
        # final or not by its neighbours.
        for part in word.translate(self._cleaning).split():
            if self.do_lower_case:
                part = part.lower()
            if self._decompose:
                part = unicodedata.normalize("NFD", part)
            tokens += part.translate(self._splitting).split()
        return tokens
