# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line of `compare_checkpoints`."""

import argparse
import math
import re
from collections.abc import Sequence

from configure import flags

RESULT_FILE = "comparison.json"
PICTURE_FILE = "per_layer_differences.png"
_DESCRIPTION = """
Compares two checkpoints of any format: weights, then outputs on real text.
Each may be a TF1 checkpoint of the original or of BERT, one of this project's,
or a Hugging Face folder. Instead of a second one, --expect takes recorded
outputs. Exit status: 0 they agree within the tolerance, 1 they do not, 2 a
mistake.
"""


def make_parser() -> flags.FrontDoorParser:
    """Describes the command line.

    Returns:
      The parser.
    """
    parser = flags.FrontDoorParser(
        prog="python -m electra_tf.commands.compare_checkpoints",
        usage="%(prog)s A B [--tolerance 1e-5] ...\n"
        "       %(prog)s A --expect FILE.npz ...",
        description=_DESCRIPTION,
    )
    parser.add_argument("a", metavar="A", help="a checkpoint")
    parser.add_argument("b", metavar="B", nargs="?", help="another")
    decision = parser.add_argument_group("what decides")
    flags.add_flag(
        decision,
        "tolerance",
        type=float,
        default=1e-5,
        metavar="X",
        help="largest difference, relative to max(1, max|B|) of each tensor"
        " (default: 1e-5)",
    )
    flags.add_flag(
        decision,
        "allow_missing",
        metavar="REGEX",
        help="variables, or recorded outputs, that one side may lack",
    )
    flags.boolean_argument(
        decision,
        "include_optimizer",
        help="let Adam slots and step decide, too",
    )
    flags.add_flag(
        decision,
        "expect",
        metavar="FILE.npz",
        help="recorded inputs and outputs to compare A with, instead of B",
    )
    _add_input_flags(parser)
    return parser


def _add_input_flags(parser: flags.FrontDoorParser) -> None:
    inputs = parser.add_argument_group("the text they are compared on")
    texts = (
        ("text", "FILE", "a text; default: the Python language reference"),
        ("records", "GLOB", "pre-training records instead of a text"),
        ("vocab_file", "FILE", "default: the one beside a checkpoint"),
        ("hparams", "JSON", "hparams that the checkpoints do not state"),
    )
    for name, metavar, text in texts:
        flags.add_flag(inputs, name, metavar=metavar, help=text)
    numbers = (
        (
            "max_seq_length",
            None,
            "wordpieces per example (default: 128, or what the models have"
            " positions for)",
        ),
        ("num_examples", 32, "examples"),
        ("seed", 0, "of masked positions and replacements"),
    )
    for name, default, text in numbers:
        if default is not None:
            text += f" (default: {default})"
        flags.add_flag(
            inputs,
            name,
            type=int,
            default=default,
            metavar="N",
            help=text,
        )
    flags.add_flag(
        parser.add_argument_group("results"),
        "output_dir",
        default="comparison",
        metavar="DIR",
        help=f"where {RESULT_FILE} and {PICTURE_FILE} go; they are replaced"
        " (default: comparison)",
    )


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line.

    Args:
      argv: program name and flags.

    Returns:
      The flags' values. A mistake ends the program with status 2.
    """
    parser = make_parser()
    args = parser.parse_args(list(argv[1:]))
    if bool(args.b) == bool(args.expect):
        parser.error("give two checkpoints, or one and --expect=FILE.npz")
    if args.text and args.records:
        parser.error("give --text or --records, not both")
    if args.expect and (args.text or args.records):
        parser.error("--expect brings its own inputs; leave --text, --records")
    if args.max_seq_length and (args.expect or args.records):
        parser.error(
            "--expect and --records bring examples of their own length; leave"
            " --max_seq_length"
        )
    if not 0 <= args.tolerance < math.inf:
        parser.error(f"--tolerance is {args.tolerance}; expected 0 or more")
    for name, least in (("max_seq_length", 5), ("num_examples", 1)):
        value = getattr(args, name)
        if value is not None and value < least:
            parser.error(f"--{name} must be at least {least}")
    try:
        re.compile(args.allow_missing or "")
    except re.error as error:
        parser.error(f"--allow_missing is no regular expression: {error}")
    return args
