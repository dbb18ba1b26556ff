# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mixes predictions of several models of a task, and says what that gains.

Mean, vote, weights fitted to the labels of a split. Files are those of
`predict` (tagging: with --all_tags), evaluations' ..._nbest.json, or JSON lines
like them. Where the split has labels, every file and mixture is scored, and
gains over the mean and the best file have standard errors (paired bootstrap
over examples). Fitted weights are scored on folds they were not fitted to.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from configure import flags
from configure.errors import UserError
from configure.text_tables import render_rows
from electra_tf.commands import shared_flags
from electra_tf.files.atomic import write_atomically
from electra_tf.files.reading import check_readable
from electra_tf.prediction import writer

if TYPE_CHECKING:
    from electra_tf.extras.ensemble import Members

MIXTURES = ("mean", "vote", "fitted")
MAX_DRAWS = 2**28  # of all resamples together; 2 GiB


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("ensemble", __doc__)
    flags.add_flags(
        parser,
        "what was predicted",
        ("data_dir", flags.REQUIRED, "DIR", "the data directory"),
        ("task", None, "NAME", "the task; not needed with --task_config"),
        ("task_config", None, "FILE", "its description, if it is your own"),
        (
            *("vocab_file", None, "FILE"),
            "default: vocab.txt in the data directory",
        ),
        ("split", "dev", "NAME", "the split that the files are about"),
    )
    flags.add_flags(
        parser,
        "the ensemble",
        ("folds", 5, "N", "of the examples, for fitted weights"),
        ("resamples", 1000, "N", "of the examples, for standard errors"),
        ("seed", 0, "N", "of folds and resamples"),
        ("json", None, "FILE", "where all figures and weights go"),
        (
            *("weights", "mean", "MIXTURE"),
            "what --output holds: mean, vote, fitted, or a weight a file, as"
            " 0.5,0.3,0.2 (such as those fitted on dev, for test)",
        ),
        ("output", None, "FILE", "where the mixed predictions go"),
        shared_flags.OVERWRITE,
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    args = parser.parse_args(list(argv[1:]))
    if not args.task and not args.task_config:
        parser.error("--task or --task_config is needed")
    if len(set(args.files)) != len(args.files) or len(args.files) < 2:
        parser.error("expected two files or more, each once")
    if min(args.folds, args.resamples) < 2 or args.seed < 0:
        parser.error("--folds, --resamples: at least 2; --seed: at least 0")
    return args


def main(args: argparse.Namespace) -> None:
    """Scores and writes."""
    for path in args.files:
        check_readable(path)
    for path in filter(None, (args.output, args.json)):
        writer.check_free(path, args.overwrite, args.files)
    given = _weights(args.weights, len(args.files))
    from electra_tf.extras import ensemble
    from electra_tf.finetuning.row_report import bad_rows_in_errors

    task = ensemble.open_task(
        args.data_dir, args.task, args.vocab_file, args.task_config
    )
    with bad_rows_in_errors({task.name: task.row_report}):
        members = ensemble.members_of(task, args.split, args.files)
    for line in task.row_report.summary(task.name):
        shared_flags.report(line)
    if not members.labelled and (args.json or not args.output):
        raise UserError(
            f"{members.name}: has no labels to score by; give --output alone"
        )
    stacks = members.stacks
    mixtures = {
        "mean": ensemble.mix(stacks, np.full(len(args.files), 1.0)),
        "vote": [members.vote(stack) for stack in stacks],
    }
    if given is not None:
        mixtures[args.weights] = ensemble.mix(stacks, given)
    if members.labelled:
        weights, own = ensemble.cross_fit(members, args.folds, args.seed)
        mixtures["fitted"] = ensemble.mix(stacks, own)
        _score(args, members, mixtures, weights.tolist())
    if args.weights not in mixtures:
        raise UserError(
            f"--weights={args.weights}: {args.split} has no labels to fit to;"
            " fit on dev, and give the weights that it prints"
        )
    if args.output:
        with writer.answer_file(args.output, "jsonl", args.overwrite) as write:
            for number, mixed in enumerate(mixtures[args.weights]):
                write(members.answer(number, mixed))


def _weights(text: str, count: int) -> np.ndarray | None:
    """Return the weights of `--weights`, or None for the name of a mixture."""
    if text in MIXTURES:
        return None
    try:
        weights = np.array([float(part) for part in text.split(",")])
    except ValueError:
        weights = np.array([-1.0])
    usable = np.isfinite(weights) & (weights >= 0)
    if len(weights) != count or not usable.all() or not weights.any():
        raise UserError(
            f"--weights={text}: expected {', '.join(MIXTURES)}, or {count}"
            " finite numbers, none below 0 and one above it, with commas"
            " between"
        )
    with np.errstate(over="ignore"):
        overflows = np.isinf(weights.sum())
    return weights / weights.max() if overflows else weights


def _score(
    args: argparse.Namespace,
    members: "Members",
    mixtures: Mapping[str, Any],
    weights: Sequence[float],
) -> None:
    """Prints the table, and writes the JSON."""
    from electra_tf.extras.ensemble import compare

    files = {
        path: [stack[i] for stack in members.stacks]
        for i, path in enumerate(args.files)
    }
    systems = {n: members.score(m) for n, m in {**files, **mixtures}.items()}
    count, figure = len(members.stacks), members.figure
    if args.resamples > (most := max(2, MAX_DRAWS // count)):
        raise UserError(
            f"--resamples={args.resamples}: expected at most {most:,}, since"
            f" {members.name} has {count:,} examples"
        )
    rng = np.random.default_rng(args.seed)
    draws = rng.integers(count, size=[args.resamples, count])
    found = compare(systems, args.files, figure, draws)
    rows = [["", "", figure, "gain on the mean file", "on the best file"]]
    for name, own in found["systems"].items():
        cells = [f"{own['figures'][figure]:.2f}", "", ""]
        for column, over in enumerate(("mean", "best"), 1):
            if name in mixtures:
                gain, error = own[f"over_{over}"]
                cells[column] = f"{gain:+.2f} ± {error:.2f}"
        mark = "best" if name == found["best_file"] else ""
        rows.append([name, mark, *cells])
    mean = f"{found['mean_file']:.2f}"
    rows.insert(len(files) + 1, ["mean file", "", mean, "", ""])
    print(f"{members.name}: {count:,} examples")
    print("\n".join(render_rows(rows)))
    shown = ",".join(f"{weight:.3f}" for weight in weights)
    print(
        f"fitted: scored by {args.folds}-fold cross-validation; fitted to all"
        f" examples, for other data: --weights {shown}"
    )
    if args.json:
        found |= {"files": args.files, "weights": weights, "figure": figure}
        write_atomically(args.json, f"{json.dumps(found, indent=1)}\n")
