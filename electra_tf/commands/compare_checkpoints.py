# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compare two checkpoints of any format: weights, then outputs on real text.

Each checkpoint may be a TF1 checkpoint of the original or of BERT, a checkpoint
of this project, or a Hugging Face folder. Instead of a second checkpoint,
--expect takes recorded outputs. Exit status: 0 if both sides agree within the
tolerance, 1 if they differ, 2 on an error.
"""

import argparse
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from configure import flags
from configure.errors import UserError
from configure.hparams_json import read_hparams
from configure.pretraining import PretrainingConfig
from electra_tf.compare import report
from electra_tf.compare.differences import TensorDifference, compare_tensors
from electra_tf.files.atomic import write_atomically
from electra_tf.files.lines import LineReader

# Importing these packages takes seconds, so functions import them when needed.
if TYPE_CHECKING:
    from electra_tf.checkpoints.weights import Weights
    from electra_tf.compare.outputs import Outcome, Request

RESULT_FILE = "comparison.json"


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("compare_checkpoints", __doc__)
    parser.add_argument("a", metavar="A", help="a checkpoint")
    parser.add_argument("b", metavar="B", nargs="?", help="another checkpoint")
    _add_decision_flags(parser)
    _add_text_flags(parser)
    flags.add_flags(
        parser,
        "results",
        (
            "output_dir",
            None,
            "DIR",
            f"folder for {RESULT_FILE}, which replaces an earlier file",
        ),
    )
    args = parser.parse_args(list(argv[1:]))
    _check_flags(parser, args)
    return args


def _add_decision_flags(parser: argparse.ArgumentParser) -> None:
    flags.add_flags(
        parser,
        "what decides",
        (
            "tolerance",
            1e-5,
            "X",
            "largest accepted difference, relative to max(1, max|B|) of"
            " each tensor",
        ),
        (
            "allow_missing",
            None,
            "REGEX",
            "regular expression of variables, or of recorded outputs, that"
            " may be missing on one side",
        ),
        (
            "include_optimizer",
            False,
            "",
            "also compare Adam slots and the step",
        ),
        (
            "expect",
            None,
            "FILE.npz",
            "recorded inputs and outputs to compare A with, instead of B",
        ),
    )


def _add_text_flags(parser: argparse.ArgumentParser) -> None:
    flags.add_flags(
        parser,
        "the text to compare outputs on",
        ("text", None, "FILE", "text (default: the Python language reference)"),
        (
            "vocab_file",
            None,
            "FILE",
            "vocabulary (default: the one next to a checkpoint)",
        ),
        ("hparams", None, "JSON", "hparams that no checkpoint contains"),
        (
            "max_seq_length",
            int,
            "N",
            "wordpieces per example (default: 128, but at most the number of"
            " positions of the models)",
        ),
        ("num_examples", 32, "N", "number of examples"),
        ("seed", 0, "N", "random seed of masked positions and replacements"),
    )


def _check_flags(
    parser: argparse.ArgumentParser, args: argparse.Namespace
) -> None:
    """Exit with a message if flags are invalid or exclude each other."""
    if bool(args.b) == bool(args.expect):
        parser.error(
            "expected two checkpoints, or one checkpoint and a recording. Pass"
            " A B, or A --expect=FILE.npz"
        )
    if args.expect and (args.text or args.max_seq_length):
        parser.error(
            "--expect uses its own inputs, so --text and --max_seq_length are"
            " not allowed. Remove both flags"
        )
    if not 0 <= args.tolerance < math.inf:
        parser.error(
            f"--tolerance is {args.tolerance}; expected a finite number of 0 or"
            " more. Pass another number"
        )
    for name, minimum in (("max_seq_length", 5), ("num_examples", 1)):
        value = getattr(args, name)
        if value is not None and value < minimum:
            parser.error(
                f"--{name} is {value}; expected at least {minimum}. Pass a"
                " larger number"
            )
    try:
        re.compile(args.allow_missing or "")
    except re.error as error:
        parser.error(
            f"--allow_missing is {args.allow_missing!r}, which is not a regular"
            f" expression ({error}). Correct the expression"
        )


def main(args: argparse.Namespace) -> int:
    """Compare the checkpoints; return the exit status."""
    try:
        return _compare(args)
    except UserError as error:
        sys.stdout.flush()
        print(f"error: {error}", file=sys.stderr)
        return 2


def _compare(args: argparse.Namespace) -> int:
    # TensorFlow is imported late, because the import takes seconds.
    from electra_tf.checkpoints.formats import open_weights
    from electra_tf.checkpoints.weights import describe_counts

    result: dict[str, Any] = {"tolerance": args.tolerance, "a": args.a}
    a = open_weights(args.a)
    _print_lines(f"A  {a.path} ({a.kind}): {describe_counts(a.counts())}")
    if args.expect:
        _print_lines(f"B  {args.expect} (recorded)")
        result["expect"] = args.expect
        outcome, problems = _compare_with_recording(a, args)
    else:
        b = open_weights(args.b)
        _print_lines(f"B  {b.path} ({b.kind}): {describe_counts(b.counts())}")
        result["b"] = args.b
        outcome, problems = _compare_two(a, b, args, result)
    not_compared = outcome.not_compared
    if outcome.forward is not None:
        problems += outcome.forward.problems(args.tolerance)
        result["outputs"] = outcome.forward.as_dict()
        _print_lines(*report.forward_table(outcome.forward))
        not_compared |= outcome.forward.not_compared
    _print_lines(*report.not_compared_table(not_compared), *outcome.notes)
    result |= {
        "not_compared": not_compared,
        "notes": outcome.notes,
        "problems": problems,
        "agree": not problems,
    }
    if args.output_dir is not None:
        path = os.path.join(args.output_dir, RESULT_FILE)
        write_atomically(path, json.dumps(result, indent=1) + "\n")
        _print_lines(f"Written: {path}")
    _print_lines(report.verdict(problems, bool(not_compared), args.tolerance))
    return 1 if problems else 0


def _compare_with_recording(
    a: "Weights", args: argparse.Namespace
) -> tuple["Outcome", list[str]]:
    """Compare A's outputs with a recording; return the outcome and problems."""
    from electra_tf.compare.recording import compare_on_recording

    outcome = compare_on_recording(a, args.expect, _request(args))
    pattern = args.allow_missing
    problems = [
        f"{name}: {reason}"
        for name, reason in outcome.forward.not_compared.items()
        if not (pattern and re.search(pattern, name))
    ]
    return outcome, problems


