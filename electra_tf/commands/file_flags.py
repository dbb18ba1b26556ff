# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Flags of the commands that read questions from files."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from configure import flags, hparams
from configure.errors import UserError
from electra_tf.prediction.progress import Progress
from electra_tf.prediction.reader import FORMATS, STDIN, Read, Source

# Bad lines that are named one by one; the rest is counted.
SHOWN_LINES = 20


def add_input_flags(parser: flags.FrontDoorParser) -> None:
    """Adds the flags that say what to read, and how."""
    group = parser.add_argument_group("what is read")
    group.add_argument(
        "inputs",
        nargs="*",
        metavar="FILE",
        help="files, one after the other; - or none: standard input",
    )
    flags.add_flag(
        group,
        "format",
        choices=FORMATS,
        metavar="NAME",
        help=f"{', '.join(FORMATS)}; default: by the end of the file's name,"
        " and text for standard input",
    )
    flags.add_flag(
        group,
        "columns",
        metavar="NAME=COLUMN,...",
        help="which column (its name, or its number from 0) holds which value,"
        " such as text_a=review or question=0,context=2",
    )
    flags.add_flag(
        group,
        "id_column",
        metavar="COLUMN",
        help="a column that is handed on to the output as id",
    )
    flags.boolean_argument(
        group,
        "header",
        default=None,
        help="whether the first row of TSV and CSV names the columns; default:"
        " it does if it has the names that are looked for",
    )
    flags.boolean_argument(
        group, "strict", help="stop at the first line that cannot be used"
    )
    flags.boolean_argument(
        group, "progress", default=True, help="a bar on standard error"
    )


def column(text: str) -> int | str:
    """Returns a column's number, or its name."""
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
        found[name.strip()] = [column(place.strip())]
    return found


def make_sources(
    args: argparse.Namespace, columns: Mapping[str, Sequence[int | str]]
) -> list[Source]:
    """Returns the files to read; none of them is opened."""
    key = None if args.id_column is None else column(args.id_column)
    return [
        Source(path, args.format, columns, key, args.header)
        for path in args.inputs or [STDIN]
    ]


def check_inputs(args: argparse.Namespace) -> None:
    """Raises for files that are not there, before a model is loaded."""
    for source in make_sources(args, {}):
        source.check()


class BadLines:
    """Names the first lines that cannot be used, and counts all."""

    def __init__(self, strict: bool, say: Callable[[str], None]) -> None:
        self._strict, self._say = strict, say
        self.count = 0

    def add(self, read: Read, found: str, expected: str) -> None:
        """Takes a line that cannot be used."""
        path = "standard input" if read.path == STDIN else read.path
        text = f"{path}:{read.line}: found {found}; expected {expected}"
        if self._strict:
            raise UserError(f"{text}. (Stopped by --strict.)")
        self.count += 1
        if self.count <= SHOWN_LINES:
            self._say(f"{text} (skipped)")
        elif self.count == SHOWN_LINES + 1:
            self._say("... further bad lines are only counted")


def good_lines(
    sources: Sequence[Source], bad: BadLines
) -> Iterator[tuple[Read, Any]]:
    """Yields the lines that could be read, with their values."""
    for source in sources:
        for read in source:
            if read.values is None:
                bad.add(read, read.found, read.expected)
            else:
                yield read, read.values


def place_of(read: Read, several: bool) -> dict[str, Any]:
    """Says where an answer's question stands: file, line, id."""
    place: dict[str, Any] = {"file": read.path} if several else {}
    place["line"] = read.line
    return place if read.key is None else {**place, "id": read.key}


def say(text: str) -> None:
    """Prints a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def summary(
    what: str,
    progress: Progress,
    seconds: float,
    bad: int,
    sources: Sequence[Source],
) -> str:
    """Returns the last line: how much, how long, what was left out."""
    rows = progress.rows
    text = f"{rows:,} {what} in {seconds:.1f} s"
    if rows and seconds:
        text += f" ({rows / seconds:,.0f} a second)"
    blank = sum(source.blank for source in sources)
    for count, name in ((bad, "bad"), (blank, "blank")):
        if count:
            text += f"; {count:,} {name} line{'s' * (count != 1)} left out"
    return text
