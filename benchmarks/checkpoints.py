# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writing and reading weights: our formats, tf-models', transformers'.

Each arm holds generator and discriminator of the same sizes and takes its turn
at writing them to a folder and reading them back into a model; optimizer slots
are not among them. Files are read from the system's cache. transformers has the
embeddings in both of its folders, and makes its models anew when it reads,
where the others fill those they have.

  python benchmarks/checkpoints.py --python=PEER/bin/python --before=../before
"""

import os
import tempfile

import harness
import work

FORMATS = ("tf1", "native", "huggingface")
KINDS = ("ours", "tfmodels", "transformers")


def parse_args():
    """Reads the command line."""
    parser = harness.parser(__doc__, repeats=5)
    sizes = tuple(work.SIZES)
    parser.add_argument("--model_size", default="base", choices=sizes)
    return parser.parse_args()


def measure(args, folder):
    """Lets the arms take turns; seconds and bytes by name of the arm."""
    args.batch, args.length = 1, 128
    given = work.pretraining(args, folder)
    planned = {}
    for name, (kind, spec) in harness.plan(
        args, KINDS, task="Checkpoints", work=given, precision="float32"
    ).items():
        for form in FORMATS if kind == "ours" else [""]:
            full = f"{name}, {form}" if form else name
            planned[full] = (kind, {**spec, "format": form})
    with harness.Arms(args, planned) as arms:
        about = arms.ask_all("describe")

        def turn(arm):
            place = os.path.join(folder, arm.name)
            os.makedirs(place, exist_ok=True)
            os.sync()  # What others wrote must not be on its way to the disk.
            return arm.ask("turn", folder=place)

        turns = harness.take_turns(arms, turn, args.repeats)
        return {"about": about, "turns": turns}, arms.failed


def table(result):
    """The rows of the report; peers are set beside our native format."""
    turns, rows, result["faster"] = result["turns"], [], {}
    for name, found in turns.items():
        row = {"arm": name, "MB": f"{found[0]['bytes'] / 1e6:,.0f}"}
        base = f"ours, {name.rpartition(', ')[2]}"
        base = base if base in turns else "ours, native"
        for way in ("write", "read"):
            runs = {n: [turn[way] for turn in turns[n]] for n in (base, name)}
            row[way] = harness.Spread.of(runs[name]).shown(2, " s")
            faster = harness.faster(runs, base)
            row[f"{way}: ours is faster"] = harness.shown(faster, name)
            result["faster"][f"{name}: {way}"] = faster.get(name)
        rows.append(row)
    return rows


def main():
    """Measures and shows."""
    args = parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result, failed = measure(args, folder)
    title = f"Checkpoints, {args.model_size}"
    harness.report(args, title, result, table(result), failed=failed)


if __name__ == "__main__":
    main()
