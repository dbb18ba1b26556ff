# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reader of passages from files of plain text, JSON lines or SQuAD's format."""

import itertools
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from configure.errors import UserError
from configure.formatting import join_names, shorten
from electra_tf.data import tables, values
from electra_tf.files.lines import LineReader
from electra_tf.finetuning import questions
from electra_tf.text.measured_words import SPACELESS_LETTERS

PASSAGE_WORDS = 200  # maximum number of words in a passage of a text file
# In scripts without spaces each letter counts as a word of the passage,
# together with its combining marks and the punctuation after it.
_LETTER = rf"(?!\d)(?=[{SPACELESS_LETTERS}])[^\W_]"
_WORD = re.compile(rf"\S(?:(?!{_LETTER})\S)*\s*")
_WORDS_OF_A_PASSAGE = re.compile(rf"(?:{_WORD.pattern}){{1,{PASSAGE_WORDS}}}")
# The possible keys of the passage in a JSON line, the preferred key first.
_TEXT_KEYS = ("text", "context", "passage")


class SourcePassage(NamedTuple):
    """A passage that may contain an answer, and its source."""

    file: str  # the file's name within the folder
    line: int | None  # number of the first line, from 1; None in SQuAD's format
    id: str  # the passage's id in the file; in SQuAD's format, title/number
    passage: str


def read_passages(name: str, path: str) -> Iterator[SourcePassage]:
    """Yield the passages of a file.

    Args:
      name: the file's name within its folder. The ending determines the format;
        any ending but those of JSON means plain text.
      path: the path of the file.

    Raises:
      UserError: the file does not have the format of its ending.
    """
    kind = os.path.splitext(re.sub(r"\.(gz|xz)$", "", name))[1].lower()
    if kind == ".json":
        yield from _read_squad(name, path)
    elif kind in (".jsonl", ".ndjson"):
        yield from _read_json_lines(name, path)
    else:
        yield from _cut_text(name, path)


def _read_json_lines(name: str, path: str) -> Iterator[SourcePassage]:
    """Yield the passage in each line of a file of JSON lines."""
    for line, row in tables.read_objects(path):
        texts = [
            row[key] for key in _TEXT_KEYS if isinstance(row.get(key), str)
        ]
        if not texts:
            raise UserError(
                f"{path}:{line}: found {_describe_row(row)}; expected a text"
                f" under the key {' or '.join(_TEXT_KEYS)}. Correct the line."
            )
        row_id = "" if row.get("id") is None else row["id"]
        yield SourcePassage(
            name, line, values.as_id(row_id) or str(row_id), texts[0]
        )


def _describe_row(row: dict[str, Any]) -> str:
    """Describe a row by its value under a text key, or else by its keys."""
    for key in reversed(_TEXT_KEYS):
        if row.get(key) is not None:
            return f"{key} is {values.describe(row[key])}"
    return f"the keys {join_names(row)}"


def _read_squad(name: str, path: str) -> Iterator[SourcePassage]:
    """Yield the paragraphs of a file in SQuAD's format."""
    if not name.lower().endswith(".json"):
        raise UserError(
            f"{path}: the file is compressed; expected an uncompressed file in"
            " SQuAD's format. Unpack the file with gunzip or unxz."
        )
    for number, article in enumerate(questions.read_articles(path)[1]):
        try:
            title = article.get("title", number)
            # Adding "" raises a TypeError for a context that is not a text.
            contexts = [p["context"] + "" for p in article["paragraphs"]]
        except (AttributeError, KeyError, TypeError):
            raise UserError(
                f"{path}: data[{number}]: found {shorten(article)}; expected"
                " an article whose paragraphs have a text under context."
                " Correct the file."
            ) from None
        for index, context in enumerate(contexts):
            yield SourcePassage(name, None, f"{title}/{index}", context)


def _cut_text(name: str, path: str) -> Iterator[SourcePassage]:
    """Yield the passages of a text file.

    A passage ends at a blank line, or before the line with which it would have
    more than PASSAGE_WORDS words. A single line with more words is cut.
    """
    pieces: list[str] = []  # the lines of the passage that is being collected
    first_line = passage_words = 0
    lines = itertools.chain(LineReader(path).texts(), [""])
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise UserError(
                f"{path}:{number}: found a zero byte, as in binary files;"
                " expected text. Move the file out of the folder."
            )
        for piece in _WORDS_OF_A_PASSAGE.findall(line) or [""]:
            count = len(_WORD.findall(piece))
            is_full = passage_words + count > PASSAGE_WORDS
            if pieces and (not count or is_full):
                yield SourcePassage(name, first_line, "", "\n".join(pieces))
                pieces, passage_words = [], 0
            if count:
                if not pieces:
                    first_line = number
                pieces.append(piece)
                passage_words += count
