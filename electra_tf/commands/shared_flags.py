# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What commands that ask a model share: its flags, files in, answers out."""

import argparse
import collections
import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tqdm

from configure import flags
from configure.errors import UserError
from configure.formatting import shorten
from configure.json_text import read_hparams
from configure.validation import check_names
from electra_tf.data import values
from electra_tf.files.reading import STDIN
from electra_tf.prediction import writer
from electra_tf.prediction.reader import FORMATS, Read, Source

# Bad lines that are named one by one; the rest is counted.
SHOWN_LINES = 20
# Where a text stands, likeliest first.
TEXT_COLUMNS = {"text": ("text", "text_a", "sentence", 0)}

# Flags of columns that a format has none of.
_NOT_READ = {"text": ("columns", "header"), "conll": ("header",)}

# Rows for `flags.add_flags`.
BATCH_SIZE = ("batch_size", 32, "N", "inputs at a time")
OUTPUT = (
    ("output", "-", "FILE", "where the answers go; - prints them"),
    (
        *("output_format", None, writer.FORMATS),
        "default: by the end of the file's name, else jsonl",
    ),
    ("overwrite", False, "", "allow replacing the output file"),
)


def add_model_flags(parser: flags.FlagParser) -> None:
    """Adds the flags that name a pre-trained model."""
    flags.add_flags(
        parser,
        "the model",
        (
            *("model", flags.REQUIRED, "DIR"),
            "directory of a pre-training run, or any checkpoint: of the"
            " original, of BERT, of this project, a folder of transformers, or"
            " hf:OWNER/NAME",
        ),
        ("vocab_file", None, "FILE", "where no vocabulary lies beside it"),
        (
            *("hparams", None, "JSON"),
            "what no file beside a checkpoint states (heads, case, ...), as"
            " JSON or a .json file",
        ),
    )


def load_model(args: argparse.Namespace) -> Any:
    """Loads the model that the flags name; says what nothing states."""
    # TensorFlow only from here on.
    from electra_tf.pretraining.loading import load_pretrained

    given = read_hparams(args.hparams) if args.hparams else None
    pretrained = load_pretrained(args.model, args.vocab_file, given)
    for text in pretrained.assumptions:
        say(f"Not stated anywhere: {text}.")
    return pretrained


def add_input_flags(parser: flags.FlagParser, sentences: bool = False) -> None:
    """Adds the flags that say what to read (`sentences`: or --text)."""
    group = flags.add_flags(
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
    )
    if sentences:
        group.add_argument(
            "--text",
            metavar="SENTENCE",
            action="append",
            help="a text instead of files; may be given several times",
        )
    group.add_argument(
        "inputs",
        nargs="*",
        metavar="FILE",
        help="files, one after the other; - or none: standard input",
    )


def _column(text: str) -> int | str:
    return int(text) if text.removeprefix("-").isdecimal() else text


def chosen_columns(
    text: str | None, known: Mapping[str, Sequence[int | str]]
) -> dict[str, Sequence[int | str]]:
    """Reads --columns."""
    found = dict(known)
    for part in filter(None, (text or "").split(",")):
        name, equals, place = map(str.strip, part.partition("="))
        if not equals and len(known) == 1:
            name, place = next(iter(known)), part.strip()
        check_names([name], known, "value of --columns")
        if not place:
            raise UserError(
                f"--columns={text}: expected NAME=COLUMN, such as {name}=0"
            )
        found[name] = [_column(place)]
    return found


def make_sources(
    args: argparse.Namespace,
    columns: Mapping[str, Sequence[int | str]],
    optional: frozenset[str] = frozenset(),
) -> list[Source]:
    """Returns the files to read; none of them is opened."""
    if getattr(args, "text", None):
        if args.inputs:
            raise UserError("Give the texts as files or by --text, not both.")
        return []
    key = None if args.id_column is None else _column(args.id_column)
    return [
        Source(path, args.format, columns, optional, key, args.header)
        for path in args.inputs or [STDIN]
    ]


def check_files(args: argparse.Namespace, *outputs: str) -> None:
    """Raises for files that lack or are in the way, before TensorFlow loads."""
    for path in filter(None, outputs or [getattr(args, "output", None)]):
        writer.check_free(path, getattr(args, "overwrite", True), args.inputs)
    for name in ("batch_size", "n_best", "top_k"):
        if (value := getattr(args, name, 1)) < 1:
            raise UserError(f"--{name}={value}: expected 1 or more")
    for source in make_sources(args, {}):
        source.check()
        for name in _NOT_READ.get(source.kind(), ()):
            if getattr(args, name) is not None:
                raise UserError(
                    f"{source.path}: --{name}={getattr(args, name)}:"
                    f" {source.kind()} has no columns for it; use tsv, csv or"
                    " jsonl (see --format)"
                )


