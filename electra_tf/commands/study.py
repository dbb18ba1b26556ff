# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a study: arms x seeds, pre-trained, fine-tuned on tasks, compared.

The same command goes on where it stopped or was killed. Exit status: 0 all is
done, 1 a cell failed, 2 the study cannot be run, 3 time is up, 128 + a signal's
number where one stopped it. docs/study.md says what is in FILE.
"""

import argparse
import math
import sys
from collections.abc import Sequence

from configure import flags
from configure.errors import UserError
from electra_tf.extras.study import report, run
from electra_tf.extras.study.cells import Study


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("study", __doc__)
    parser.add_argument("file", metavar="FILE", help="the study, in JSON")
    flags.add_flags(
        parser,
        "the run",
        ("time_budget", math.inf, "MINUTES", "stop cleanly after so long"),
        (
            *("piece", 60.0, "MINUTES"),
            "of a run's first process; each twice as long",
        ),
        (
            *("output_dir", "", "DIR"),
            "models, log, table, pictures (else the study's; runs/NAME)",
        ),
        ("data_dir", "", "DIR", "in place of the study's data_dir"),
        ("dry_run", False, "", "say what would be run, and what is known"),
    )
    args = parser.parse_args(list(argv[1:]))
    for name in ("time_budget", "piece"):
        if not getattr(args, name) > 0:
            parser.error(f"--{name} must be above 0")
    return args


def main(args: argparse.Namespace) -> int:
    """Runs; the status is in the module's docstring."""
    status = 0
    try:
        study = Study(args.file, args.output_dir, args.data_dir)
        running = run.StudyRun(study, 60 * args.piece, 60 * args.time_budget)
        for arm in study.arms:
            cost = "".join(f", {v:.4g} {n}" for n, v in arm.cost.items())
            print(f"{arm.name}: {arm.start or 'pre-trained'}{cost}")
        if not args.dry_run:
            running.run()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except run.StoppedError as stopped:
        status = stopped.status
    cells = study.cells(running.lines)
    left = [cell.name for cell in cells if cell.digest not in running.lines]
    if args.dry_run:
        print(report.text_of(study, report.compare(study, running.lines)))
        print("\n".join(f"to run: {name}" for name in left))
        return 0
    print(report.write(study, running.lines, running.failed))
    for cell, why in running.failed.items():
        print(f"FAILED {cell}: {why}")
    print(
        f"{len(cells) - len(left)} of {len(cells)} cells are done; log, table"
        f" and pictures are in {study.output}, results in {running.results}"
    )
    if left:
        print("The same command goes on with the rest.")
    return status or int(bool(running.failed))
