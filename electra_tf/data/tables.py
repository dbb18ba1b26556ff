# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of task files: TSV, CSV, JSON lines, CoNLL columns.

A row that cannot be read is handed on with what is wrong with it, so that the
caller can count it and go on.
"""

import csv
import io
import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from configure.errors import UserError
from electra_tf.data import storage

FORMATS = ("tsv", "csv", "jsonl", "conll")
_BY_EXTENSION = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "conll",
    ".conll": "conll",
    ".bio": "conll",
    ".iob": "conll",
}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Row(NamedTuple):
    """One row of a table.

    Attributes:
      line: number of its (first) line in the file, from 1.
      cells: texts by position, or values by name; empty where there is a
        problem or the line is blank.
      found: with a problem, what stands there; else "".
      expected: with a problem, what should stand there; else "".
    """

    line: int
    cells: list[str] | dict[str, Any]
    found: str = ""
    expected: str = ""


def file_format(path: str, declared: str | None = None) -> str:
    """Returns a file's format: as declared, or by the end of its name.

    Args:
      declared: one of `FORMATS`, or None.
    """
    if declared is not None:
        if declared not in FORMATS:
            raise UserError(
                f"format {declared!r}: expected one of {', '.join(FORMATS)}"
            )
        return declared
    found = _BY_EXTENSION.get(os.path.splitext(path)[1].lower())
    if found is None:
        raise UserError(
            f"{path}: its format cannot be told from its name; give format,"
            f" one of {', '.join(FORMATS)}"
        )
    return found


def read_rows(
    path: str, format_name: str, max_rows: int | None = None
) -> Iterator[Row]:
    """Reads a table row by row, blank and broken lines included.

    TSV is split at tabs and nothing else: quotation marks are text, as in
    the original. CSV has quoted cells, which may span lines.

    Args:
      max_rows: stop after so many rows; None reads all.

    Source: google-research/electra, finetune/classification/
      classification_tasks.py, read_tsv.
    Differs: a line that is not UTF-8 is one bad row, not the end.
    """
    read = {"tsv": _read_tsv, "csv": _read_csv, "jsonl": _read_jsonl}
    for number, row in enumerate(read[format_name](path)):
        if max_rows is not None and number >= max_rows:
            return
        yield row


def read_lines(path: str) -> Iterator[tuple[int, str | None, bytes]]:
    r"""Reads the lines of a text file.

    Yields:
      Line number from 1, the line without its end (None if it is not UTF-8),
      and its raw bytes. Only "\n" separates lines.
    """
    if not storage.exists(path):
        raise UserError(f"{path}: no such file")
    if storage.is_directory(path):
        raise UserError(f"{path}: is a directory, expected a file")
    with storage.open_file(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            if number == 1:
                raw = raw.removeprefix(_BYTE_ORDER_MARK)
            raw = raw.rstrip(b"\r\n")
            try:
                yield number, raw.decode(), raw
            except UnicodeDecodeError:
                yield number, None, raw


def _not_utf8(line: int, raw: bytes) -> Row:
    return Row(line, [], repr(raw), "text in UTF-8")


def _read_tsv(path: str) -> Iterator[Row]:
    for number, text, raw in read_lines(path):
        if text is None:
            yield _not_utf8(number, raw)
        else:
            yield Row(number, text.split("\t") if text else [])


def _read_csv(path: str) -> Iterator[Row]:
    lines = list(read_lines(path))
    broken = {number: raw for number, text, raw in lines if text is None}
    text = "".join(f"{text or ''}\n" for _, text, _ in lines)
    reader = csv.reader(io.StringIO(text, newline=""))
    start = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Row(start, [], str(error), "a row of CSV")
        else:
            raw = broken.get(start)
            yield Row(start, cells) if raw is None else _not_utf8(start, raw)
        start = reader.line_num + 1


def _read_jsonl(path: str) -> Iterator[Row]:
    expected = "one JSON object a line"
    for number, text, raw in read_lines(path):
        if text is None:
            yield _not_utf8(number, raw)
        elif not text.strip():
            yield Row(number, {})
        else:
            try:
                value = json.loads(text)
            except json.JSONDecodeError as error:
                yield Row(number, {}, f"{error}: {text}", expected)
                continue
            if isinstance(value, dict):
                yield Row(number, value)
            else:
                yield Row(number, {}, text, expected)
