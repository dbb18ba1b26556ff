# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The reader of a model's inputs from files or standard input.

A file may be larger than memory, because only one input at a time is held. A
line that cannot be read is yielded with a description of the problem.
"""

import collections
import dataclasses
import itertools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from configure.errors import UserError
from configure.formatting import shorten
from electra_tf.data import conll, tables
from electra_tf.data.columns import Options, column_indices, count_from_start
from electra_tf.files.lines import LineReader
from electra_tf.files.reading import STDIN, check_readable

FORMATS = ("text", "tsv", "csv", "jsonl", "conll")
_BY_EXTENSION = {
    **tables.BY_EXTENSION,
    ".txt": "text",
    ".text": "text",
    ".json": "jsonl",
}
# Pattern of a name of one or two words, which most header cells but few texts
# match.
_NAME = re.compile(r"((#\d )?[^\W\d][\w-]*([ .][\w-]+)?)?")
Columns = Mapping[str, Options]  # column -> its possible names and indices
_ID = ""  # key for the index of the id column


@dataclasses.dataclass(frozen=True)
class InputRow:
    """One input of a file, or the description of a bad line."""

    path: str  # the file; "-" for standard input
    line: int  # number of the (first) line, from 1
    # values by column; None for a bad line
    values: dict[str, Any] | None = None
    key: Any = None  # the value of the id column; None without an id column
    content: str = ""  # the content of a bad line
    expected: str = ""  # the content that was expected in a bad line


@dataclasses.dataclass
class Source:
    """The inputs of a file or of standard input ("-").

    Attributes:
      format: one of `FORMATS`; None: by the file's extension, and text for
        standard input.
      columns: the options of each column. The first option that the header
        names is used; without a header, the first option that is a number.
      optional: the columns that may be missing. Such a column is used if a
        header or a key has one of its names, or if its only option is a number.
      id_column: the column whose values are returned as keys; None: none.
      header: whether the first row of TSV or CSV names columns; None: inferred
        from the row. The row is a header if it has a name of each column; a row
        that looks like a header with other names is an error.
      blank: the number of blank lines so far.
      skipped: the numbers of CoNLL lines without a word, by kind.
    """

    path: str
    format: str | None = None
    columns: Columns = dataclasses.field(
        default_factory=lambda: {"text": ("text", 0)}
    )
    optional: frozenset[str] = frozenset()
    id_column: int | str | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        self.lines = LineReader(self.path)
        self.blank = 0
        self.skipped: collections.Counter[str] = collections.Counter()

    def check(self) -> None:
        """Raise a UserError if the file cannot be read."""
        self.kind()
        check_readable(self.path)

    def __iter__(self) -> Iterator[InputRow]:
        kind = self.kind()
        if self.id_column is not None and kind in ("text", "conll"):
            raise UserError(
                f"{self.path}: --id_column={self.id_column}: files of format"
                f" {kind} have no id column. Use tsv, csv or jsonl."
            )
        if kind == "text":
            return self._read_text()
        if kind == "conll":
            return self._read_conll()
        if kind == "jsonl":
            return self._read_jsonl()
        return self._read_table(kind)

    def kind(self) -> str:
        """Return the format of the file."""
        if self.path == STDIN and self.format is None:
            return "text"
        return tables.resolve_format(
            self.path, self.format, _BY_EXTENSION, "--format"
        )

    def _required(self) -> list[str]:
        return [name for name in self.columns if name not in self.optional]

    def _bad(self, line: int, content: str, expected: str) -> InputRow:
        return InputRow(
            self.path, line, content=shorten(content), expected=expected
        )

    def _read_text(self) -> Iterator[InputRow]:
        name, *others = self._required()
        if others:
            raise UserError(
                f"{self.path}: the model needs {' and '.join(self.columns)},"
                " but plain text has one column. Use tsv, csv or jsonl."
            )
        for number, text, content, expected in self.lines:
            if text is None:
                yield self._bad(number, content, expected)
            elif text.strip(" \t"):
                yield InputRow(self.path, number, {name: text})
            else:
                self.blank += 1

    def _read_conll(self) -> Iterator[InputRow]:
        """Yield the sentences of a CoNLL file."""
        (name, options), *_ = self.columns.items()
        numbers = [option for option in options if isinstance(option, int)]
        reader = conll.ConllReader(
            self.lines,
            {name: numbers[0] if numbers else 0},
            documents_end_sentences=True,
        )
        self.skipped = reader.skipped
        for item in reader:
            if isinstance(item, tables.Row):
                yield self._bad(item.line, item.content, item.expected)
            else:
                yield InputRow(self.path, item.lines[0], item.columns)

    def _read_jsonl(self) -> Iterator[InputRow]:
        for row in tables.read_rows(self.lines, "jsonl", any_json=True):
            if row.content:
                yield self._bad(row.line, row.content, row.expected)
            elif row.cells == {}:
                self.blank += 1
            elif isinstance(row.cells, dict):
                yield self._from_object(row.line, row.cells)
            else:
                yield self._from_value(row.line, row.cells)

    def _from_object(self, number: int, row: dict[str, Any]) -> InputRow:
        """Return the input in a JSON object."""
        values, keys = {}, f"the keys {', '.join(row)}"
        for name, options in self.columns.items():
            key = next((option for option in options if option in row), None)
            value = row.get(key)
            if value is None:
                if name in self.optional:
                    continue
                content = keys if key is None else f"{key}: null"
                expected = _expected_key(options)
                return self._bad(number, content, expected)
            values[name] = value
        if self.id_column not in (None, *row):
            return self._bad(number, keys, f"the key {self.id_column}")
        return InputRow(self.path, number, values, row.get(self.id_column))

    def _from_value(self, number: int, value: Any) -> InputRow:
        """Return the input in a JSON text, or in a JSON list of columns."""
        if self.id_column is not None:
            expected = f"an object with the key {self.id_column}"
            return self._bad(number, str(value), expected)
        if isinstance(value, list) and any(isinstance(v, dict) for v in value):
            expected = "one JSON object per line instead of a list of objects"
            return self._bad(number, str(value), expected)
        if not isinstance(value, str | list):
            expected = "one JSON object, text or list per line"
            return self._bad(number, str(value), expected)
        is_one_column = len(self.columns) == 1 or isinstance(value, str)
        parts = [value] if is_one_column else value
        if len(parts) > len(self.columns):
            names = " and ".join(self.columns)
            expected = f"at most {len(self.columns)} parts ({names})"
            return self._bad(number, f"{len(parts)} parts", expected)
        values = dict(zip(self.columns, parts, strict=False))
        return InputRow(self.path, number, values)

    def _read_table(self, kind: str) -> Iterator[InputRow]:
        indices: dict[str, int] = {}
        rows = tables.read_rows(self.lines, kind)
        first_rows = [*itertools.islice(rows, 2)]
        if self.header is None and len(first_rows) == 2:
            self._refuse_unknown_header(*first_rows)
        width, reference = sys.maxsize, ""  # set by the first valid row
        for row in itertools.chain(first_rows, rows):
            row = tables.limit_cells(row, width, reference)
            if row.content:
                yield self._bad(row.line, row.content, row.expected)
                continue
            cells = row.cells
            if not any(cell.strip(" \t") for cell in cells):
                self.blank += 1
                continue
            if not indices:
                header = cells if self._has_header(cells) else []
                indices = self._column_indices(cells, header)
                width = len(cells)
                reference = "the header" if header else f"line {row.line}"
                if header:
                    continue
            fewest = max(indices.values()) + 1
            if len(cells) < fewest:
                content = f"{len(cells)} cells: {'|'.join(cells)}"
                yield self._bad(row.line, content, f"at least {fewest} cells")
                continue
            values = {name: cells[index] for name, index in indices.items()}
            key = values.pop(_ID, None)
            yield InputRow(self.path, row.line, values, key)

    def _has_header(self, cells: Sequence[str]) -> bool:
        if self.header is not None:
            return self.header
        required = (self.columns[name] for name in self._required())
        return all({*cells} & {*options} for options in required)

    def _refuse_unknown_header(
        self, first: tables.Row, second: tables.Row
    ) -> None:
        """Raise a UserError if the first row is a header of unknown names."""
        cells = [cell.strip() for cell in first.cells]
        if (
            not any(cells)
            or not all(map(_NAME.fullmatch, cells))
            or all(map(_NAME.fullmatch, second.cells))
            or self._has_header(first.cells)
        ):
            return
        expected = [
            " or ".join(map(str, options)) for options in self.columns.values()
        ]
        names = zip(self.columns, filter(None, cells), strict=False)
        columns = ",".join(f"{name}={cell}" for name, cell in names)
        raise UserError(
            f"{self.path}:{first.line}: found {' | '.join(cells)[:200]}, which"
            f" looks like a header; expected {' and '.join(expected)}. If the"
            " row is a header, pass names of columns, for example"
            f" --columns={columns}, or pass --header to select columns by"
            " number. If the row is data, pass --header=false"
        )

    def _column_indices(
        self, first_row: Sequence[str], header: Sequence[str]
    ) -> dict[str, int]:
        """Return the index of each column, and the index of ids under `_ID`."""
        indices = column_indices(
            self.columns,
            header,
            self.path,
            lambda name: (
                f"Pass, for example, --columns={name}=0 for the first column"
            ),
            self.optional,
        )
        indices = count_from_start(indices, len(first_row))
        if len({*indices.values()}) < len(indices):
            raise UserError(
                f"{self.path}: {' and '.join(self.columns)} are read from the"
                f" same column (first row: {' | '.join(first_row)[:200]});"
                " expected different columns. Pass different --columns."
            )
        if self.id_column is not None:
            ids = column_indices(
                {"ids": [self.id_column]},
                header,
                self.path,
                lambda _: (
                    "Pass, for example, --id_column=0 for the first column"
                ),
            )
            indices[_ID] = count_from_start(ids, len(first_row))["ids"]
        return indices


def _expected_key(options: Options) -> str:
    """Describe the key that a JSON object should have, for a message."""
    names = [option for option in options if isinstance(option, str)]
    if not names:
        return "the name of a key in --columns (JSON keys have no number)"
    return f"a value for the key {' or '.join(names)}"
