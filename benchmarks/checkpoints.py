# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Time writing and reading weights in this project's and peers' formats.

Generator and discriminator of the same sizes, without optimizer slots, are
written to a folder and read back into a model from the system's cache.
transformers writes the embeddings into both of its folders, and creates new
models when it reads; the other formats are assigned to existing models.

  python benchmarks/checkpoints.py --python=PEER/bin/python --before=../before
"""

import os
import tempfile

import harness
import work

FORMATS = ("tf1", "native", "huggingface")
KINDS = ("ours", "tfmodels", "transformers")


def table(result):
    """Return the rows of the report; peers are compared with `native`."""
    turns, rows, result["faster"] = result["turns"], [], {}
    for name, turn_rows in turns.items():
        row = {"arm": name, "MB": f"{turn_rows[0]['bytes'] / 1e6:,.0f}"}
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
    parser = harness.parser(__doc__, repeats=5)
    sizes = tuple(work.SIZES)
    parser.add_argument("--model_size", default="base", choices=sizes)
    args = parser.parse_args()
    args.batch, args.length = 1, 128
    shared = {"task": "Checkpoints", "precision": "float32"}
    with tempfile.TemporaryDirectory() as folder:
        sizes, planned = work.pretraining(args, folder), {}
        plan_by_name = harness.plan(args, KINDS, work=sizes, **shared)
        for name, (kind, spec) in plan_by_name.items():
            for form in FORMATS if kind == "ours" else [""]:
                full = f"{name}, {form}" if form else name
                planned[full] = (kind, {**spec, "format": form})

        def turn(arm):
            arm_folder = os.path.join(folder, arm.name)
            os.makedirs(arm_folder, exist_ok=True)
            os.sync()  # Pending writes of other arms must not delay this arm.
            return arm.ask("turn", folder=arm_folder)

        with harness.Arms(args, planned) as arms:
            result = {"about": arms.ask_all("describe")}
            result["turns"] = harness.take_turns(arms, turn, args.repeats)
    title, rows = f"Checkpoints, {args.model_size}", table(result)
    harness.report(args, title, result, rows, failed=arms.failed)


if __name__ == "__main__":
    main()