def answers(
    args: argparse.Namespace,
) -> contextlib.AbstractContextManager[Callable[[Mapping[str, Any]], None]]:
    """Gives a function that writes an answer where `OUTPUT` says."""
    form = writer.format_of(args.output, args.output_format)
    return writer.answer_file(args.output, form, args.overwrite)


class Run:
    """Goes through what is asked: a progress bar, bad lines, a last line."""

    def __init__(
        self,
        args: argparse.Namespace,
        columns: Mapping[str, Any] = TEXT_COLUMNS,
        bar: bool = True,
        optional: frozenset[str] = frozenset(),
    ) -> None:
        chosen = chosen_columns(args.columns, columns)
        self.sources = make_sources(args, chosen, optional)
        self.rows = 0
        sizes = [source.lines.size() for source in self.sources]
        self._bar = tqdm.tqdm(
            total=None if None in sizes else sum(sizes),
            unit="B",
            unit_scale=True,
            # None: where standard error is no terminal.
            disable=None if bar and self.sources else True,
            mininterval=0.5,
        )
        self._given = getattr(args, "text", None) or []
        self._strict, self._bad = args.strict, 0
        self._has_ids = args.id_column is not None
        self._started = time.monotonic()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def count(self) -> None:
        self.rows += 1
        done = sum(source.lines.done for source in self.sources)
        self._bar.set_postfix_str(f"{self.rows:,} rows", refresh=False)
        self._bar.update(done - self._bar.n)

    def lines(self) -> Iterator[Read]:
        for number, text in enumerate(self._given, 1):
            yield Read("--text", number, {"text": text})
        for source in self.sources:
            for read in source:
                if read.values is None:
                    self.refuse(read, read.found, read.expected)
                else:
                    yield read

    def texts(
        self, check: Callable[[str], Any] = str
    ) -> Iterator[tuple[Read, str]]:
        """Yields the lines and their texts, but those that `check` refuses."""
        for read in self.lines():
            text = read.values["text"]
            if not isinstance(text, str):
                self.refuse(read, values.described(text), "a text")
                continue
            try:
                check(text)
            except UserError as error:
                self.refuse_text(read, error)
                continue
            yield read, text

    def refuse_text(self, read: Read, error: UserError) -> None:
        """Raises what is wrong with a `--text`, and refuses a file's line."""
        if read.path == "--text":
            raise error
        found = shorten(read.values["text"])
        self.refuse(read, found, f"another text: {error}")

    def refuse(self, read: Read, found: str, expected: str) -> None:
        """Names the first lines that cannot be used, and counts all."""
        path = "standard input" if read.path == STDIN else read.path
        text = f"{path}:{read.line}: found {found}; expected {expected}"
        if self._strict:
            raise UserError(f"{text}. (Stopped by --strict.)")
        self._bad += 1
        if self._bad <= SHOWN_LINES:
            self._bar.write(f"{text} (skipped)", sys.stderr)
        elif self._bad == SHOWN_LINES + 1:
            text = "... further bad lines are only counted"
            self._bar.write(text, sys.stderr)

    def place_of(self, read: Read) -> dict[str, Any]:
        place = {"file": read.path} if len(self.sources) > 1 else {}
        place |= {"line": read.line}
        # A TSV file has the columns of its first answer.
        return {**place, "id": read.key} if self._has_ids else place

    def say_summary(self, what: str) -> None:
        """Prints how much, how long, what was left out."""
        rows, seconds = self.rows, time.monotonic() - self._started
        text = f"{rows:,} {what} in {seconds:.1f} s"
        if rows and seconds:
            text += f" ({rows / seconds:,.0f} a second)"
        counts = collections.Counter({"bad lines": self._bad})
        for source in self.sources:
            counts["blank lines"] += source.blank
            counts.update(source.skipped)
        for name, count in counts.items():
            if count == 1:
                name = name.replace("lines", "line", 1)
            if count:
                text += f"; {count:,} {name} left out"
        say(text)


def say(text: str) -> None:
    """Prints a line on standard error."""
    print(text, file=sys.stderr, flush=True)
