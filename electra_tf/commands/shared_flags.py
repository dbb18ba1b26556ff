# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Flags that several commands share: models, input files, output files."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from configure import flags
from configure.errors import UserError
from configure.hparams_json import read_hparams
from configure.suggestions import check_names
from electra_tf.files.reading import STDIN
from electra_tf.prediction import writer
from electra_tf.prediction.reader import FORMATS, Source

# The columns that may contain a text, likeliest first.
TEXT_COLUMNS = {"text": ("text", "text_a", "sentence", 0)}

# format -> column flags that do not apply to the format
_UNUSED_FLAGS = {"text": ("columns", "header"), "conll": ("header",)}

# Each row is an argument of `flags.add_flags`.
BATCH_SIZE = ("batch_size", 32, "N", "number of inputs computed at a time")
OVERWRITE = ("overwrite", False, "", "replace the output file if it exists")
OUTPUT = (
    ("output", "-", "FILE", "file for the answers; -: print the answers"),
    (
        "output_format",
        None,
        writer.FORMATS,
        "default: the format that the end of the file's name indicates, or"
        " jsonl",
    ),
    OVERWRITE,
)


def add_model_flags(parser: flags.FlagParser) -> None:
    """Add the flags that name a pre-trained model."""
    flags.add_flags(
        parser,
        "the model",
        (
            "model",
            flags.REQUIRED,
            "DIR",
            "directory of a pre-training run, or any checkpoint: of the"
            " original, of BERT, of this project, a folder of transformers, or"
            " hf:OWNER/NAME",
        ),
        (
            "vocab_file",
            None,
            "FILE",
            "vocabulary; required if none is next to the model",
        ),
        (
            "hparams",
            None,
            "JSON",
            "hparams that no file next to the checkpoint contains, such as the"
            " casing, as JSON or a .json file",
        ),
    )


def load_model(args: argparse.Namespace) -> Any:
    """Return the model that the flags name; print the assumptions about it."""
    # TensorFlow is imported late, because --help does not need it.
    from electra_tf.pretraining.loading import load_pretrained

    hparams = read_hparams(args.hparams) if args.hparams else None
    pretrained = load_pretrained(args.model, args.vocab_file, hparams)
    for assumption in pretrained.assumptions:
        report(f"This is assumed, because no file contains it: {assumption}.")
    return pretrained


def add_input_flags(parser: flags.FlagParser, sentences: bool = False) -> None:
    """Add the flags of input files and, if `sentences` is true, --text."""
    group = flags.add_flags(
        parser,
        "the input",
        (
            "format",
            None,
            FORMATS,
            "default: the format that the end of the file's name indicates;"
            " for standard input: text",
        ),
        (
            "columns",
            None,
            "NAME=COLUMN,...",
            "column (its name, or its number from 0) of each value, such as"
            " text_a=review or question=0,context=2",
        ),
        (
            "id_column",
            None,
            "COLUMN",
            "a column that is copied to the output as id",
        ),
        (
            "header",
            bool,
            "",
            "whether the first row of TSV and CSV names the columns; default:"
            " true if it contains the expected names",
        ),
        ("strict", False, "", "stop at the first unusable line"),
    )
    if sentences:
        group.add_argument(
            "--text",
            metavar="SENTENCE",
            action="append",
            help="a text to read instead of files; may be repeated",
        )
    group.add_argument(
        "inputs",
        nargs="*",
        metavar="FILE",
        help="files to read, in this order; - or no file: standard input",
    )


def _parse_column(text: str) -> int | str:
    """Return a column's number, or its name if the text is not a number."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def parse_columns(
    text: str | None, defaults: Mapping[str, Sequence[int | str]]
) -> dict[str, Sequence[int | str]]:
    """Return the columns of each value, from --columns or the defaults.

    Args:
      text: the value of --columns, NAME=COLUMN pairs separated by commas; a
        COLUMN alone is enough if there is one name.
      defaults: name of a value -> columns that may contain it.
    """
    columns = dict(defaults)
    named: set[str] = set()
    for part in filter(None, (text or "").split(",")):
        name, equals, column = map(str.strip, part.partition("="))
        if not equals and len(defaults) == 1:
            name, column = next(iter(defaults)), part.strip()
        check_names([name], defaults, "value of --columns")
        if not column:
            raise UserError(
                f"--columns={text}: {name} has no column; expected"
                f" NAME=COLUMN. Pass a column, such as {name}=0"
            )
        if name in named:
            raise UserError(
                f"--columns={text}: {name} has two columns; expected one."
                " Remove one of the columns."
            )
        named.add(name)
        columns[name] = [_parse_column(column)]
    return columns


def make_sources(
    args: argparse.Namespace,
    columns: Mapping[str, Sequence[int | str]],
    optional: frozenset[str] = frozenset(),
) -> list[Source]:
    """Return the files to read, unopened; none if texts come from --text."""
    if getattr(args, "text", None):
        if args.inputs:
            raise UserError(
                "--text and input files exclude each other. Remove --text or"
                " the files."
            )
        return []
    key = None if args.id_column is None else _parse_column(args.id_column)
    return [
        Source(path, args.format, columns, optional, key, args.header)
        for path in args.inputs or [STDIN]
    ]


def check_files(args: argparse.Namespace, *outputs: str) -> None:
    """Refuse missing inputs and existing outputs before TensorFlow loads.

    Args:
      args: the parsed flags of inputs and outputs.
      *outputs: the paths to write; default: the path of --output.

    Raises:
      UserError: an input is missing, an output exists, a count is below 1, or a
        flag does not apply to the format of a file.
    """
    for path in filter(None, outputs or [getattr(args, "output", None)]):
        writer.check_free(path, getattr(args, "overwrite", True), args.inputs)
    for name in ("batch_size", "n_best", "top_k"):
        if (value := getattr(args, name, 1)) < 1:
            raise UserError(
                f"--{name}={value}: expected 1 or more. Pass a larger number."
            )
    for source in make_sources(args, {}):
        source.check()
        for name in _UNUSED_FLAGS.get(source.kind(), ()):
            if getattr(args, name) is not None:
                raise UserError(
                    f"{source.path}: --{name}={getattr(args, name)} does not"
                    f" apply to files of format {source.kind()}. Pass a file in"
                    f" tsv, csv or jsonl (see --format), or remove --{name}"
                )


def open_answers(
    args: argparse.Namespace,
) -> contextlib.AbstractContextManager[Callable[[Mapping[str, Any]], None]]:
    """Return a context that opens --output, and yields a writer of answers."""
    form = writer.choose_format(args.output, args.output_format)
    return writer.answer_file(args.output, form, args.overwrite)


def report(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)
