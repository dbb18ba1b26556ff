# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sentences with a tag per word, from CoNLL columns or JSON lines."""

import dataclasses
from collections.abc import Callable, Iterator

from configure.errors import UserError
from electra_tf import files
from electra_tf.data import tables
from electra_tf.files import LineReader
from electra_tf.finetuning.rows import RowReport
from electra_tf.finetuning.schema import SplitSpec, TaskSpec

# Sentences read in debug mode.
DEBUG_SENTENCES = 101
_DOCUMENT_START = "-DOCSTART-"


@dataclasses.dataclass
class Sentence:
    """One sentence as read.

    Attributes:
      path: its file.
      number: its number in the file, from 0, unusable ones counted.
      words: its words.
      tags: their tags; empty in a split without labels.
      lines: the line each word stands on.
    """

    path: str
    number: int
    words: list[str] = dataclasses.field(default_factory=list)
    tags: list[str] = dataclasses.field(default_factory=list)
    lines: list[int] = dataclasses.field(default_factory=list)


# Puts a tag into shape, or raises ValueError saying what was expected.
CheckTag = Callable[[str], str]


def read_sentences(
    spec: TaskSpec,
    split: str,
    directory: str,
    report: RowReport,
    check_tag: CheckTag,
    keep_last: bool = False,
    debug: bool = False,
) -> list[Sentence]:
    """Reads a split.

    Source: google-research/electra, finetune/tagging/tagging_tasks.py,
      _get_labeled_sentences.
    """
    place = spec.split(split, directory)
    if not files.exists(place.path):
        raise UserError(
            f"{place.path}: no such file; the {split} split of task"
            f" {spec.name} is read from there"
        )
    kind = tables.file_format(place.path, spec.format)
    if kind == "jsonl":
        found = _read_jsonl(place, report)
    elif kind == "conll":
        found = _read_conll(place, report, keep_last)
    else:
        raise UserError(
            f"{place.path}: a tagging task is read from conll columns or"
            " jsonl; give its format"
        )
    sentences = []
    for sentence in found:
        if _check_tags(sentence, check_tag, report):
            sentences.append(sentence)
        if debug and len(sentences) >= DEBUG_SENTENCES:
            break
    return sentences


def _check_tags(
    sentence: Sentence, check_tag: CheckTag, report: RowReport
) -> bool:
    """Puts a sentence's tags into shape; False if one is bad."""
    good = True
    for i, tag in enumerate(sentence.tags):
        try:
            sentence.tags[i] = check_tag(tag)
        except ValueError as problem:
            found = f"tag {tag!r} of {sentence.words[i]!r}"
            expected = f"{problem} (the sentence is left out)"
            report.add(sentence.path, sentence.lines[i], found, expected)
            good = False
    return good and bool(sentence.words)


def _read_conll(
    place: SplitSpec, report: RowReport, keep_last: bool
) -> Iterator[Sentence]:
    columns = _column_numbers(place)
    wanted = ["word"] + ["tag"] * place.labelled
    least = max(
        c + 1 if c >= 0 else max(-c, 2) for c in (columns[w] for w in wanted)
    )
    number, good = 0, True
    sentence = Sentence(place.path, number)
    for line, text, found, expected in LineReader(place.path):
        if text is None:
            report.add(place.path, line, found, expected)
            good = False
            continue
        cells = text.split()
        if not cells:
            if sentence.words or not good:
                if good:
                    yield sentence
                number += 1
                sentence, good = Sentence(place.path, number), True
            continue
        if cells[0] == _DOCUMENT_START:
            continue
        if len(cells) < least:
            expected = f"at least {least} columns (the sentence is left out)"
            report.add(place.path, line, text, expected)
            good = False
            continue
        sentence.words.append(cells[columns["word"]])
        sentence.lines.append(line)
        if place.labelled:
            sentence.tags.append(cells[columns["tag"]])
    if sentence.words and good:
        if keep_last:
            yield sentence
        else:
            report.add(
                place.path,
                sentence.lines[-1],
                "the end of the file within a sentence of"
                f" {len(sentence.words)} words",
                "a blank line after the last sentence, or fix_last_sentence",
            )


def _column_numbers(place: SplitSpec) -> dict[str, int]:
    columns = {"word": 0, "tag": -1, **place.columns}
    for name, column in columns.items():
        if not isinstance(column, int):
            raise UserError(
                f"{place.path}: columns of a conll file have numbers, not"
                f" names; {name} is {column!r}"
            )
    return columns


def _read_jsonl(place: SplitSpec, report: RowReport) -> Iterator[Sentence]:
    columns = {"word": "words", "tag": "tags", **place.columns}
    for number, row in enumerate(tables.read_rows(place.path, "jsonl")):
        expected = row.expected or f"a list of texts under {columns['word']}"
        words = row.cells.get(columns["word"]) if row.cells else None
        tags: object = []
        if place.labelled and not row.expected:
            expected += f" and one of the same length under {columns['tag']}"
            tags = row.cells.get(columns["tag"]) if row.cells else None
        right = _are_words(words) and (
            not place.labelled or (_are_words(tags) and len(tags) == len(words))
        )
        if not right:
            found = row.found or f"{row.cells or 'an empty line'}"
            report.add(place.path, row.line, found, expected)
            continue
        lines = [row.line] * len(words)
        yield Sentence(place.path, number, words, list(tags), lines)


def _are_words(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(word, str) for word in value
    )
