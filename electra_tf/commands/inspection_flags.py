# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the commands that ask a pre-trained model have in common.

Which model, texts from the command line, a file or standard input, and files
that appear when they are complete.
"""

import argparse
import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from configure import flags, hparams
from configure.errors import UserError
from electra_tf import files


def add_model_flags(parser: flags.FrontDoorParser) -> None:
    """Adds the flags that name a pre-trained model."""
    group = parser.add_argument_group("The model")
    flags.add_flag(
        group,
        "model",
        metavar="DIR",
        required=True,
        help="directory of a pre-training run, or any checkpoint: of the"
        " original, of BERT, of this project, or a Hugging Face folder",
    )
    flags.add_flag(
        group,
        "vocab_file",
        metavar="FILE",
        help="its vocabulary, where none lies beside it",
    )
    flags.add_flag(
        group,
        "hparams",
        metavar="JSON",
        help="what no file beside a checkpoint states (heads, case, ...), as"
        " JSON or a .json file",
    )


def add_input_flags(parser: flags.FrontDoorParser) -> None:
    """Adds --text and --input."""
    group = parser.add_argument_group("The texts")
    flags.add_flag(
        group,
        "text",
        metavar="SENTENCE",
        action="append",
        help="a sentence; may be given several times",
    )
    flags.add_flag(
        group,
        "input",
        metavar="FILE",
        help="a file with a sentence a line; - is standard input",
    )


def load_model(args: argparse.Namespace) -> Any:
    """Loads the model that the flags name."""
    # TensorFlow only from here on.
    from electra_tf.pretraining.loading import load_pretrained

    given = hparams.read_hparams(args.hparams) if args.hparams else None
    return load_pretrained(args.model, args.vocab_file, given)


def lines_of(args: argparse.Namespace) -> Iterator[str]:
    """Returns the texts that the flags give."""
    if bool(args.text) == bool(args.input):
        raise UserError("Give the sentences by --text, or a file by --input.")
    if args.text:
        return iter(args.text)
    check_readable(args.input)
    return (line for line in read_lines(args.input) if line.strip())


def check_readable(path: str) -> None:
    """Raises a UserError unless a file is there."""
    if path != "-" and not files.exists(path):
        raise UserError(f"{path}: no such file.")
    if path != "-" and files.is_directory(path):
        raise UserError(f"{path}: is a directory; expected a file.")


class Reading:
    """How far a file has been read.

    Attributes:
      done: bytes read so far.
    """

    def __init__(self, path: str) -> None:
        self.done = 0
        self._size = None if path == "-" else files.file_size(path)

    @property
    def share(self) -> float | None:
        """The share that was read, 0-1, or None where it is not known."""
        return self.done / self._size if self._size else None


def read_lines(path: str, reading: Reading | None = None) -> Iterator[str]:
    """Reads lines of UTF-8 one by one."""
    spoiled = 0
    opened = (
        contextlib.nullcontext(sys.stdin.buffer)
        if path == "-"
        else files.open_file(path, "rb")
    )
    with opened as file:
        for number, raw in enumerate(file):
            if reading is not None:
                reading.done += len(raw)
            if number == 0:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            raw = raw.rstrip(b"\r\n")
            text = raw.decode("utf-8", "ignore")
            spoiled += len(text.encode()) != len(raw)
            yield text
    if spoiled:
        print(
            f"{path}: {spoiled:,} line(s) with bytes that are not UTF-8; those"
            " bytes were left out.",
            file=sys.stderr,
        )


@contextlib.contextmanager
def written(path: str | None) -> Iterator[TextIO | None]:
    """Opens a text file that gets its name when it is complete.

    Args:
      path: of the file, replaced if it is there; None for none; "-" is
        standard output.

    Yields:
      The file, or None.
    """
    if path is None:
        yield None
        return
    if path == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    if files.is_directory(path):
        raise UserError(f"{path}: is a directory; expected a file's name.")
    part = path + ".part"
    try:
        file = files.open_file(part, "wb")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error}") from error
    try:
        with io.TextIOWrapper(file, encoding="utf-8", newline="\n") as text:
            yield text
    except BaseException:
        files.remove(part)
        raise
    files.rename(part, path)
