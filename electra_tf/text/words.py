# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Words and sentences of running text, wordpieces and tags of words."""

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence

from electra_tf.text import tokenization
from electra_tf.text.memo import Memo
from electra_tf.text.tokenization import FullTokenizer

# What a character does to the words around it.
INSIDE, SPACE, ALONE = range(3)

# Sentences of running text. Python and the RE2 of a graph read these patterns
# alike: no looking around, white space and letters of ASCII. What is put in
# takes the place of as many bytes, so that offsets stay what they are.
_SPACES = " \t\r\f\v"
_CLOSING = "\"')\\]\u2019\u201d\xbb"
# Small letters of Latin, Greek, Cyrillic and Armenian, beyond a-z.
_SMALL = "".join(c for c in map(chr, range(0x80, 0x590)) if c.islower())
# Marks that end sentences in other scripts (Unicode's STerm), and their
# closing brackets. No space need follow.
_TERMINALS = (
    "\u3002\uff01\uff1f\uff61"  # Chinese, Japanese
    "\u0964\u0965\uabeb"  # Indian dandas
    "\u061e\u061f\u06d4\u0700-\u0702\u07f9"  # Arabic, Urdu, Syriac, N'Ko
    "\u0589\u1362\u1367\u1368"  # Armenian, Ethiopic
    "\u104b\u17d4\u17d5\u1aa8-\u1aab"  # Burmese, Khmer, Tai
    "\u1803\u1809\u1c7e\u1c7f\u203c\u203d\u2047-\u2049"  # Mongolian and others
)
_CLOSING_BRACKETS = "\uff09\uff3d\uff5d\uff63\u3009\u300b\u300d\u300f\u3011"
# Ends a line that ends without a line feed of the text.
BREAK = "\x02"
# A point that ends no sentence (an initial's, a title's) becomes "\x01", and
# the last space behind one that does a line feed. Where no space need follow,
# `BREAK` and a line feed are put in.
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
    """Find the sentences of running text, by punctuation and lines.

    A sentence ends at a line's end; at a point, question or exclamation mark
    before white space and anything but a small letter; and at the marks that
    end sentences in other scripts (Chinese, Devanagari, Urdu ...), with the
    closing quotes behind them, whatever follows. Thai has no such mark: its
    sentences are lines.
    """
    for pattern, instead in SENTENCE_BREAKS:
        text = re.sub(pattern, instead, text, flags=re.ASCII)
    sentences, start = [], 0
    for marked in text.split("\n"):
        line = marked.removesuffix(BREAK)
        if kept := line.strip(_SPACES):
            first = start + len(line) - len(line.lstrip(_SPACES))
            sentences.append((first, first + len(kept)))
        start += len(line) if marked.endswith(BREAK) else len(line) + 1
    return sentences


def split_words(text: str) -> list[tuple[int, int]]:
    """Finds the words that tokenization starts from.

    White space separates them; punctuation marks and Chinese characters are
    words of their own. What tokenization would remove, such as control
    characters, stays inside its word, or is left out where it stands alone.
    """
    words: list[tuple[int, int]] = []
    start = 0
    for kind, chars in itertools.groupby(text, kind_of):
        end = start + len(list(chars))
        if kind == INSIDE:
            words.append((start, end))
        elif kind == ALONE:
            words += [(i, i + 1) for i in range(start, end)]
        start = end
    return [
        (first, last)
        for first, last in words
        if not all(map(tokenization.is_removed, text[first:last]))
    ]


@functools.lru_cache(2**16)
def kind_of(char: str) -> int:
    """Tells whether a character separates words, is one, or part of one."""
    if tokenization.is_removed(char):
        return INSIDE
    # Line and paragraph separators are white space to `str.split` only.
    if tokenization.is_whitespace(char) or char.isspace():
        return SPACE
    if tokenization.is_punctuation(char) or tokenization.is_cjk(char):
        return ALONE
    return INSIDE


# Wordpieces of each word by itself, for labels that belong to words.


