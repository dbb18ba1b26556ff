# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning and evaluation of a classifier: ours beside the peers.

A step is forward, backward, clipping and Adam with weight decay, dropout 0.1,
batches in memory. `--rows=full` gives every arm the same full rows;
`--rows=sst` real sentences, which each arm pads as its users do: ours to a
batch's longest row (a multiple of 16), in evaluation sorted by length;
transformers to a batch's longest; tf-models-official to --length. The arms
take turns; peak memory is of training and evaluation.

  python benchmarks/finetuning_step.py --python=peers/bin/python \
      --rows=full --batch=32 --length=128 --repeats=7 \
      --output=runs/performance

Further arms, as in pretraining_step.py:

  --variants='{"recompute": {"recompute_grad": true}}'
  --checkouts='{"before": "../before"}'
  --peer_variants='{"sorted": {"by_length": true}}'

The environment of transformers: benchmarks/requirements-transformers.txt.
"""

import os
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, ROOT)

import comparing  # noqa: E402
import finetuning_work  # noqa: E402
import step_arms  # noqa: E402
import workers  # noqa: E402

SCRIPTS = {
    "ours": "finetuning_ours.py",
    "tfmodels": "finetuning_tfmodels.py",
    "transformers": "finetuning_transformers.py",
}
UNITS = {"train": "seconds per step", "evaluate": "seconds per row"}


def parse_args():
    """Reads the command line."""
    default = os.path.join(os.path.dirname(ROOT), "shared")
    data = os.environ.get("ELECTRA_TF_REFERENCE", default)
    data = os.path.join(data, "data")
    parser = step_arms.parser(__doc__, SCRIPTS, batch=32)
    add = parser.add_argument
    add("--rows", default="full", choices=("full", "sst"))
    add("--data_dir", default=data, help="holds finetuning_data/sst")
    add("--vocab_file", default=os.path.join(data, "vocab", "vocab.txt"))
    add("--eval_batches", type=int, default=27, help="of each turn")
    return step_arms.parse(parser, SCRIPTS)


def start_arms(args, work):
    """The workers by name, in the order of their turns."""
    planned = step_arms.planned(
        args, work=work, vocab_file=os.path.abspath(args.vocab_file)
    )
    arms = workers.Arms()
    try:
        for name, (kind, spec) in planned.items():
            arms[name] = step_arms.start(args, SCRIPTS, name, kind, spec)
    except BaseException:
        arms.__exit__()
        raise
    return arms


def measure(args, work):
    """Lets the arms take turns at training, then at evaluation."""
    with start_arms(args, work) as arms:
        about = {name: arm.ask("describe") for name, arm in arms.items()}
        first = {name: arm.ask("losses", steps=2) for name, arm in arms.items()}
        seconds, memory = {}, {}
        turns = {
            "train": lambda arm: arm.ask("train", steps=args.steps),
            "evaluate": evaluate,
        }
        for what, turn in turns.items():
            for arm in arms.values():
                turn(arm)  # Traces and first allocations are not counted.
                arm.ask("forget_peak")
            seconds[what] = comparing.take_turns(arms, turn, args.repeats)
            memory[what] = {
                name: arm.ask("memory")["peak"] for name, arm in arms.items()
            }
        rows = {n: arm.ask("evaluate")["rows"] for n, arm in arms.items()}
        if len(set(rows.values())) > 1:
            raise RuntimeError(f"arms read different numbers of rows: {rows}")
        last = {name: arm.ask("losses", steps=1) for name, arm in arms.items()}
    return {
        "about": about,
        "losses": {name: [*first[name], *last[name]] for name in arms},
        "seconds": seconds,
        "memory": memory,
    }


def evaluate(arm):
    """Seconds per row of an arm's turn."""
    return arm.ask("evaluate")["seconds"]


def report(args, result):
    """Shows the table; writes the files where asked."""
    rows, lowest = [], {"train": args.batch, "evaluate": 1}
    result["times_as_fast"] = {what: {} for what in UNITS}
    for what, found in result["seconds"].items():
        for name, runs in found.items():
            above = result["memory"][what][name]
            above -= result["about"][name]["imported"]
            faster = ""
            if "ours" in found and name != "ours":
                spread = comparing.ratios(runs, found["ours"])
                result["times_as_fast"][what][name] = spread
                faster = spread.shown(2, "x")
            thousandths = comparing.Spread.of([1000 * run for run in runs])
            rows.append(
                [
                    what,
                    name,
                    thousandths.shown(2),
                    f"{lowest[what] / statistics.median(runs):.1f}",
                    faster,
                    f"{above:.0f}",
                ]
            )
    header = [
        "",
        "arm",
        "ms per step (train), per row (evaluate)",
        "rows/s",
        "ours is faster",
        "peak above imports, MB",
    ]
    title = (
        f"{args.model_size}, {args.rows} rows, batch {args.batch}, length"
        f" {args.length}, {args.precision}, {args.threads} threads"
    )
    about = comparing.table(
        ["arm", "parameters", "losses", "versions"],
        [
            [
                name,
                f"{found['parameters']:,}",
                " ".join(f"{loss:.3f}" for loss in result["losses"][name]),
                ", ".join(f"{k} {v}" for k, v in found["versions"].items()),
            ]
            for name, found in result["about"].items()
        ],
    )
    text = (
        f"Fine-tuning a classifier: {title}; medians of {args.repeats} turns"
        f" (lowest to highest).\n\n{comparing.table(header, rows)}\n{about}"
    )
    name = f"finetuning_step_{args.model_size}_{args.rows}_{args.precision}"
    comparing.write_report(args.output, name, result, text)
    if not args.output:
        return
    for what, found in result["seconds"].items():
        path = os.path.join(args.output, f"{name}_{what}.png")
        comparing.draw_bars(path, f"{what}: {title}", UNITS[what], found)


def main():
    """Measures and shows."""
    args = parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = finetuning_work.describe(args, folder)
        try:
            result = measure(args, work)
        except workers.ArmError as error:
            sys.exit(f"error: {error}")
    report(args, {"arguments": vars(args), **result})


if __name__ == "__main__":
    main()
