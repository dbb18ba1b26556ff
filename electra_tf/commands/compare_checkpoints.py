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
from collections.abc import Iterable, Sequence
from typing import Any

from configure import flags
from configure.errors import UserError
from configure.json_text import read_hparams
from configure.pretraining import PretrainingConfig
from electra_tf.compare import report
from electra_tf.compare.differences import TensorDifference, compare_tensors
from electra_tf.files.atomic import write_atomically
from electra_tf.files.lines import LineReader

RESULT_FILE = "comparison.json"


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("compare_checkpoints", __doc__)
    parser.add_argument("a", metavar="A", help="a checkpoint")
    parser.add_argument("b", metavar="B", nargs="?", help="another")
    flags.add_flags(
        parser,
        "what decides",
        (
            *("tolerance", 1e-5, "X"),
            "largest difference, relative to max(1, max|B|) of each tensor",
        ),
        (
            *("allow_missing", None, "REGEX"),
            "variables, or recorded outputs, that one side may lack",
        ),
        ("include_optimizer", False, "", "let Adam slots and step decide, too"),
        (
            *("expect", None, "FILE.npz"),
            "recorded inputs and outputs to compare A with, instead of B",
        ),
    )
    flags.add_flags(
        parser,
        "the text they are compared on",
        ("text", None, "FILE", "default: the Python language reference"),
        ("vocab_file", None, "FILE", "default: the one beside a checkpoint"),
        ("hparams", None, "JSON", "hparams that the checkpoints do not state"),
        (
            *("max_seq_length", int, "N"),
            "wordpieces per example (default: 128, or what the models have"
            " positions for)",
        ),
        ("num_examples", 32, "N", "examples"),
        ("seed", 0, "N", "of masked positions and replacements"),
    )
    flags.add_flags(
        parser,
        "results",
        (
            *("output_dir", None, "DIR"),
            f"write {RESULT_FILE} there; it is replaced",
        ),
    )
    args = parser.parse_args(list(argv[1:]))
    if bool(args.b) == bool(args.expect):
        parser.error("give two checkpoints, or one and --expect=FILE.npz")
    if args.expect and (args.text or args.max_seq_length):
        parser.error(
            "--expect brings its own inputs; leave --text, --max_seq_length"
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
    """Compares, prints, writes; the status is in the module's docstring."""
    try:
        return _compare(args)
    except UserError as error:
        sys.stdout.flush()
        print(f"error: {error}", file=sys.stderr)
        return 2


def _compare(args: argparse.Namespace) -> int:
    # TensorFlow only from here on.
    from electra_tf.checkpoints.formats import open_weights
    from electra_tf.checkpoints.weights import describe_counts
    from electra_tf.compare import outputs, recording

    request = _request(args)
    result: dict[str, Any] = {"tolerance": args.tolerance, "a": args.a}
    a = open_weights(args.a)
    _say(f"A  {a.path} ({a.kind}): {describe_counts(a.counts())}")
    if args.expect:
        _say(f"B  {args.expect} (recorded)")
        result["expect"] = args.expect
        outcome = recording.compare_on_recording(a, args.expect, request)
        pattern = args.allow_missing
        problems = [
            f"{name}: {why}"
            for name, why in outcome.forward.not_compared.items()
            if not (pattern and re.search(pattern, name))
        ]
    else:
        b = open_weights(args.b)
        _say(f"B  {b.path} ({b.kind}): {describe_counts(b.counts())}")
        result["b"] = args.b
        names = dict.fromkeys([*a.shapes, *b.shapes])
        extra = dict.fromkeys([*a.specs, *b.specs])  # slots and step
        extra = [name for name in extra if name not in names]
        variables = report.worst_first(compare_tensors(a, b, names))
        optimizer = report.worst_first(compare_tensors(a, b, extra))
        _say(*report.variables_table(variables, args.tolerance))
        if optimizer:
            _say(report.optimizer_line(optimizer, args.include_optimizer))
        result["variables"] = [row.as_dict() for row in variables]
        result["optimizer"] = [row.as_dict() for row in optimizer]
        deciding = variables + (optimizer if args.include_optimizer else [])
        problems = _problems(deciding, args)
        shapes_agree = not any(row.problem for row in variables)
        outcome = outputs.compare_on_text(a, b, request, shapes_agree)
        problems += outcome.problems
    not_compared = outcome.not_compared
    if outcome.forward is not None:
        problems += outcome.forward.problems(args.tolerance)
        result["outputs"] = outcome.forward.as_dict()
        _say(*report.forward_table(outcome.forward))
        not_compared |= outcome.forward.not_compared
    _say(*report.not_compared_table(not_compared), *outcome.notes)
    result |= {
        "not_compared": not_compared,
        "notes": outcome.notes,
        "problems": problems,
        "agree": not problems,
    }
    if args.output_dir is not None:
        path = os.path.join(args.output_dir, RESULT_FILE)
        write_atomically(path, json.dumps(result, indent=1) + "\n")
        _say(f"Written: {path}")
    _say(report.verdict(problems, bool(not_compared), args.tolerance))
    return 1 if problems else 0


def _say(*lines: str) -> None:
    if lines:
        print(*lines, sep="\n", flush=True)


def _request(args: argparse.Namespace) -> Any:
    from electra_tf.commands.demo import corpus_lines
    from electra_tf.compare.outputs import Request

    def lines() -> Iterable[str]:
        return LineReader(args.text).texts() if args.text else corpus_lines()

    # The file beside a recording will do, and so will a run's.
    given = read_hparams(args.hparams) if args.hparams else {}
    given = PretrainingConfig.explicit_hparams(given.get("hparams", given))
    return Request(
        lines=lines,
        vocab_file=args.vocab_file,
        hparams=given,
        length=args.max_seq_length,
        count=args.num_examples,
        seed=args.seed,
    )


def _problems(
    rows: Iterable[TensorDifference], args: argparse.Namespace
) -> list[str]:
    def may_lack(row: TensorDifference) -> bool:
        one_sided = row.shape_a is None or row.shape_b is None
        pattern = args.allow_missing
        return one_sided and bool(pattern and re.search(pattern, row.name))

    rows = [
        row
        for row in rows
        if not row.agrees(args.tolerance) and not may_lack(row)
    ]
    return report.absences(rows) + [
        f"{row.name}: {row.difference.text}"
        for row in rows
        if row.difference is not None
    ]
