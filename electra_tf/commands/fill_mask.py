# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Says which tokens fit where a text has [MASK].

Asks the generator of an ELECTRA, a masked LM, or a two-tower cloze model.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import TextIO

from configure import flags
from electra_tf.commands.inspection_flags import (
    add_input_flags,
    add_model_flags,
    lines_of,
    load_model,
    written,
)

_PROG = "python -m electra_tf fill_mask"


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FrontDoorParser(
        prog=_PROG,
        usage=f"{_PROG}\n"
        "       --model DIR (--text SENTENCE ... | --input FILE)\n"
        "       [--top_k INT] [--format table|json] [--output FILE]",
        description="Says which tokens fit where a text has [MASK], and with"
        " which probability. Each [MASK] is one wordpiece; several in a text"
        " are answered each by itself.",
    )
    add_model_flags(parser)
    add_input_flags(parser)
    group = parser.add_argument_group("The answers")
    flags.add_flag(
        group,
        "top_k",
        metavar="INT",
        type=int,
        default=5,
        help="tokens a mask (default 5)",
    )
    flags.add_flag(
        group,
        "format",
        metavar="FORMAT",
        choices=("table", "json"),
        default="table",
        help="table, or json: one object a line (default table)",
    )
    flags.add_flag(
        group,
        "output",
        metavar="FILE",
        default="-",
        help="where they go; a file is replaced (default: printed)",
    )
    flags.add_flag(
        group,
        "batch_size",
        metavar="INT",
        type=int,
        default=32,
        help="texts at a time (default 32)",
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Fills the masks of every text."""
    from electra_tf.inspection.fill_mask import MaskFiller

    texts = lines_of(args)
    filler = MaskFiller(load_model(args), args.top_k, args.batch_size)
    for text in filler.pretrained.assumptions:
        print(f"Not stated anywhere: {text}.", file=sys.stderr)
    with written(args.output) as file:
        for filled in filler(texts):
            if args.format == "json":
                record = dataclasses.asdict(filled) | {"best": filled.best()}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            else:
                _write_table(file, filled)
            file.flush()
    return 0


def _write_table(file: TextIO, filled) -> None:
    from electra_tf.inspection.terminal import filled as padded
    from electra_tf.inspection.terminal import printable

    print(printable(filled.text), file=file)
    for mask in filled.masks:
        print(f"  [MASK] at token {mask.position}", file=file)
        for candidate in mask.candidates:
            bar = "#" * round(40 * candidate.probability)
            print(
                f"    {candidate.probability:8.4f}"
                f"  {padded(printable(candidate.token), 16)}  {bar}".rstrip(),
                file=file,
            )
    print(f"  likeliest: {printable(filled.best())}\n", file=file)
