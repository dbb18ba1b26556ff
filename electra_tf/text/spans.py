# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tags of words <-> labelled spans of words."""

import functools
from collections.abc import Iterable, Sequence

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
        begins = letter in "BS" or (
            type_change_starts_span
            and last_type is not None
            and span_type != last_type
        )
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
        for i in range(first, last + 1):
            tags[i] = f"I{suffix}"
        tags[last] = f"E{suffix}"
        tags[first] = f"B{suffix}"
        if first == last:
            tags[first] = f"S{suffix}"
    return tags
