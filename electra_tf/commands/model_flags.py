# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Flags that the commands asking a pre-trained model share."""

import argparse
import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from configure import flags, hparams
from configure.errors import UserError
from electra_tf import files
from electra_tf.data import tables

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

    given = hparams.read_hparams(args.hparams) if args.hparams else None
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