class WordAligner:
    """Splits each word of a sentence into wordpieces.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      tokenize_and_align.
    """

    def __init__(self, tokenizer: FullTokenizer, as_elsewhere: bool = False):
        self._tokenizer = tokenizer
        self._as_elsewhere = as_elsewhere
        self._splitting = tokenization.splitting_table(drop_accents=True)
        self._memo = Memo(self._encode)

    def encode_word(self, word: str) -> list[int]:
        """The ids of a word's pieces; none where cleaning leaves nothing."""
        return self._memo[word]

    def _encode(self, word: str) -> list[int]:
        if self._as_elsewhere:
            return self._tokenizer.encode(word)
        return self._tokenizer.convert_tokens_to_ids(self._split(word))

    def _split(self, word: str) -> list[str]:
        kept = [c for c in word if not tokenization.is_removed(c)]
        plain = [" " if tokenization.is_whitespace(c) else c for c in kept]
        word = unicodedata.normalize("NFD", "".join(plain).lower())
        pieces = []
        for token in word.translate(self._splitting).split():
            pieces += self._tokenizer.wordpiece_tokenizer.split_word(token)
        return pieces


def place_words(
    words: Sequence[Sequence[int]],
    cls_id: int,
    sep_id: int,
    max_length: int,
    count_words: bool = True,
) -> tuple[list[int], list[int]]:
    """Joins the pieces of a sentence's words, as far as they fit.

    Args:
      count_words: cut as the original does: where the number of *words* of
        the whole sentence does not fit behind the pieces so far. Long
        sentences lose far more than they must, and may be left with [SEP]
        alone, without even [CLS].

    Returns:
      Ids ending in [SEP], and the place of the first piece of each word that
      fits (the next piece's, for a word without any).

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      featurize.
    Differs: a word of more pieces than fit is cut; the original stops.
    """
    reserved = len(words) + 2 if count_words else 0
    ids: list[int] = []
    places: list[int] = []
    for i, pieces in enumerate([[cls_id], *words, [sep_id]]):
        is_word = 0 < i <= len(words)
        # One place is for the [SEP] at the end.
        overflows = is_word and len(ids) + len(pieces) > max_length - 1
        if overflows or reserved + len(ids) + 1 > max_length:
            ids.append(sep_id)
            break
        if is_word:
            places.append(len(ids))
        ids += pieces
    return ids, places


# Tags of words <-> labelled spans of words.

# Begin, inside, outside, end, single.
BIOES = "BIOES"
# Other schemes' letters for end and single (last, unit).
_SAME_AS = {"L": "E", "U": "S"}

Span = tuple[int, int, str]


@functools.lru_cache(maxsize=4096)
def split_tag(tag: str) -> tuple[str, str]:
    """Splits a tag into position and type."""
    letter, _, span_type = tag.partition("-")
    letter = _SAME_AS.get(letter, letter)
    if letter not in BIOES or len(letter) != 1 or (letter == "O" and span_type):
        raise ValueError(f"{tag!r} is no tag of a span")
    return letter, span_type


def read_spans(
    tags: Sequence[str], type_change_starts_span: bool = False
) -> list[Span]:
    """Finds the spans that tags mark.

    A span begins at B or S, or at any tag after O, and goes on until O or the
    next beginning; its type is that of its last tag.

    Source: google-research/electra, finetune/tagging/tagging_utils.py,
      get_span_labels.
    Differs: no tags, untyped tags and types with dashes are understood.
    """
    spans = []
    start, last_type = -1, None
    for i, tag in enumerate(tags):
        letter, span_type = split_tag(tag)
        changes = last_type not in (None, span_type)
        begins = letter in "BS" or (type_change_starts_span and changes)
        if last_type is not None and (letter == "O" or begins):
            spans.append((start, i - 1, last_type))
        if begins or last_type is None:
            start = i
        last_type = None if letter == "O" else span_type
    if last_type is not None:
        spans.append((start, len(tags) - 1, last_type))
    return spans


def write_tags(spans: Iterable[Span], length: int) -> list[str]:
    """Marks spans by tags of the BIOES scheme.

    Source: google-research/electra, finetune/tagging/tagging_utils.py,
      get_tags.
    """
    tags = ["O"] * length
    for first, last, span_type in spans:
        suffix = f"-{span_type}" if span_type else ""
        letters = "S" if first == last else f"B{'I' * (last - first - 1)}E"
        tags[first : last + 1] = [letter + suffix for letter in letters]
    return tags
