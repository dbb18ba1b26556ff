# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Words of texts in any script, for metrics and for search.

A word consists of letters, digits and their marks. In scripts without spaces,
each letter with its marks is a word.
"""

import functools
import re
import sys
import unicodedata
from collections.abc import Iterator

# Version of the splitting. Increase the number with each change of the
# splitting, so that an outdated index is rejected.
VERSION = f"1, Unicode {unicodedata.unidata_version}"

# Letters of scripts in which a line can break between two letters: the classes
# CJ, ID, SA, AK and AS of Unicode's line breaking (UAX #14). Hangul is
# excluded, because spaces separate its words.
SPACELESS_LETTERS = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese, Shan
    "\u1780-\u17ff"  # Khmer
    "\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf\U00011700-\U0001174f"  # Tai, Ahom
    "\u1b00-\u1b7f\ua980-\ua9df"  # Balinese, Javanese
    "\u1bc0-\u1bff\uaa00-\uaa5f"  # Batak, Cham
    "\u3005-\u3007\u3021-\u3035\u3038-\u303c"  # signs among ideographs
    "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\U0001aff0-\U0001b16f"  # historic kana
    "\u3100-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese
    "\ua000-\ua48f"  # Yi
    "\U00016fe0-\U00018dff\U0001b170-\U0001b2ff"  # Tangut, Khitan, Nushu
)
_HANGUL = "\uac00-\ud7a3"
# Invisible characters: joiners, soft hyphens, directions, selectors. The
# zero-width space is excluded, because it separates words.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
_SYLLABLES = re.compile(f"[{_HANGUL}]+")

# Words that are frequent in English and unknown in other languages.
_ENGLISH = frozenset(
    "the and with without from that this these those which whose his him their"
    " they them she you your would could should were said says about when where"
    " what after before because between into during while only other there year"
    " years did does its".split()
)
_ENGLISH_SHARE = 1 / 30


@functools.cache
def _pattern() -> re.Pattern[str]:
    """Compile the pattern of a word.

    Group 1 matches a letter of a script that is written without spaces.
    """
    code_points = map(chr, range(sys.maxunicode + 1))
    marks = "".join(c for c in code_points if unicodedata.category(c)[0] == "M")
    letter = r"[^\W_]"
    joined = rf"(?:\d|(?![{SPACELESS_LETTERS}]){letter})"
    return re.compile(
        rf"((?!\d)(?=[{SPACELESS_LETTERS}]){letter}[{marks}]*)"
        rf"|{joined}(?:{joined}|[{marks}])*"
    )


def fold(text: str) -> str:
    """Return a text in lower case and NFC, without invisible characters.

    Unlike with `str.lower`, the Turkish capital dotted I becomes i.
    """
    if text.isascii():
        return text.lower()
    text = _INVISIBLE.sub("", text).lower().replace("i\u0307", "i")
    return unicodedata.normalize("NFC", text)


def split_into_words(text: str) -> list[str]:
    """Split a text of any language into the words that metrics compare.

    A word is a run of letters and digits with their marks (accents, vowel
    signs, viramas). In scripts without spaces (Chinese, kana, Thai, Lao,
    Khmer, Burmese ...) a word is one letter with its marks, the smallest
    visible unit, because longer words require a dictionary; digits stay
    together. White space, punctuation and symbols separate words. Words are
    folded (see `fold`).
    """
    if text.isascii():
        return re.findall(r"[a-z0-9]+", text.lower())
    return [match.group() for match in _pattern().finditer(fold(text))]


def split_into_characters(text: str) -> list[str]:
    """Split a text into its letters and digits, each with its marks."""
    return [
        character
        for word in split_into_words(text)
        for character in re.findall(r"[^\W_](?:(?![^\W_]).)*", word)
    ]


def split_into_terms(text: str) -> list[tuple[str, bool]]:
    """Split a text into the terms that a search compares.

    Each word is a term. Each pair of adjacent letters is a term, too, in
    scripts without spaces, because single letters occur in all texts, and in
    Hangul, because its words have endings.

    Returns:
      Each term, and whether the term is a whole word, which can be stemmed.
    """
    if text.isascii():
        return [(word, True) for word in split_into_words(text)]
    return [*_terms(fold(text))]


def _terms(text: str) -> Iterator[tuple[str, bool]]:
    previous_letter, end = "", -1
    for match in _pattern().finditer(text):
        word, letter = match.group(), match.group(1)
        yield word, letter is None
        if letter is not None and previous_letter and match.start() == end:
            yield previous_letter + letter, False
        previous_letter, end = letter or "", match.end()
        if letter is None and not word.isascii():
            for run in _SYLLABLES.findall(word):
                for first in range(len(run) - 1):
                    yield run[first : first + 2], False


def is_english(text: str) -> bool:
    """Return whether a text is English, judged by frequent words.

    At least two words, and one in thirty, must be among some fifty words that
    are frequent in English and unknown in other languages. These words must
    also outnumber the words in letters that are not Latin.
    """
    text_words = split_into_words(text)
    english = sum(word in _ENGLISH for word in text_words)
    foreign = sum(
        not word.isascii() and not _is_latin(word) for word in text_words
    )
    return english >= max(2, _ENGLISH_SHARE * len(text_words), foreign + 1)


@functools.lru_cache(2**16)
def _is_latin(word: str) -> bool:
    letters = filter(str.isalpha, word)
    return all(unicodedata.name(c, "").startswith("LATIN") for c in letters)
