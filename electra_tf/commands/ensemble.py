# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mix predictions of several models of a task, and measure the gain.

Mixtures are the mean, a vote, and a mean with weights fitted to the labels of a
split. The input files are outputs of `predict` (tagging: with --all_tags), the
..._nbest.json of evaluations, or JSON lines of the same form. If the split has
labels, every file and mixture is scored, and gains over the mean and the best
file have standard errors (paired bootstrap over examples). Fitted weights are
scored on folds that were held out from fitting.
"""

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from configure import flags
from configure.errors import UserError
from configure.text_tables import render_rows
from electra_tf.commands import shared_flags
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import without_nan
from electra_tf.files.reading import check_readable
from electra_tf.prediction import writer

if TYPE_CHECKING:
    from electra_tf.extras.ensemble.predictions import Predictions

MIXTURES = ("mean", "vote", "fitted")
# Maximum number of indices that are drawn for all resamples together (2 GiB).
MAX_DRAWS = 2**28


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("ensemble", __doc__)
    flags.add_flags(
        parser,
        "the predictions",
        ("data_dir", flags.REQUIRED, "DIR", "the data directory"),
        ("task", None, "NAME", "the task; omitted with --task_config"),
        ("task_config", None, "FILE", "description of your own task"),
        (
            "vocab_file",
            None,
            "FILE",
            "default: vocab.txt in the data directory",
        ),
        ("split", "dev", "NAME", "the split that was predicted"),
    )
    flags.add_flags(
        parser,
        "the ensemble",
        (
            "folds",
            5,
            "N",
            "number of folds in the cross-validation of fitted weights",
        ),
        (
            "resamples",
            1000,
            "N",
            "number of resamples of the examples in the bootstrap, which"
            " estimates standard errors",
        ),
        ("seed", 0, "N", "random seed of folds and resamples"),
        ("json", None, "FILE", "output file for all metrics and weights"),
        (
            "weights",
            "mean",
            "MIXTURE",
            "mixture to write to --output: mean, vote, fitted, or one weight"
            " per file, such as 0.5,0.3,0.2 (for a split without labels, pass"
            " the weights that were fitted on dev)",
        ),
        ("output", None, "FILE", "output file for the mixed predictions"),
        shared_flags.OVERWRITE,
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    args = parser.parse_args(list(argv[1:]))
    _check_flags(parser, args)
    return args


def _check_flags(
    parser: argparse.ArgumentParser, args: argparse.Namespace
) -> None:
    """Report flags that do not describe an ensemble."""
    if not args.task and not args.task_config:
        parser.error(
            "found no task; expected a name or a description. Pass --task or"
            " --task_config"
        )
    if len(set(args.files)) != len(args.files) or len(args.files) < 2:
        parser.error(
            f"found {len(set(args.files))} different files among"
            f" {len(args.files)}; expected at least two, each passed once. Pass"
            " other files"
        )
    if min(args.folds, args.resamples) < 2 or args.seed < 0:
        parser.error(
            f"--folds is {args.folds}, --resamples is {args.resamples} and"
            f" --seed is {args.seed}; expected at least 2, 2 and 0. Pass larger"
            " numbers"
        )


def main(args: argparse.Namespace) -> None:
    """Score the files and mixtures, and write the chosen mixture."""
    for path in args.files:
        check_readable(path)
    for path in filter(None, (args.output, args.json)):
        writer.check_free(path, args.overwrite, args.files)
    chosen_weights = _parse_weights(args.weights, len(args.files))
    from electra_tf.extras.ensemble.mixing import cross_fit, mix

    predictions = _read_predictions(args)
    stacks = predictions.stacks
    mixtures = {
        "mean": mix(stacks, np.full(len(args.files), 1.0)),
        "vote": [predictions.vote(stack) for stack in stacks],
    }
    if chosen_weights is not None:
        mixtures[args.weights] = mix(stacks, chosen_weights)
    if predictions.has_labels:
        weights, by_example = cross_fit(predictions, args.folds, args.seed)
        mixtures["fitted"] = mix(stacks, by_example)
        _score(args, predictions, mixtures, weights.tolist())
    if args.weights not in mixtures:
        raise UserError(
            f"--weights={args.weights}: split {args.split} has no labels to fit"
            " the weights to. Pass the weights that the command prints with"
            " --split=dev"
        )
    if args.output:
        with writer.answer_file(args.output, "jsonl", args.overwrite) as write:
            for number, mixed in enumerate(mixtures[args.weights]):
                write(predictions.answer(number, mixed))


def _read_predictions(args: argparse.Namespace) -> "Predictions":
    """Return the files' predictions, and report bad rows of the task's data."""
    from electra_tf.extras.ensemble.predictions import (
        open_task,
        read_predictions,
    )
    from electra_tf.finetuning.row_report import bad_rows_in_errors

    task = open_task(
        args.data_dir, args.task, args.vocab_file, args.task_config
    )
    with bad_rows_in_errors({task.name: task.row_report}):
        predictions = read_predictions(task, args.split, args.files)
    for line in task.row_report.summary(task.name):
        shared_flags.report(line)
    if not predictions.has_labels and (args.json or not args.output):
        raise UserError(
            f"{predictions.name} has no labels, so the files cannot be scored."
            " Pass --output, and remove --json."
        )
    return predictions


def _parse_weights(text: str, count: int) -> np.ndarray | None:
    """Return the weights in `--weights`, or None if it names a mixture."""
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
            " finite numbers separated by commas, each at least 0, and at least"
            " one above 0. Correct --weights."
        )
    with np.errstate(over="ignore"):
        overflows = np.isinf(weights.sum())
    return weights / weights.max() if overflows else weights


def _score(
    args: argparse.Namespace,
    predictions: "Predictions",
    mixtures: Mapping[str, Any],
    weights: Sequence[float],
) -> None:
    """Print a table of scores and gains, and write the file of --json.

    Args:
      args: the parsed flags.
      predictions: the files' predictions.
      mixtures: name -> [units, columns] for each example.
      weights: the weights that were fitted to all examples.
    """
    from electra_tf.extras.ensemble.mixing import compare

    outputs: dict[str, Any] = {}
    for number, path in enumerate(args.files):
        outputs[path] = [stack[number] for stack in predictions.stacks]
    outputs |= mixtures
    systems = {name: predictions.score(m) for name, m in outputs.items()}
    count, metric = len(predictions.stacks), predictions.metric
    if args.resamples > (limit := max(2, MAX_DRAWS // count)):
        raise UserError(
            f"--resamples={args.resamples}: expected at most {limit:,},"
            f" because {predictions.name} has {count:,} examples. Pass a"
            " smaller number."
        )
    rng = np.random.default_rng(args.seed)
    resamples = rng.integers(count, size=[args.resamples, count])
    comparison = compare(systems, args.files, metric, resamples)
    print(f"{predictions.name}: {count:,} examples")
    print("\n".join(_table(comparison, metric, args.files)))
    notes = _undefined_scores(comparison, metric, args.files, args.resamples)
    for note in notes:
        print(note)
    shown = ",".join(f"{weight:.3f}" for weight in weights)
    print(
        f"fitted: scored by {args.folds}-fold cross-validation. For other data,"
        f" pass the weights fitted to all examples: --weights {shown}"
    )
    if args.json:
        comparison |= {
            "files": args.files,
            "weights": weights,
            "figure": metric,
        }
        text = json.dumps(without_nan(comparison), indent=1, allow_nan=False)
        write_atomically(args.json, f"{text}\n")


def _table(
    comparison: Mapping[str, Any], metric: str, paths: Sequence[str]
) -> list[str]:
    """Return the lines of a table of the files' and mixtures' scores and gains.

    A row below the files contains the mean of the files' scores.
    """
    rows = [["", "", metric, "gain over the mean file", "over the best file"]]
    for name, result in comparison["systems"].items():
        is_best = name == comparison["best_file"]
        row = [
            name,
            "best" if is_best else "",
            _format(result["figures"][metric]),
        ]
        for baseline in ("over_mean", "over_best"):
            gain, error = result[baseline]
            text = f"{_format(gain, '+.2f')} ± {_format(error)}"
            row.append("" if name in paths else text)
        rows.append(row)
    mean = f"{comparison['mean_file']:.2f}"
    rows.insert(len(paths) + 1, ["mean file", "", mean, "", ""])
    return render_rows(rows)


def _format(value: float, style: str = ".2f") -> str:
    return format(value, style) if math.isfinite(value) else "undefined"


def _undefined_scores(
    comparison: Mapping[str, Any],
    metric: str,
    paths: Sequence[str],
    resamples: int,
) -> Iterator[str]:
    """Yield lines about the scores that means and standard errors leave out."""
    if undefined := comparison["undefined_files"]:
        yield (
            f"{metric} is undefined for {len(undefined)} of {len(paths)} files:"
            f" {', '.join(undefined)}. The mean file leaves them out"
        )
    for name, result in comparison["systems"].items():
        over_mean, over_best = result["undefined_resamples"]
        if name not in paths and (over_mean or over_best):
            yield (
                f"{name}: the standard errors leave out {over_mean:,} (mean"
                f" file) and {over_best:,} (best file) of {resamples:,}"
                f" resamples, in which {metric} is undefined"
            )
