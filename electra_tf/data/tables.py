# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reader of tables in users' files: TSV, CSV, JSON lines.

An unreadable row is returned with its problem, so that the caller can count the
row and continue. The reader holds one row at a time in memory.
"""

import collections
import csv
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from configure.errors import UserError
from configure.formatting import shorten
from configure.json_text import DuplicateKeyError, object_of_pairs
from electra_tf.files.lines import MAX_LINE_BYTES, Line, LineReader

BY_EXTENSION = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "conll",
    ".conll": "conll",
    ".conllu": "conll",
    ".bio": "conll",
    ".iob": "conll",
}


class Row(NamedTuple):
    """One row of a table."""

    line: int  # 1-based number of the row's first line in the file
    # Texts by position, or values by name. Blank and invalid lines have no
    # cells, except the lines of a quoted TSV cell, which the original uses.
    cells: Any
    content: str = ""  # text of an invalid row, otherwise ""
    expected: str = ""  # requirement that an invalid row violates, otherwise ""


def resolve_format(
    path: str,
    declared: str | None = None,
    by_extension: Mapping[str, str] = BY_EXTENSION,
    setting: str = "format",
) -> str:
    """Return a file's declared format, or the format of its extension.

    Args:
      path: path of the file.
      declared: format that the user set; None: infer the format from the
        extension.
      by_extension: formats by extensions such as ".tsv".
      setting: name of the setting that declares the format, for messages.

    Raises:
      UserError: the format or the extension is unknown.
    """
    formats = ", ".join(dict.fromkeys(by_extension.values()))
    if declared is not None:
        if declared not in by_extension.values():
            raise UserError(
                f"{setting} is {declared!r}; expected one of {formats}. Correct"
                f" {setting}."
            )
        return declared
    extension = os.path.splitext(path)[1].lower()
    if extension not in by_extension:
        raise UserError(
            f"{path}: the format cannot be inferred from the file name. Set"
            f" {setting} to one of {formats}."
        )
    return by_extension[extension]


def is_blank(row: Row) -> bool:
    """Return whether a row of TSV or CSV has no text and no problem."""
    return not row.expected and not any(cell.strip() for cell in row.cells)


def limit_cells(row: Row, most: int, reference: str = "the header") -> Row:
    """Return the row without empty surplus cells, or a problem.

    Args:
      row: a row of TSV or CSV.
      most: the number of cells in the reference.
      reference: the row that defines the number of cells, for messages.

    Returns:
      the row; if a surplus cell has text, a row with a problem.
    """
    surplus = row.cells[most:]
    if any(surplus):
        content = f"{len(row.cells)} cells: {'|'.join(row.cells)}"
        expected = f"{most} cells, as in {reference}"
        return Row(row.line, [], shorten(content), expected)
    return row._replace(cells=row.cells[:most]) if surplus else row


def limit_rows(
    rows: Iterator[Row], header: Row | None
) -> tuple[int, Iterator[Row]]:
    """Return the width of a table, and its rows limited to this width.

    Args:
      rows: the rows of TSV or CSV below the header.
      header: the row with the names of the columns. If it is None or has no
        cells, the first valid row defines the width.
    """
    peeked: list[Row] = []
    first, name = header, "the header"
    if header is None or not header.cells:
        for row in rows:
            peeked.append(row)
            if row.cells and not row.expected:
                first, name = row, f"line {row.line}"
                break
    width = len(first.cells) if first is not None else 0
    rest = itertools.chain(peeked, rows)
    return width, (limit_cells(row, width, name) for row in rest)


def read_rows(
    source: str | LineReader,
    format_name: str,
    max_rows: int | None = None,
    any_json: bool = False,
) -> Iterator[Row]:
    """Yield the rows of a table, including blank and invalid lines.

    TSV is split only at tabs, and quotation marks are text, as in the original.
    Other programs write quoted cells that contain line feeds; each line of such
    a cell is yielded with a problem. In CSV, quoted cells may span lines.

    Args:
      source: path of the file, or reader of its lines.
      format_name: "tsv", "csv" or "jsonl".
      max_rows: maximum number of rows; None: all rows.
      any_json: whether a line of JSON may contain any value; False: only an
        object.

    Source: google-research/electra, finetune/classification/
      classification_tasks.py, read_tsv.
    Differs: a line that is not UTF-8 is an invalid row instead of an exception;
      the lines of a quoted cell have problems.
    """
    lines = LineReader(source) if isinstance(source, str) else source
    if format_name == "csv":
        rows = _csv_rows(lines)
    elif format_name == "tsv":
        rows = _tsv_rows(lines)
    else:
        rows = _json_rows(lines, any_json)
    return itertools.islice(rows, max_rows)


def read_objects(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line numbers and objects of a JSON lines file.

    Raises:
      UserError: a line is not an object.
    """
    for row in read_rows(path, "jsonl"):
        if row.expected:
            raise UserError(
                f"{path}:{row.line}: found {shorten(row.content)}; expected"
                f" {row.expected}. Correct the line."
            )
        if row.cells:
            yield row.line, row.cells


