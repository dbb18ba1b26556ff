# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Questions from files or standard input, one at a time.

A file may be larger than memory: nothing but the question at hand is kept. A
line that cannot be read is handed on with what is wrong with it.
"""

import csv
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from configure.errors import UserError
from electra_tf import files

FORMATS = ("text", "tsv", "csv", "jsonl", "conll")
STDIN = "-"
_BY_EXTENSION = {
    ".txt": "text",
    ".text": "text",
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".conll": "conll",
    ".bio": "conll",
    ".iob": "conll",
}
# A line beyond it is not read whole: it would be no line of text.
MAX_LINE_BYTES = 2**25
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclasses.dataclass(frozen=True)
class Read:
    """One question of a file, or what is wrong with a line.

    Attributes:
      path: the file, "-" for standard input.
      line: its (first) line, from 1.
      values: by name of column; None where there is a problem.
      key: the value of the id column, where one is asked for.
      found: with a problem, what stands there; else "".
      expected: with a problem, what should stand there; else "".
    """

    path: str
    line: int
    values: dict[str, Any] | None = None
    key: Any = None
    found: str = ""
    expected: str = ""


@dataclasses.dataclass
class Source:
    """A file to read, and how far it has been read.

    Attributes:
      path: the file, "-" for standard input.
      format: one of `FORMATS`; None: by the end of its name, text for
        standard input.
      columns: for each value of a question, the names or numbers (from 0) its
        column may have, the likeliest first. The first that a header has is
        taken; without a header, the first number.
      id_column: name or number of a column to hand on; None for none.
      header: whether the first row of TSV or CSV names columns; None: it does
        if it holds a name of each required column.
      optional: names of values that may be absent.
      blank: counts lines without anything.
      done: bytes read.
    """

    path: str
    format: str | None = None
    columns: Mapping[str, Sequence[int | str]] = dataclasses.field(
        default_factory=lambda: {"text": ("text", 0)}
    )
    id_column: int | str | None = None
    header: bool | None = None
    optional: frozenset[str] = frozenset()
    blank: int = 0
    done: int = 0

    def size(self) -> int | None:
        """Bytes in all; None where that is not known."""
        if self.path == STDIN:
            return None
        return files.file_size(self.path) or None

    def check(self) -> None:
        """Raises where it cannot be read, before anything is loaded."""
        self._format()
        if self.path == STDIN:
            return
        if not files.exists(self.path):
            raise UserError(f"{self.path}: no such file")
        if files.is_directory(self.path):
            raise UserError(f"{self.path}: is a directory, expected a file")

    def __iter__(self) -> Iterator[Read]:
        """Yields the questions and the problems, in order."""
        kind = self._format()
        if self.path == STDIN:
            yield from self._read(kind, sys.stdin.buffer)
            return
        self.check()
        with files.open_file(self.path, "rb") as file:
            yield from self._read(kind, file)

    def _format(self) -> str:
        if self.format is not None:
            return self.format
        if self.path == STDIN:
            return "text"
        end = os.path.splitext(self.path)[1].lower()
        if end not in _BY_EXTENSION:
            raise UserError(
                f"{self.path}: its format cannot be told from its name; give"
                f" --format, one of {', '.join(FORMATS)}"
            )
        return _BY_EXTENSION[end]

    def _read(self, kind: str, file: IO[bytes]) -> Iterator[Read]:
        readers: dict[str, Callable[[IO[bytes]], Iterator[Read]]] = {
            "text": self._read_text,
            "tsv": self._read_table,
            "csv": self._read_table,
            "jsonl": self._read_jsonl,
            "conll": self._read_conll,
        }
        self._is_csv = kind == "csv"
        yield from readers[kind](file)

    def _lines(self, file: IO[bytes]) -> Iterator[tuple[int, str | Read]]:
        """Numbers and texts of lines, or what is wrong with one."""
        number = 0
        while raw := file.readline(MAX_LINE_BYTES):
            number += 1
            self.done += len(raw)
            if len(raw) == MAX_LINE_BYTES and not raw.endswith(b"\n"):
                self._skip_line(file)
                yield (
                    number,
                    self._bad(
                        number, f"more than {MAX_LINE_BYTES:,} bytes", "a line"
                    ),
                )
                continue
            if number == 1:
                raw = raw.removeprefix(_BYTE_ORDER_MARK)
            raw = raw.rstrip(b"\r\n")
            try:
                yield number, raw.decode()
            except UnicodeDecodeError:
                yield number, self._bad(number, repr(raw), "text in UTF-8")

    def _skip_line(self, file: IO[bytes]) -> None:
        while part := file.readline(MAX_LINE_BYTES):
            self.done += len(part)
            if part.endswith(b"\n"):
                return

    def _bad(self, line: int, found: str, expected: str) -> Read:
        found = found if len(found) <= 80 else found[:77] + "..."
        return Read(self.path, line, found=found, expected=expected)

    def _read_text(self, file: IO[bytes]) -> Iterator[Read]:
        required = [name for name in self.columns if name not in self.optional]
        if len(required) > 1:
            raise UserError(
                f"{self.path}: this model asks for {' and '.join(required)};"
                " plain text has one of them: use tsv, csv or jsonl"
            )
        for number, text in self._lines(file):
            if isinstance(text, Read):
                yield text
            elif not text.strip():
                self.blank += 1
            else:
                yield Read(self.path, number, {required[0]: text})

    def _read_conll(self, file: IO[bytes]) -> Iterator[Read]:
        """Sentences of one word a line, the words' column by its number."""
        (name, options), *_ = self.columns.items()
        place = next((o for o in options if isinstance(o, int)), 0)
        words: list[str] = []
        start = 1
        for number, text in self._lines(file):
            if isinstance(text, Read):
                yield text
            elif not text.strip() or text.startswith("-DOCSTART-"):
                if words:
                    yield Read(self.path, start, {name: words})
                words = []
            else:
                start = start if words else number
                cells = text.split()
                words.append(cells[min(place, len(cells) - 1)])
        if words:
            yield Read(self.path, start, {name: words})

    def _read_jsonl(self, file: IO[bytes]) -> Iterator[Read]:
        expected = "a JSON object, text or list a line"
        for number, text in self._lines(file):
            if isinstance(text, Read):
                yield text
                continue
            if not text.strip():
                self.blank += 1
                continue
            try:
                value = json.loads(text)
            except (ValueError, RecursionError) as error:
                yield self._bad(number, f"{error}: {text}", expected)
                continue
            if isinstance(value, dict):
                yield self._of_names(number, value)
            elif isinstance(value, str | list):
                parts = [value] if len(self.columns) == 1 else list(value)
                values = dict(zip(self.columns, parts, strict=False))
                yield Read(self.path, number, values)
            else:
                yield self._bad(number, text, expected)

    def _of_names(self, number: int, row: dict[str, Any]) -> Read:
        values = {}
        for name, options in self.columns.items():
            there = [o for o in options if o in row and row[o] is not None]
            if there:
                values[name] = row[there[0]]
            elif name not in self.optional:
                wanted = _words(o for o in options if isinstance(o, str))
                found = f"the keys {', '.join(row) or 'of nothing'}"
                return self._bad(number, found, f"the key {wanted}")
        return Read(self.path, number, values, row.get(self.id_column))

    def _read_table(self, file: IO[bytes]) -> Iterator[Read]:
        places: dict[str, int] | None = None
        id_place: int | None = None
        for number, cells in self._rows(file):
            if isinstance(cells, Read):
                yield cells
                continue
            if not any(cell.strip() for cell in cells):
                self.blank += 1
                continue
            if places is None:
                named = self._has_header(cells)
                header = cells if named else None
                places = self._places(cells, header)
                id_place = self._id_place(header)
                if named:
                    continue
            needed = [p for n, p in places.items() if n not in self.optional]
            if len(cells) <= max(needed):
                found = f"{len(cells)} cells: {'|'.join(cells)}"
                expected = f"at least {max(needed) + 1}"
                yield self._bad(number, found, expected)
                continue
            values = {n: cells[p] for n, p in places.items() if p < len(cells)}
            key = None
            if id_place is not None and id_place < len(cells):
                key = cells[id_place]
            yield Read(self.path, number, values, key)

    def _rows(self, file: IO[bytes]) -> Iterator[tuple[int, Any]]:
        """Numbers and cells; TSV has no quoting, CSV may span lines."""
        lines = self._lines(file)
        if not self._is_csv:
            for number, text in lines:
                cells = text if isinstance(text, Read) else text.split("\t")
                yield number, cells
            return
        broken: list[Read] = []
        start, now = [1], [0]

        def texts() -> Iterator[str]:
            for number, text in lines:
                now[0] = number
                if isinstance(text, Read):
                    broken.append(text)
                    yield "\n"
                else:
                    yield text + "\n"

        reader = csv.reader(texts())
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield start[0], self._bad(start[0], str(error), "a row of CSV")
            else:
                if broken:
                    yield from ((read.line, read) for read in broken)
                    broken.clear()
                else:
                    yield start[0], cells
            start[0] = now[0] + 1

    def _has_header(self, cells: Sequence[str]) -> bool:
        if self.header is not None:
            return self.header
        return all(
            name in self.optional or any(o in cells for o in options)
            for name, options in self.columns.items()
        )

    def _places(
        self, cells: Sequence[str], header: Sequence[str] | None
    ) -> dict[str, int]:
        places = {}
        for name, options in self.columns.items():
            if header is not None:
                found = [header.index(o) for o in options if o in header]
                found += [o for o in options if isinstance(o, int)][:1]
            else:
                found = [o for o in options if isinstance(o, int)]
            if found:
                places[name] = found[0] + len(cells) * (found[0] < 0)
            elif name not in self.optional:
                wanted = _words(o for o in options if isinstance(o, str))
                raise UserError(
                    f"{self.path}:1: no column {wanted}; found:"
                    f" {' | '.join(cells)[:200]}. Name it with --columns, such"
                    f" as --columns={name}=0 for the first"
                )
        return places

    def _id_place(self, header: Sequence[str] | None) -> int | None:
        if self.id_column is None or isinstance(self.id_column, int):
            return self.id_column
        if header is None or self.id_column not in header:
            raise UserError(f"{self.path}:1: no column {self.id_column}")
        return header.index(self.id_column)


def _words(names: Iterator[str]) -> str:
    return " or ".join(names) or "of that number"
