# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Questions from files or standard input, one at a time.

A file may be larger than memory: nothing but the question at hand is kept. A
line that cannot be read is handed on with what is wrong with it.
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
from electra_tf.data.columns import Options, column_indices
from electra_tf.files.lines import LineReader
from electra_tf.files.reading import STDIN, check_readable

FORMATS = ("text", "tsv", "csv", "jsonl", "conll")
_BY_EXTENSION = {
    **tables.BY_EXTENSION,
    **{".txt": "text", ".text": "text", ".json": "jsonl"},
}
# What cells of a header look like, and texts seldom: a name of a word or two.
_NAME = re.compile(r"((#\d )?[^\W\d][\w-]*([ .][\w-]+)?)?")
Columns = Mapping[str, Options]  # options by the name of the value


@dataclasses.dataclass(frozen=True)
class Read:
    """One question of a file, or what is wrong with a line."""

    path: str  # the file, "-" for standard input
    line: int  # its (first) line, from 1
    # By name of column; None where there is a problem.
    values: dict[str, Any] | None = None
    key: Any = None  # the value of the id column, where one is asked for
    found: str = ""  # with a problem, what stands there; else ""
    expected: str = ""  # with a problem, what should stand there; else ""


@dataclasses.dataclass
class Source:
    """A file to read ("-": standard input), and how far it has been read."""

    path: str
    # One of `FORMATS`; None: by the end of the name, text for standard input.
    format: str | None = None
    # Of each value of a question. The first that a header has is taken;
    # without a header, the first number.
    columns: Columns = dataclasses.field(
        default_factory=lambda: {"text": ("text", 0)}
    )
    # Those of them that a question need not have: taken where a header or a
    # key has one of their names, or where only a number is given.
    optional: frozenset[str] = frozenset()
    id_column: int | str | None = None  # to hand on; None for none
    # Whether the first row of TSV or CSV names columns; None: it does if it
    # holds a name of each column, and what looks like a header of other names
    # is refused.
    header: bool | None = None

    def __post_init__(self) -> None:
        self.lines = LineReader(self.path)
        self.blank = 0  # lines without anything
        # Lines of CoNLL that are no words (comments, ...), by kind.
        self.skipped: collections.Counter[str] = collections.Counter()

    def check(self) -> None:
        self.kind()
        check_readable(self.path)

    def __iter__(self) -> Iterator[Read]:
        kind = self.kind()
        if self.id_column is not None and kind in ("text", "conll"):
            raise UserError(
                f"{self.path}: --id_column={self.id_column}: {kind} has no"
                " columns of ids; use tsv, csv or jsonl"
            )
        if kind == "text":
            return self._read_text()
        if kind == "conll":
            return self._read_conll()
        if kind == "jsonl":
            return self._read_jsonl()
        return self._read_table(kind)

    def kind(self) -> str:
        if self.path == STDIN and self.format is None:
            return "text"
        return tables.file_format(
            self.path, self.format, _BY_EXTENSION, "--format"
        )

    def _required(self) -> list[str]:
        return [name for name in self.columns if name not in self.optional]

    def _bad(self, line: int, found: str, expected: str) -> Read:
        found = shorten(found)
        return Read(self.path, line, found=found, expected=expected)

    def _read_text(self) -> Iterator[Read]:
        name, *others = self._required()
        if others:
            raise UserError(
                f"{self.path}: this model asks for {' and '.join(self.columns)}"
                "; plain text has one of them: use tsv, csv or jsonl"
            )
        for number, text, found, expected in self.lines:
            if text is None:
                yield self._bad(number, found, expected)
            elif text.strip(" \t"):
                yield Read(self.path, number, {name: text})
            else:
                self.blank += 1

    def _read_conll(self) -> Iterator[Read]:
        """Sentences of one word a line, the words' column by its number."""
        (name, options), *_ = self.columns.items()
        column = next((o for o in options if isinstance(o, int)), 0)
        reader = conll.ConllReader(
            self.lines, {name: column}, documents_end_sentences=True
        )
        self.skipped = reader.skipped
        for item in reader:
            if isinstance(item, tables.Row):
                yield self._bad(item.line, item.found, item.expected)
            else:
                yield Read(self.path, item.lines[0], item.columns)

    def _read_jsonl(self) -> Iterator[Read]:
        for row in tables.read_rows(self.lines, "jsonl", any_json=True):
            if row.found:
                yield self._bad(row.line, row.found, row.expected)
            elif row.cells == {}:
                self.blank += 1
            elif isinstance(row.cells, dict):
                yield self._of_names(row.line, row.cells)
            elif self.id_column is not None:
                expected = f"an object with the key {self.id_column}"
                yield self._bad(row.line, str(row.cells), expected)
            elif _holds_objects(row.cells):
                expected = "a JSON object a line, not a list of them"
                yield self._bad(row.line, str(row.cells), expected)
            elif isinstance(row.cells, str | list):
                one = len(self.columns) == 1 or isinstance(row.cells, str)
                parts = [row.cells] if one else row.cells
                if len(parts) > len(self.columns):
                    expected = f"{' and '.join(self.columns)}, no more"
                    yield self._bad(row.line, f"{len(parts)} parts", expected)
                    continue
                values = dict(zip(self.columns, parts, strict=False))
                yield Read(self.path, row.line, values)
            else:
                expected = "a JSON object, text or list a line"
                yield self._bad(row.line, str(row.cells), expected)

    def _of_names(self, number: int, row: dict[str, Any]) -> Read:
        values, keys = {}, f"the keys {', '.join(row)}"
        for name, options in self.columns.items():
            key = next((o for o in options if o in row), None)
            if (value := row.get(key)) is None:
                if name in self.optional:
                    continue
                found = keys if key is None else f"{key}: null"
                expected = f"a value of the key {_names(options)}"
                return self._bad(number, found, expected)
            values[name] = value
        if self.id_column not in (None, *row):
            return self._bad(number, keys, f"the key {self.id_column}")
        return Read(self.path, number, values, row.get(self.id_column))

    def _read_table(self, kind: str) -> Iterator[Read]:
        indices: dict[str, int] = {}
        rows = tables.read_rows(self.lines, kind)
        first = [*itertools.islice(rows, 2)]
        if self.header is None and len(first) == 2:
            self._refuse_unknown_header(*first)
        width = sys.maxsize
        for row in itertools.chain(first, rows):
            number, cells, found, expected = tables.no_wider(row, width)
            if found:
                yield self._bad(number, found, expected)
                continue
            if not any(cell.strip(" \t") for cell in cells):
                self.blank += 1
                continue
            if not indices:
                header = cells if self._has_header(cells) else []
                indices = self._column_indices(cells, header)
                if header:
                    width = len(header)
                    continue
            least = max(i + 1 if i >= 0 else -i for i in indices.values())
            if len(cells) < least:
                found = f"{len(cells)} cells: {'|'.join(cells)}"
                yield self._bad(number, found, f"at least {least}")
                continue
            values = {name: cells[index] for name, index in indices.items()}
            yield Read(self.path, number, values, key=values.pop("", None))

    def _has_header(self, cells: Sequence[str]) -> bool:
        if self.header is not None:
            return self.header
        required = (self.columns[name] for name in self._required())
        return all({*cells} & {*options} for options in required)

    def _refuse_unknown_header(
        self, first: tables.Row, second: tables.Row
    ) -> None:
        """Raises where only the first row consists of names, all unknown."""
        cells = [cell.strip() for cell in first.cells]
        if (
            not any(cells)
            or not all(map(_NAME.fullmatch, cells))
            or all(map(_NAME.fullmatch, second.cells))
            or self._has_header(first.cells)
        ):
            return
        wanted = (" or ".join(map(str, o)) for o in self.columns.values())
        names = zip(self.columns, filter(None, cells), strict=False)
        columns = ",".join(f"{name}={cell}" for name, cell in names)
        raise UserError(
            f"{self.path}:{first.line}: found {' | '.join(cells)[:200]}, which"
            f" looks like a header; expected {' and '.join(wanted)}. If it is"
            f" one, name the columns, such as --columns={columns} (add --header"
            " where they are numbers); if it is data, add --header=false"
        )

    def _column_indices(
        self, first_row: Sequence[str], header: Sequence[str]
    ) -> dict[str, int]:
        """Return the column index of each value, and of the id under ""."""
        indices = column_indices(
            self.columns,
            header,
            self.path,
            lambda name: (
                f"Name a column, such as --columns={name}=0 for the first"
            ),
            self.optional,
        )
        if len({*indices.values()}) < len(indices):
            raise UserError(
                f"{self.path}: {' and '.join(self.columns)} have the same"
                f" column (found: {' | '.join(first_row)[:200]}); pass each"
                " column by --columns"
            )
        if self.id_column is not None:
            ids = column_indices(
                {"ids": [self.id_column]},
                header,
                self.path,
                lambda _: "Name a column, such as --id_column=0 for the first",
            )
            indices[""] = ids["ids"]
        return indices


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(v, dict) for v in value)


def _names(options: Sequence[int | str]) -> str:
    names = (option for option in options if isinstance(option, str))
    return " or ".join(names) or "of that number"