def _compare_two(
    a: "Weights",
    b: "Weights",
    args: argparse.Namespace,
    result: dict[str, Any],
) -> tuple["Outcome", list[str]]:
    """Compare tensors, then outputs; return the outcome and the problems.

    The rows of both tables are added to `result`.
    """
    from electra_tf.checkpoints.contents import TRAINING_ONLY
    from electra_tf.checkpoints.formats import open_weights
    from electra_tf.checkpoints.weights import is_variable
    from electra_tf.compare.outputs import compare_on_text

    # An export contains no head that only training uses, so these heads are
    # compared if both sides contain them.
    whole_a, whole_b = (
        open_weights(path, with_training_state=True)
        for path in (args.a, args.b)
    )
    shared = [
        name
        for name in whole_a.specs
        if name.startswith(TRAINING_ONLY) and name in whole_b.specs
    ]
    rows = [
        *compare_tensors(a, b, dict.fromkeys([*a.specs, *b.specs])),
        *compare_tensors(whole_a, whole_b, shared),
    ]
    variables = report.worst_first(r for r in rows if is_variable(r.name))
    optimizer = report.worst_first(r for r in rows if not is_variable(r.name))
    _print_lines(*report.variables_table(variables, args.tolerance))
    if optimizer:
        _print_lines(report.optimizer_line(optimizer, args.include_optimizer))
    result["variables"] = [row.as_dict() for row in variables]
    result["optimizer"] = [row.as_dict() for row in optimizer]
    deciding = variables + (optimizer if args.include_optimizer else [])
    problems = _problems(deciding, args.tolerance, args.allow_missing)
    shapes_agree = not any(row.problem for row in variables)
    outcome = compare_on_text(a, b, _request(args), shapes_agree)
    return outcome, problems + outcome.problems


def _print_lines(*lines: str) -> None:
    if lines:
        print(*lines, sep="\n", flush=True)


def _request(args: argparse.Namespace) -> "Request":
    """Return the settings of the comparison of outputs."""
    from electra_tf.commands.demo import corpus_lines
    from electra_tf.compare.outputs import Request

    def lines() -> Iterable[str]:
        return LineReader(args.text).texts() if args.text else corpus_lines()

    # The .json file of a recording has its hparams under a key `hparams`; other
    # files have them at the top level.
    hparams = read_hparams(args.hparams) if args.hparams else {}
    hparams = PretrainingConfig.explicit_hparams(
        hparams.get("hparams", hparams)
    )
    return Request(
        lines=lines,
        vocab_file=args.vocab_file,
        hparams=hparams,
        length=args.max_seq_length,
        count=args.num_examples,
        seed=args.seed,
    )


def _problems(
    rows: Iterable[TensorDifference],
    tolerance: float,
    allow_missing: str | None,
) -> list[str]:
    """Return a line for each tensor that differs too much or is missing."""

    def may_be_missing(row: TensorDifference) -> bool:
        if row.shape_a is not None and row.shape_b is not None:
            return False
        return bool(allow_missing and re.search(allow_missing, row.name))

    rows = [
        row
        for row in rows
        if not row.agrees(tolerance) and not may_be_missing(row)
    ]
    return report.absences(rows) + [
        f"{row.name}: {row.difference.text}"
        for row in rows
        if row.difference is not None
    ]
