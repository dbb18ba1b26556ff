# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of users' files: TSV, CSV, JSON lines.

A row that cannot be read is handed on with what is wrong with it, so that the
caller can count it and go on. One row at a time is in memory.
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

    line: int  # number of its (first) line in the file, from 1
    # Texts by position, or values by name; empty where the line is blank or
    # there is a problem, unless the original uses such a row.
    cells: Any
    found: str = ""  # with a problem, what stands there; else ""
    expected: str = ""  # with a problem, what should stand there; else ""


def file_format(
    path: str,
    declared: str | None = None,
    by_extension: Mapping[str, str] = BY_EXTENSION,
    name: str = "format",
) -> str:
    """A file's format: as declared (by setting `name`), or by its ending."""
    formats = ", ".join(dict.fromkeys(by_extension.values()))
    if declared is not None:
        if declared not in by_extension.values():
            raise UserError(f"{name} {declared!r}: expected one of {formats}")
        return declared
    found = by_extension.get(os.path.splitext(path)[1].lower())
    if found is None:
        raise UserError(
            f"{path}: its format cannot be told from its name; give {name},"
            f" one of {formats}"
        )
    return found


def no_wider(row: Row, most: int) -> Row:
    """The row; where it has more cells than the header, which is which?"""
    if not any(row.cells[most:]):
        return row
    found = f"{len(row.cells)} cells: {'|'.join(row.cells)}"
    return Row(row.line, [], shorten(found), f"{most}, as the header has")


def read_rows(
    source: str | LineReader,
    format_name: str,
    max_rows: int | None = None,
    any_json: bool = False,
) -> Iterator[Row]:
    """Reads a table row by row, blank and broken lines included.

    TSV is split at tabs and nothing else: quotation marks are text, as in
    the original; the lines of a quoted cell with line feeds in it, which
    other programs write, have cells and a problem. CSV has quoted cells, which
    may span lines. Where `any_json`, a line of JSON may hold anything, else an
    object. `source` is a path, or the lines; reading stops after `max_rows`
    rows, None reads all.

    Source: google-research/electra, finetune/classification/
      classification_tasks.py, read_tsv.
    Differs: a line that is not UTF-8 is one bad row, not the end; halves of
      a quoted cell are named.
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
    """The objects of a file of JSON lines by their lines; a bad one ends it."""
    for row in read_rows(path, "jsonl"):
        if row.expected:
            raise UserError(
                f"{path}:{row.line}: found {shorten(row.found)}; expected"
                f" {row.expected}"
            )
        if row.cells:
            yield row.line, row.cells


def _tsv_row(line: Line) -> Row:
    if line.text is None:
        return Row(line.number, [], line.found, line.expected)
    return Row(line.number, line.text.split("\t") if line.text else [])


def _opens_cell(cell: str) -> bool:
    """Whether a cell's quotation mark is not closed in it."""
    return cell.startswith('"') and cell.count('"') % 2 == 1