def _tsv_row(line: Line) -> Row:
    if line.text is None:
        return Row(line.number, [], line.content, line.expected)
    return Row(line.number, line.text.split("\t") if line.text else [])


def _opens_cell(cell: str) -> bool:
    """Return whether the cell opens a quotation without closing it."""
    return cell.startswith('"') and cell.count('"') % 2 == 1


def _tsv_rows(lines: Iterable[Line]) -> Iterator[Row]:
    """Yield rows, with a problem for each line of a cell that spans lines.

    An unpaired quotation mark is not sufficient, because texts contain such
    marks. Lines are parts of a row if the last cell of the first line opens a
    quotation, the first cell of a later line closes the quotation, and the
    lines together have as many cells as the first row of the file.
    """
    width = 0
    waiting: collections.deque[Row] = collections.deque()
    rows = map(_tsv_row, lines)

    def peek(number: int) -> Row | None:
        while len(waiting) <= number and (row := next(rows, None)):
            waiting.append(row)
        return waiting[number] if number < len(waiting) else None

    while (first := peek(0)) is not None:
        width = width or len(first.cells)
        count = 1
        if width > 1 and first.cells and _opens_cell(first.cells[-1]):
            count = _count_parts(width, peek)
        for row in [waiting.popleft() for _ in range(count)]:
            if count == 1:
                yield row
                continue
            last = first.line + count - 1
            expected = (
                f"{width} cells; lines {first.line} to {last} look like a"
                " single row with a quoted cell, but in TSV quotation marks are"
                " text. Remove the line feeds from the cell, or convert the"
                " file to CSV"
            )
            yield Row(row.line, row.cells, "\t".join(row.cells), expected)


_MOST_PARTS = 1000  # maximum number of lines of a quoted cell


def _count_parts(width: int, peek: Callable[[int], Row | None]) -> int:
    """Return the number of lines that the next row spans."""
    n_cells = len(peek(0).cells)
    for number in range(1, _MOST_PARTS):
        row = peek(number)
        if row is None or row.expected:
            return 1
        cells = row.cells or [""]
        n_cells += len(cells) - 1
        if cells[0].count('"') % 2 == 0:
            if len(cells) > 1:
                return 1
        elif len(cells) == 1 or not _opens_cell(cells[-1]):
            return number + 1 if n_cells == width else 1
    return 1


_OBJECT = "one JSON object per line"
JSON_LINES = f"{_OBJECT} (jq -c '.[]' FILE converts an array)"


def _json_rows(lines: Iterable[Line], any_json: bool) -> Iterator[Row]:
    """Yield rows; all lines of a JSON array that spans lines are invalid."""
    array_start = 0  # first line of the array; 0: the file is not an array
    is_first = True
    for line in lines:
        row = _json_row(line, any_json)
        is_blank = not (row.cells or row.expected)
        if is_first and not is_blank:
            is_first = False
            text = (line.text or "").lstrip(" \t")
            if row.expected and text.startswith("["):
                is_whole = isinstance(_parsed(text), list)
                array_start = 0 if is_whole else line.number
                row = Row(line.number, {}, f"a JSON array: {text}", JSON_LINES)
        elif array_start and not is_blank:
            content = (
                f"part of the JSON array that begins in line {array_start}:"
                f" {line.text}"
            )
            row = Row(line.number, {}, content, _OBJECT)
        yield row


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _json_row(line: Line, any_json: bool) -> Row:
    if line.text is None:
        return Row(line.number, {}, line.content, line.expected)
    if not line.text.strip(" \t"):
        return Row(line.number, {})
    try:
        value = json.loads(line.text, object_pairs_hook=object_of_pairs)
    except DuplicateKeyError as error:
        content = f"{error}: {line.text}"
        return Row(line.number, {}, content, "one value of each key")
    except (ValueError, RecursionError) as error:
        return Row(line.number, {}, f"{error}: {line.text}", _OBJECT)
    # Callers take a row without cells for a blank line.
    if value == {}:
        return Row(line.number, {}, "{}", "an object with keys")
    if any_json or isinstance(value, dict):
        return Row(line.number, value)
    return Row(line.number, {}, line.text, _OBJECT)


def _csv_rows(lines: LineReader) -> Iterator[Row]:
    broken: list[Line] = []
    number = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for line in lines:
            number = line.number
            if line.text is None:
                broken.append(line)
            yield f"{line.text or ''}\n"

    # With the default limit, the rest of a long cell would become a row.
    csv.field_size_limit(MAX_LINE_BYTES)
    # In strict mode, a quotation that is open at the end of the file is an
    # error.
    reader = csv.reader(texts(), strict=True)
    while True:
        start = number + 1
        try:
            row = Row(start, next(reader))
        except StopIteration:
            return
        except csv.Error as error:
            content = f"{error} (lines {start} to {number})"
            row = Row(start, [], content, "a row of CSV")
        if broken:
            yield from map(_tsv_row, broken)
            broken.clear()
        else:
            yield row
