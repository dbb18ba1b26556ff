# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pack test predictions into the zip file that the GLUE server accepts.

The predictions are files that run_glue or run_finetuning.py wrote with
--write_test_outputs. The command checks that every row of the test files has a
prediction, and that labels and numbers are valid for the task.
"""

import argparse
import os
from collections.abc import Sequence

from configure import flags
from configure.errors import UserError
from configure.text_tables import render_rows
from electra_tf.files import filesystem


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("glue_submission", __doc__)
    flags.add_flags(
        parser,
        "the submission",
        ("data_dir", flags.REQUIRED, "DIR", "directory of data and models"),
        ("model_name", flags.REQUIRED, "NAME", "the model, DIR/models/NAME"),
        (
            "output",
            None,
            "FILE",
            "zip file to write (default: in the model's directory,"
            " test_predictions/glue_submission.zip)",
        ),
        (
            "run_name",
            None,
            "NAME",
            "the --run_name of the run, if it was passed",
        ),
        (
            "trial",
            int,
            "N",
            "trial whose predictions are packed (default: for each task, the"
            " trial that is best on the dev set)",
        ),
        ("partial", False, "", "write the file even if tasks are missing"),
        ("overwrite", False, "", "replace an earlier zip file"),
    )
    args = parser.parse_args(list(argv[1:]))
    if args.trial is not None and args.trial < 1:
        parser.error(
            f"--trial is {args.trial}; expected 1 or more. Pass a larger number"
        )
    return args


def main(args: argparse.Namespace) -> None:
    """Write the submission; print its contents and its missing files."""
    from electra_tf.finetuning import glue_submission

    path = args.output or _default_output(args)
    if filesystem.exists(path) and not args.overwrite:
        raise UserError(
            f"{path} exists. Pass --overwrite to replace it, or another"
            " --output."
        )
    submission = glue_submission.collect(
        args.model_name, args.data_dir, args.trial, args.run_name or ""
    )
    missing = [
        f"  {file}: {reason}" for file, reason in submission.missing.items()
    ]
    if not submission.rows:
        raise UserError(
            "there are no predictions to submit:\n"
            + "\n".join(missing)
            + "\nRun run_glue with --write_test_outputs."
        )
    if missing and not args.partial:
        raise UserError(
            "files are missing from the submission:\n"
            + "\n".join(missing)
            + "\nPass --partial to write the submission without these files."
        )
    glue_submission.write_archive(submission.rows, path)
    table = [
        [
            part.file,
            f"{len(submission.rows[part.file]):,} rows",
            f"trial {submission.trials[part.task]}",
        ]
        for part in glue_submission.PARTS
        if part.file in submission.rows
    ]
    print("\n".join(render_rows(table, left=1)))
    for note in submission.notes:
        print(f"WARNING: {note}")
    if missing:
        print("Missing:", *missing, sep="\n")
    print(f"Wrote {path}")


def _default_output(args: argparse.Namespace) -> str:
    """Return the path of the zip file in the model's directory."""
    name = "glue_submission"
    if args.run_name:
        name += f"_{args.run_name}"
    return os.path.join(
        args.data_dir,
        "models",
        args.model_name,
        "test_predictions",
        f"{name}.zip",
    )
