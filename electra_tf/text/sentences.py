# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Splitting of running text into sentences.

The patterns have the same meaning in Python and in the RE2 of a graph: they
contain no look-around, and only ASCII white space and letters. A replacement
has as many bytes as the replaced text, so that offsets stay valid.
"""

import re

_SPACES = " \t\r\f\v"
_CLOSING = "\"')\\]\u2019\u201d\xbb"
# Small letters of Latin, Greek, Cyrillic and Armenian, except a to z.
_SMALL = "".join(c for c in map(chr, range(0x80, 0x590)) if c.islower())
# Marks that end sentences in non-Latin scripts (Unicode's STerm), even without
# a following space.
_TERMINALS = (
    "\u3002\uff01\uff1f\uff61"  # Chinese, Japanese
    "\u0964\u0965\uabeb"  # Indian dandas
    "\u061e\u061f\u06d4\u0700-\u0702\u07f9"  # Arabic, Urdu, Syriac, N'Ko
    "\u0589\u1362\u1367\u1368"  # Armenian, Ethiopic
    "\u104b\u17d4\u17d5\u1aa8-\u1aab"  # Burmese, Khmer, Tai
    "\u1803\u1809\u1c7e\u1c7f\u203c\u203d\u2047-\u2049"  # Mongolian and others
)
_CLOSING_BRACKETS = "\uff09\uff3d\uff5d\uff63\u3009\u300b\u300d\u300f\u3011"
# Character that marks the end of a sentence inside a line of the text.
BREAK = "\x02"
# A point after an initial or an abbreviation becomes "\x01", and the last space
# after a sentence becomes a line feed. `BREAK` and a line feed are inserted
# after the marks of `_TERMINALS`.
SENTENCE_BREAKS = (
    (BREAK, "\x01"),
    (
        r"\b([A-Z]|Mr|Mrs|Ms|Dr|Prof|Rev|Hon|St|Gen|Col|Maj|Capt|Lt|Sgt|Cpl|Sen"
        r"|Rep|Gov|Jr|Sr|Inc|Ltd|Co|Corp|vs|Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov"
        r"|Dec)\.",
        "\\1\x01",
    ),
    (
        rf"([.!?][{_CLOSING}]*[{_SPACES}]*)[{_SPACES}]"
        rf"([^a-z{_SMALL}{_SPACES}\n])",
        "\\1\n\\2",
    ),
    (
        rf"([{_TERMINALS}][{_TERMINALS}.!?{_CLOSING}{_CLOSING_BRACKETS}]*)",
        f"\\1{BREAK}\n",
    ),
)


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Find the sentences of running text by punctuation and line ends.

    A sentence ends at the end of a line. A sentence also ends at a point,
    question mark or exclamation mark before white space, unless a small letter
    follows, and after the marks that end sentences in other scripts (Chinese,
    Devanagari, Urdu ...) and their closing quotes. Thai has no such mark, so
    each line of Thai is a sentence.

    Returns:
      Start and end of each sentence, in characters.
    """
    for pattern, replacement in SENTENCE_BREAKS:
        text = re.sub(pattern, replacement, text, flags=re.ASCII)
    sentences, start = [], 0
    for marked in text.split("\n"):
        line = marked.removesuffix(BREAK)
        if sentence := line.strip(_SPACES):
            first = start + len(line) - len(line.lstrip(_SPACES))
            sentences.append((first, first + len(sentence)))
        start += len(line) if marked.endswith(BREAK) else len(line) + 1
    return sentences
