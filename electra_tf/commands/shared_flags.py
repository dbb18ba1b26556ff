# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Flags that the commands asking a pre-trained model share."""

import argparse
import contextlib
import io
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from configure import config, flags
from configure.errors import UserError
from electra_tf import files
from electra_tf.data import tables
from electra_tf.files import STDIN
from electra_tf.prediction.reader import FORMATS, Progress, Read, Source

_BY_EXTENSION = {".txt": "text", ".tsv": "tsv", ".jsonl": "jsonl"}
_EXPECTED = {
    "tsv": "id<TAB>text",
    "jsonl": 'an object such as {"id": "1", "text": "..."}',
}


def add_model_flags(parser: flags.FlagParser) -> None:
    """Adds the flags that name a pre-trained model."""
    flags.add_flags(
        parser,
        "the model",
        (
            *("model", flags.REQUIRED, "DIR"),
            "directory of a pre-training run, or any checkpoint: of the"
            " original, of BERT, of this project, or a Hugging Face folder",
        ),
        ("vocab_file", None, "FILE", "where no vocabulary lies beside it"),
        (
            *("hparams", None, "JSON"),
            "what no file beside a checkpoint states (heads, case, ...), as"
            " JSON or a .json file",
        ),
    )


def add_text_flags(parser: flags.FlagParser) -> None:
    """Adds the flags that say which texts are read."""
    group = flags.add_flags(
        parser,
        "the texts",
        (
            *("format", None, tuple(_BY_EXTENSION.values())),
            "text (a line each), tsv (id, text) or jsonl (text and perhaps"
            " id); default: by the end of the file's name, else text",
        ),
    )
    flags.add_flag(
        group,
        "text",
        metavar="SENTENCE",
        action="append",
        help="a text instead of files; may be given several times",
    )
    group.add_argument(
        "inputs",
        nargs="*",
        metavar="FILE",
        help="files, one after the other; - is standard input",
    )


# A row for `flags.add_flags`.
OUTPUT = (
    *("output", "-", "FILE"),
    "where the answers go; a file is replaced; - prints them",
)
BATCH_SIZE = ("batch_size", 32, "N", "inputs at a time")


def load_model(args: argparse.Namespace) -> Any:
    """Loads the model that the flags name; says what nothing states."""
    # TensorFlow only from here on.
    from electra_tf.pretraining.loading import load_pretrained

    given = config.read_hparams(args.hparams) if args.hparams else None
    pretrained = load_pretrained(args.model, args.vocab_file, given)
    for text in pretrained.assumptions:
        print(f"Not stated anywhere: {text}.", file=sys.stderr)
    return pretrained


def read_texts(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yields (id, text), blank lines of plain text included.

    Files are looked for at once, before a model is loaded.
    """
    if bool(args.text) == bool(args.inputs):
        raise UserError(
            "Give the texts as files (- for standard input), or by --text."
        )
    if args.text:
        return ((str(n), text) for n, text in enumerate(args.text, 1))
    for path in args.inputs:
        files.check_readable(path)
    return (item for path in args.inputs for item in _read(path, args.format))


def _read(path: str, declared: str | None) -> Iterator[tuple[str, str]]:
    name = declared or _BY_EXTENSION.get(path[path.rfind(".") :], "text")
    reader = files.LineReader(path, leave_out=True)
    if name == "text":
        for number, text in enumerate(reader.texts(), 1):
            yield str(number), text
    else:
        for row in tables.read_rows(reader, name):
            yield _item(row, name, path)
    if reader.spoiled:
        print(
            f"{path}: {reader.spoiled:,} line(s) with bytes that are not UTF-8;"
            " those bytes were left out.",
            file=sys.stderr,
        )


def _item(row: tables.Row, name: str, path: str) -> tuple[str, str]:
    cells = row.cells
    if name == "tsv" and len(cells) == 2:
        return cells[0], cells[1]
    if name == "jsonl" and isinstance(cells, dict):
        text = cells.get("text")
        if isinstance(text, str):
            return str(cells.get("id", row.line)), text
    found = row.found or (files.shortened(cells) if cells else "nothing")
    raise UserError(
        f"{path}:{row.line}: found {found}; expected {_EXPECTED[name]}"
    )


@contextlib.contextmanager
def opened(path: str | None) -> Iterator[TextIO | None]:
    """Opens a text file that gets its name when it is complete.

    Args:
      path: None for no file; "-" is standard output.
    """
    if path is None:
        yield None
    elif path == "-":
        yield sys.stdout
        sys.stdout.flush()
    else:
        with files.atomic_file(path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
            yield text
            text.flush()
            text.detach()


# What the commands share that go through files of questions.

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
        config.check_names([name.strip()], known, "value of --columns")
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
