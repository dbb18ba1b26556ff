# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The input of a command: its lines, bad lines, progress and a summary."""

import argparse
import collections
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tqdm

from configure.errors import UserError
from configure.formatting import shorten
from electra_tf.commands import shared_flags
from electra_tf.data import values
from electra_tf.files.reading import STDIN
from electra_tf.prediction.reader import InputRow

SHOWN_LINES = 20  # maximum number of bad lines that are printed


class InputStream:
    """The lines of a command's inputs, with a progress bar.

    Unusable lines are named on standard error and skipped; with --strict they
    raise a UserError.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        columns: Mapping[str, Any] = shared_flags.TEXT_COLUMNS,
        bar: bool = True,
        optional: frozenset[str] = frozenset(),
    ) -> None:
        """Prepare the inputs without reading them.

        Args:
          args: the parsed flags of `shared_flags.add_input_flags`.
          columns: name of a value -> columns that may contain it, likeliest
            first.
          bar: whether to show a progress bar if standard error is a terminal.
          optional: the names of values that a line may omit.
        """
        chosen = shared_flags.parse_columns(args.columns, columns)
        self.sources = shared_flags.make_sources(args, chosen, optional)
        self.rows = 0
        sizes = [source.lines.size() for source in self.sources]
        self._bar = tqdm.tqdm(
            total=None if None in sizes else sum(sizes),
            unit="B",
            unit_scale=True,
            # With None, tqdm shows a bar only if standard error is a terminal.
            disable=None if bar and self.sources else True,
            mininterval=0.5,
        )
        self._texts = getattr(args, "text", None) or []
        self._strict, self._bad_lines = args.strict, 0
        self._has_ids = args.id_column is not None
        self._started = time.monotonic()

    def __enter__(self) -> "InputStream":
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def count(self) -> None:
        """Count an answered line, and move the progress bar."""
        self.rows += 1
        done = sum(source.lines.done for source in self.sources)
        self._bar.set_postfix_str(f"{self.rows:,} rows", refresh=False)
        self._bar.update(done - self._bar.n)

    def lines(self) -> Iterator[InputRow]:
        """Yield the usable lines of --text and of all files."""
        for number, text in enumerate(self._texts, 1):
            yield InputRow("--text", number, {"text": text})
        for source in self.sources:
            for read in source:
                if read.values is None:
                    self.refuse(read, read.content, read.expected)
                else:
                    yield read

    def texts(
        self, check: Callable[[str], Any] = str
    ) -> Iterator[tuple[InputRow, str]]:
        """Yield lines with their texts, except texts that `check` refuses."""
        for read in self.lines():
            text = read.values["text"]
            if not isinstance(text, str):
                self.refuse(read, values.describe(text), "a text")
                continue
            try:
                check(text)
            except UserError as error:
                self.refuse_text(read, error)
                continue
            yield read, text

    def refuse_text(self, read: InputRow, error: UserError) -> None:
        """Raise the error of a bad --text, or count a bad line of a file."""
        if read.path == "--text":
            raise error
        shown_text = shorten(read.values["text"])
        self.refuse(read, shown_text, f"another text: {error}")

    def refuse(self, read: InputRow, found_text: str, expected: str) -> None:
        """Count a bad line; print it if it is one of the first SHOWN_LINES."""
        path = "standard input" if read.path == STDIN else read.path
        text = f"{path}:{read.line}: found {found_text}; expected {expected}"
        if self._strict:
            raise UserError(f"{text}. (Stopped by --strict.)")
        self._bad_lines += 1
        if self._bad_lines <= SHOWN_LINES:
            self._bar.write(f"{text} (skipped)", sys.stderr)
        elif self._bad_lines == SHOWN_LINES + 1:
            text = "... further bad lines are only counted"
            self._bar.write(text, sys.stderr)

    def location(self, read: InputRow) -> dict[str, Any]:
        """Return the columns that name an answer's input line."""
        columns: dict[str, Any] = {}
        if len(self.sources) > 1:
            columns["file"] = read.path
        columns["line"] = read.line
        # If any answer has an id, all answers must have an id, because the
        # header of a TSV file is written with the first answer.
        if self._has_ids:
            columns["id"] = read.key
        return columns

    def require_rows(self, unit: str, done: str) -> None:
        """Raise a UserError if there were lines, and all were bad.

        Call this before output files are complete, so that earlier files stay.
        """
        if self._bad_lines and not self.rows:
            self.report_summary(unit)
            raise UserError(
                f"no line could be {done}. Correct the lines named above."
            )

    def report_summary(self, unit: str) -> None:
        """Print the numbers of answers, seconds and skipped lines."""
        seconds = time.monotonic() - self._started
        text = f"{self.rows:,} {unit} in {seconds:.1f} s"
        if self.rows and seconds:
            text += f" ({self.rows / seconds:,.0f} a second)"
        counts = collections.Counter({"bad lines": self._bad_lines})
        for source in self.sources:
            counts["blank lines"] += source.blank
            counts.update(source.skipped)
        for name, count in counts.items():
            if count == 1:
                name = name.replace("lines", "line", 1)
            if count:
                text += f"; {count:,} {name} left out"
        shared_flags.report(text)
