# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Packs test predictions into the zip file that the GLUE server takes.

The predictions are those that --write_test_outputs of run_glue or
run_finetuning leaves. Checked: a prediction for every row of the test files,
label words, ranges.
"""

import argparse
import os
from collections.abc import Sequence

from configure import flags
from configure.errors import UserError


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("glue_submission", __doc__)
    flags.add_flags(
        parser,
        "the submission",
        ("data_dir", flags.REQUIRED, "DIR", "where data and models live"),
        ("model_name", flags.REQUIRED, "NAME", "the model, DIR/models/NAME"),
        (
            *("output", None, "FILE"),
            "zip file to write (default: in the model's directory,"
            " test_predictions/glue_submission.zip)",
        ),
        ("run_name", None, "NAME", "the run, if it was given a --run_name"),
        (
            *("trial", int, "N"),
            "whose predictions to take (default: for each task, of the trial"
            " that is best on the dev set)",
        ),
        ("partial", False, "", "write it though files are missing"),
        ("overwrite", False, "", "replace an earlier zip file"),
    )
    args = parser.parse_args(list(argv[1:]))
    if args.trial is not None and args.trial < 1:
        parser.error(f"--trial: expected a number from 1, got {args.trial}")
    return args


def main(args: argparse.Namespace) -> None:
    """Writes the submission, and says what it holds and lacks."""
    from electra_tf.files import filesystem
    from electra_tf.finetuning import glue_submission

    name = filter(None, ["glue_submission", args.run_name])
    path = args.output or os.path.join(
        *(args.data_dir, "models", args.model_name),
        *("test_predictions", f"{'_'.join(name)}.zip"),
    )
    if filesystem.exists(path) and not args.overwrite:
        raise UserError(f"{path} is there already; add --overwrite")
    found = glue_submission.collect(
        args.model_name, args.data_dir, args.trial, args.run_name or ""
    )
    missing = [f"  {file}: {why}" for file, why in found.missing.items()]
    if not found.rows:
        raise UserError("there is nothing to submit:\n" + "\n".join(missing))
    if missing and not args.partial:
        raise UserError(
            "the submission would lack\n"
            + "\n".join(missing)
            + "\nTo write it without them: --partial"
        )
    glue_submission.write_archive(found.rows, path)
    for part in glue_submission.PARTS:
        if part.file in found.rows:
            print(
                f"{part.file:<12} {len(found.rows[part.file]):>7,} rows of"
                f" trial {found.trials[part.task]}"
            )
    for note in found.notes:
        print(f"WARNING: {note}")
    if missing:
        print("Missing:", *missing, sep="\n")
    print(f"Wrote {path}")
