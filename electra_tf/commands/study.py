# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pre-train and fine-tune the arms of a study, and compare their scores.

The same command continues after a stop or a kill. Exit status: 0 if everything
is done, 1 if a run failed, 2 if the study cannot be run, 3 if the time is up,
128 + a signal's number if a signal stopped it. docs/study.md describes FILE.
"""

import argparse
import math
import sys
from collections.abc import Sequence

from configure import flags
from configure.errors import UserError
from electra_tf.extras.study import report
from electra_tf.extras.study.runner import StoppedError, StudyRunner
from electra_tf.extras.study.study_file import Study


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("study", __doc__)
    parser.add_argument("file", metavar="FILE", help="JSON file of the study")
    flags.add_flags(
        parser,
        "the run",
        ("time_budget", math.inf, "MINUTES", "stop cleanly after this time"),
        (
            "piece",
            60.0,
            "MINUTES",
            "time limit of a run's first process; the limit is doubled for"
            " each further process",
        ),
        (
            "output_dir",
            "",
            "DIR",
            "folder of models, log, table and pictures (default: from the"
            " study, or runs/NAME)",
        ),
        (
            "data_dir",
            "",
            "DIR",
            "directory of the tasks' data, instead of the study's data_dir",
        ),
        (
            "dry_run",
            False,
            "",
            "do not run; print the table of finished runs, and the remaining"
            " runs",
        ),
    )
    args = parser.parse_args(list(argv[1:]))
    for name in ("time_budget", "piece"):
        if not getattr(args, name) > 0:
            parser.error(
                f"--{name} is {getattr(args, name)}; expected a number above 0."
                " Pass a larger number"
            )
    return args


def main(args: argparse.Namespace) -> int:
    """Run the study; return the exit status (see the module's docstring)."""
    status = 0
    try:
        study = Study(args.file, args.output_dir, args.data_dir)
        runner = StudyRunner(study, 60 * args.piece, 60 * args.time_budget)
        for arm in study.arms:
            cost = "".join(f", {v:.4g} {n}" for n, v in arm.cost.items())
            print(f"{arm.name}: {arm.start or 'pre-trained'}{cost}")
        if not args.dry_run:
            runner.run()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except StoppedError as stopped:
        status = stopped.status
    runs = study.runs(runner.lines)
    remaining = [run.name for run in runs if run.digest not in runner.lines]
    if args.dry_run:
        print(report.text_of(study, report.compare(study, runner.lines)))
        print("\n".join(f"to run: {name}" for name in remaining))
        return 0
    print(report.write(study, runner.lines, runner.failed))
    for name, reason in runner.failed.items():
        print(f"FAILED {name}: {reason}")
    print(
        f"{len(runs) - len(remaining)} of {len(runs)} runs are done; log,"
        f" table and pictures are in {study.output}, results in"
        f" {runner.results}"
    )
    if remaining:
        print("Run the same command again to continue.")
    return status or int(bool(runner.failed))
