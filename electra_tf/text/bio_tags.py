# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tags of words (BIO, BIOES, IOB1), and the spans that the tags mark."""

import functools
from collections.abc import Iterable, Sequence

BIOES = "BIOES"  # begin, inside, outside, end, single
# BIOES letters for the letters L (last) and U (unit) of the BILOU scheme.
_BILOU_LETTERS = {"L": "E", "U": "S"}

Span = tuple[int, int, str]  # first word, last word, type


@functools.lru_cache(maxsize=4096)
def split_tag(tag: str) -> tuple[str, str]:
    """Split a tag such as B-LOC into the BIOES letter and the type.

    Raises:
      ValueError: the text is not the tag of a span.
    """
    letter, _, span_type = tag.partition("-")
    letter = _BILOU_LETTERS.get(letter, letter)
    if letter not in BIOES or len(letter) != 1 or (letter == "O" and span_type):
        raise ValueError(
            f"{tag!r} is not the tag of a span; expected O, or one of B, I, E,"
            " S, L, U with a type, such as B-LOC"
        )
    return letter, span_type


def read_spans(
    tags: Sequence[str], type_change_starts_span: bool = False
) -> list[Span]:
    """Return the spans that a sequence of tags marks.

    A span begins at B or S, or at any tag after O, and continues until O or the
    next beginning. The type of a span is that of its last tag.

    Args:
      tags: the tag of each word.
      type_change_starts_span: whether a span also begins at a tag of a
        different type.

    Source: google-research/electra, finetune/tagging/tagging_utils.py,
      get_span_labels.
    Differs: accepts an empty sequence, tags without a type, and types with
      dashes.
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
    """Return the BIOES tags that mark spans in a sentence of `length` words.

    Source: google-research/electra, finetune/tagging/tagging_utils.py,
      get_tags.
    """
    tags = ["O"] * length
    for first, last, span_type in spans:
        suffix = f"-{span_type}" if span_type else ""
        letters = "S" if first == last else f"B{'I' * (last - first - 1)}E"
        tags[first : last + 1] = [letter + suffix for letter in letters]
    return tags
