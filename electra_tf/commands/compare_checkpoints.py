# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares two checkpoints of any format: weights, then outputs on real text.

Each may be a TF1 checkpoint of the original or of BERT, one of this project's,
or a Hugging Face folder. Instead of a second one, --expect takes recorded
outputs. Exit status: 0 they agree within the tolerance, 1 they do not, 2 a
mistake.
"""

import argparse
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from configure import flags, hparams
from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf import files
from electra_tf.compare.differences import TensorDifference, compare_tensors
from electra_tf.compare.forward import ForwardDifference
from electra_tf.compare.report import (
    absences,
    forward_table,
    not_compared_table,
    optimizer_table,
    shortened,
    variables_table,
    verdict,
    worst_first,
)

# The command line of `compare_checkpoints`.

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
    """Describes the command line."""
    parser = flags.FrontDoorParser(
        prog="python -m electra_tf compare_checkpoints",
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
    """Reads the command line."""
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


def main(args: argparse.Namespace) -> int:
    """Compares, prints, writes; see the module's text for the exit status."""
    try:
        return _compare(args)
    except UserError as error:
        message = str(error)
    except OSError as error:
        if error.filename is None:
            raise
        message = f"{error.filename}: {error.strerror}"
    sys.stdout.flush()
    print(f"error: {message}", file=sys.stderr)
    return 2


def _compare(args: argparse.Namespace) -> int:
    # TensorFlow only from here on.
    from electra_tf.checkpoints.formats import open_weights
    from electra_tf.compare import checkpoints as comparison

    request = _request(args)
    result: dict[str, Any] = {"tolerance": args.tolerance, "a": args.a}
    a = open_weights(args.a)
    print(f"A  {_description(a)}", flush=True)
    if args.expect:
        print(f"B  {args.expect} (recorded)", flush=True)
        result["expect"] = args.expect
        outcome = comparison.compare_on_recording(a, args.expect, request)
        problems = _absences(outcome.forward, args.allow_missing)
    else:
        b = open_weights(args.b)
        print(f"B  {_description(b)}", flush=True)
        result["b"] = args.b
        found, problems = _compare_variables(a, b, args, result)
        shapes_agree = not any(row.problem for row in found)
        outcome = comparison.compare_on_text(a, b, request, shapes_agree)
        problems += outcome.problems
    not_compared = outcome.not_compared
    if outcome.forward is not None:
        problems += outcome.forward.problems(args.tolerance)
        result["outputs"] = outcome.forward.as_dict()
        print("\n".join(forward_table(outcome.forward)))
        not_compared |= outcome.forward.not_compared
    for line in not_compared_table(not_compared):
        print(line)
    for note in outcome.notes:
        print(note)
    result |= {
        "not_compared": not_compared,
        "notes": outcome.notes,
        "problems": problems,
        "agree": not problems,
    }
    print(f"Written: {', '.join(_write(args, result, outcome.forward))}")
    print(verdict(problems, bool(not_compared), args.tolerance))
    return 1 if problems else 0


def _request(args: argparse.Namespace) -> Any:
    from electra_tf.compare.checkpoints import Request

    given = {}
    if args.hparams is not None:
        given = hparams.read_hparams(args.hparams)
        # The file beside a recording will do, and so will a run's.
        given = PretrainingConfig.explicit_hparams(given.get("hparams", given))
    return Request(
        lines=lambda: _lines(args.text),
        records=args.records,
        vocab_file=args.vocab_file,
        hparams=given,
        length=args.max_seq_length,
        count=args.num_examples,
        seed=args.seed,
    )


def _lines(path: str | None) -> Iterable[str]:
    if not path:
        from electra_tf.commands.demo import corpus_lines

        return corpus_lines()
    return _lines_of_file(path)


def _lines_of_file(path: str) -> Iterator[str]:
    with files.open_file(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield line.decode("utf-8").strip()
            except UnicodeDecodeError as error:
                raise UserError(
                    f"--text={path}: line {number} is not in UTF-8."
                ) from error


def _description(weights: Any) -> str:
    count = sum(math.prod(shape) for shape in weights.shapes.values())
    step = weights.global_step
    return (
        f"{weights.path} ({weights.kind}): {len(weights.shapes)} variables,"
        f" {count:,} numbers, {len(weights.slots)} Adam slots,"
        f" {'no step' if step is None else f'step {step}'}"
    )


def _compare_variables(
    a: Any, b: Any, args: argparse.Namespace, result: dict[str, Any]
) -> tuple[list[TensorDifference], list[str]]:
    """Compares weights, slots and step; prints and records what is found."""
    from electra_tf.checkpoints.weights import STEP_NAME

    names = dict.fromkeys([*a.shapes, *b.shapes])
    found = worst_first(compare_tensors(a, b, names))
    print("\n".join(variables_table(found, args.tolerance)))
    result["variables"] = [row.as_dict() for row in found]
    extra = dict.fromkeys(n for n in [*a.specs, *b.specs] if n not in names)
    optimizer = worst_first(compare_tensors(a, b, extra))
    result["optimizer"] = [row.as_dict() for row in optimizer]
    if optimizer:
        print(
            "\n".join(
                optimizer_table(optimizer, STEP_NAME, args.include_optimizer)
            )
        )
    deciding = found + (optimizer if args.include_optimizer else [])
    deciding = [
        row
        for row in deciding
        if not row.agrees(args.tolerance)
        and not _may_lack(row, args.allow_missing)
    ]
    problems = absences(deciding) + [
        f"{row.name}: {row.difference.text}"
        for row in deciding
        if row.difference is not None
    ]
    return found, problems


def _may_lack(row: TensorDifference, pattern: str | None) -> bool:
    one_sided = row.shape_a is None or row.shape_b is None
    return one_sided and bool(pattern and re.search(pattern, row.name))


def _absences(
    forward: ForwardDifference, allow_missing: str | None
) -> list[str]:
    """Recorded outputs that the checkpoint cannot give, unless allowed."""
    return [
        f"{name}: {why}"
        for name, why in forward.not_compared.items()
        if not (allow_missing and re.search(allow_missing, name))
    ]


def _write(
    args: argparse.Namespace,
    result: dict[str, Any],
    forward: ForwardDifference | None,
) -> list[str]:
    """Writes the results; a picture of an earlier comparison goes."""
    files.make_directory(args.output_dir)
    path = os.path.join(args.output_dir, RESULT_FILE)
    with files.open_file(path + ".part", "wb") as file:
        file.write((json.dumps(result, indent=1) + "\n").encode())
    files.rename(path + ".part", path)
    picture = os.path.join(args.output_dir, PICTURE_FILE)
    if forward is None or not (forward.layers or forward.logits):
        if files.exists(picture):
            files.remove(picture)
        return [path]
    from electra_tf.compare.plot import draw_layer_differences

    title = (
        f"A: {shortened(args.a, 80)}\nB: {shortened(args.expect or args.b, 80)}"
    )
    draw_layer_differences(picture, forward, args.tolerance, title)
    return [path, picture]