def _tsv_rows(lines: Iterable[Line]) -> Iterator[Row]:
    """Yield rows; those that are parts of one quoted row have a problem.

    Quotation marks alone prove nothing: texts have odd numbers of them, too.
    Lines are parts of a row if the first one's last cell opens, a later one's
    first cell closes, and together they have the first row's cells.
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
                f"{width} cells; lines {first.line} to {last} look like one row"
                " with a quoted cell, but in TSV quotation marks are text:"
                " remove its line feeds, or write CSV"
            )
            yield Row(row.line, row.cells, "\t".join(row.cells), expected)


_MOST_PARTS = 1000  # lines of a quoted cell that are recognized as such


def _count_parts(width: int, peek: Callable[[int], Row | None]) -> int:
    """Return the number of lines that are parts of the next row, or 1."""
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


_OBJECT = "one JSON object a line"
JSON_LINES = f"{_OBJECT} (jq -c '.[]' FILE converts an array)"


def _json_rows(lines: Iterable[Line], any_json: bool) -> Iterator[Row]:
    """Yield rows; the lines of one JSON array over several are bad."""
    array_start = 0  # its line; 0: the file is no array
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
            found = f"part of the JSON array of line {array_start}: {line.text}"
            row = Row(line.number, {}, found, _OBJECT)
        yield row


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _json_row(line: Line, any_json: bool) -> Row:
    if line.text is None:
        return Row(line.number, {}, line.found, line.expected)
    if not line.text.strip(" \t"):
        return Row(line.number, {})
    try:
        value = json.loads(line.text)
    except (ValueError, RecursionError) as error:
        return Row(line.number, {}, f"{error}: {line.text}", _OBJECT)
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

    csv.field_size_limit(MAX_LINE_BYTES)  # Else long cells are cut to rows.
    reader = csv.reader(texts(), strict=True)  # No lost end of a cell.
    while True:
        start = number + 1
        try:
            row = Row(start, next(reader))
        except StopIteration:
            return
        except csv.Error as error:
            found = f"{error} (lines {start} to {number})"
            row = Row(start, [], found, "a row of CSV")
        yield from [*map(_tsv_row, broken)] or [row]
        broken.clear()


# Data sets of TensorFlow Datasets, read by name; imported only when asked for.


def tfds_builder(name: str, data_dir: str | None) -> Any:
    """Returns a data set's builder, downloaded and prepared."""
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise UserError(
            "data from tfds needs TensorFlow Datasets: pip install"
            " tensorflow-datasets"
        ) from error
    try:
        builder = tfds.builder(name, data_dir=data_dir or None)
    except (tfds.core.DatasetNotFoundError, ValueError) as error:
        raise UserError(f"TFDS data set {name!r}: {error}") from error
    try:
        builder.download_and_prepare()
    except Exception as error:  # what a download raises depends on its site
        raise UserError(
            f"TFDS data set {name!r} cannot be downloaded and prepared:"
            f" {error}. Put a prepared one into tfds_data_dir, or read files"
        ) from error
    return builder


def tfds_identity(name: str, data_dir: str | None) -> str:
    """Name, configuration and version of a data set, which is prepared."""
    builder = tfds_builder(name, data_dir)
    return f"{builder.info.full_name} ({builder.info.dataset_size} bytes)"


def tfds_label_names(
    name: str, feature: str, data_dir: str | None
) -> list[str] | None:
    """Names of a class label in order, or None for other features."""
    features = tfds_builder(name, data_dir).info.features
    if feature not in features:
        raise UserError(
            f"TFDS data set {name} has no feature {feature!r} (it has:"
            f" {', '.join(features)})"
        )
    return getattr(features[feature], "names", None)


def tfds_examples(
    builder: Any, split: str, start: int = 0, stop: int | None = None
) -> Iterator[dict[str, Any]]:
    """Reads a range of a split in its stored order."""
    import tensorflow_datasets as tfds

    # One file after the other: the position of an example is its identity.
    read_config = tfds.ReadConfig(
        interleave_cycle_length=1, try_autocache=False
    )
    dataset = builder.as_dataset(
        split=split, shuffle_files=False, read_config=read_config
    )
    if start:
        dataset = dataset.skip(start)
    if stop is not None:
        dataset = dataset.take(stop - start)
    yield from tfds.as_numpy(dataset)


def read_tfds_rows(
    name: str, split: str, data_dir: str | None, max_rows: int | None = None
) -> Iterator[Row]:
    """Reads a split as rows."""
    builder = tfds_builder(name, data_dir)
    if split not in builder.info.splits:
        raise UserError(
            f"TFDS data set {name} has no split {split!r} (it has:"
            f" {', '.join(builder.info.splits)})"
        )
    examples = tfds_examples(builder, split, stop=max_rows)
    for number, example in enumerate(examples, 1):
        yield Row(number, _plain(example))


def _plain(value: Any) -> Any:
    """Turns NumPy and bytes into plain Python values, nested ones too."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value
