# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the commands share that go through files of questions."""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from configure import flags, hparams
from configure.errors import UserError
from electra_tf.files import STDIN
from electra_tf.prediction.reader import FORMATS, Progress, Read, Source

# Bad lines that are named one by one; the rest is counted.
SHOWN_LINES = 20


def add_input_flags(parser: flags.FlagParser) -> None:
    """Adds the flags that say what to read, and how."""
    flags.add_flags(
        parser,
        "what is read",
        (
            *("format", None, FORMATS),
            "default: by the end of the file's name, and text for standard"
            " input",
        ),
        (
            *("columns", None, "NAME=COLUMN,..."),
            "which column (its name, or its number from 0) holds which value,"
            " such as text_a=review or question=0,context=2",
        ),
        (
            *("id_column", None, "COLUMN"),
            "a column that is handed on to the output as id",
        ),
        (
            *("header", bool, ""),
            "whether the first row of TSV and CSV names the columns; default:"
            " it does if it has the names that are looked for",
        ),
        ("strict", False, "", "stop at the first line that cannot be used"),
        ("progress", True, "", "a bar on standard error"),
    ).add_argument(
        "inputs",
        nargs="*",
        metavar="FILE",
        help="files, one after the other; - or none: standard input",
    )


def _column(text: str) -> int | str:
    """A column's number, or its name."""
    return int(text) if text.lstrip("-").isdecimal() else text


def chosen_columns(
    text: str | None, known: Mapping[str, Sequence[int | str]]
) -> dict[str, Sequence[int | str]]:
    """Reads --columns."""
    found = dict(known)
    for part in filter(None, (text or "").split(",")):
        name, equals, place = part.partition("=")
        if not equals and len(known) == 1:
            name, place = next(iter(known)), part
        hparams.check_names([name.strip()], known, "value of --columns")
        if not place.strip():
            raise UserError(
                f"--columns={text}: expected NAME=COLUMN, such as"
                f" {name.strip()}=0"
            )
        found[name.strip()] = [_column(place.strip())]
    return found


def make_sources(
    args: argparse.Namespace, columns: Mapping[str, Sequence[int | str]]
) -> list[Source]:
    """Returns the files to read; none of them is opened."""
    key = None if args.id_column is None else _column(args.id_column)
    return [
        Source(path, args.format, columns, key, args.header)
        for path in args.inputs or [STDIN]
    ]


def check_inputs(args: argparse.Namespace) -> None:
    """Raises for files that are not there, before a model is loaded."""
    for source in make_sources(args, {}):
        source.check()


class Run:
    """Goes through the files: a progress bar, bad lines, a last line."""

    def __init__(
        self, args: argparse.Namespace, columns: Mapping[str, Any]
    ) -> None:
        self.sources = make_sources(args, chosen_columns(args.columns, columns))
        self.progress = Progress(self.sources, args.progress)
        self._strict, self._bad = args.strict, 0
        self._started = time.monotonic()

    def lines(self) -> Iterator[Read]:
        """Yields the lines that could be read."""
        for source in self.sources:
            for read in source:
                if read.values is None:
                    self.refuse(read, read.found, read.expected)
                else:
                    yield read

    def refuse(self, read: Read, found: str, expected: str) -> None:
        """Names the first lines that cannot be used, and counts all."""
        path = "standard input" if read.path == STDIN else read.path
        text = f"{path}:{read.line}: found {found}; expected {expected}"
        if self._strict:
            raise UserError(f"{text}. (Stopped by --strict.)")
        self._bad += 1
        if self._bad <= SHOWN_LINES:
            self.progress.say(f"{text} (skipped)")
        elif self._bad == SHOWN_LINES + 1:
            self.progress.say("... further bad lines are only counted")

    def place_of(self, read: Read) -> dict[str, Any]:
        """Says where an answer's question stands: file, line, id."""
        place = {"file": read.path} if len(self.sources) > 1 else {}
        place |= {"line": read.line}
        return place if read.key is None else {**place, "id": read.key}

    def say_summary(self, what: str) -> None:
        """Prints how much, how long, what was left out."""
        rows, seconds = self.progress.rows, time.monotonic() - self._started
        text = f"{rows:,} {what} in {seconds:.1f} s"
        if rows and seconds:
            text += f" ({rows / seconds:,.0f} a second)"
        blank = sum(source.blank for source in self.sources)
        for count, name in ((self._bad, "bad"), (blank, "blank")):
            if count:
                text += f"; {count:,} {name} line{'s' * (count != 1)} left out"
        say(text)


def say(text: str) -> None:
    """Prints a line on standard error."""
    print(text, file=sys.stderr, flush=True)
