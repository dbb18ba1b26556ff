# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A training step: ours, tf-models-official's, transformers', the original's.

  python benchmarks/step.py pretraining --python=PEER/bin/python \
      --original=ORIGINAL --before=../before --steps=5 --repeats=9

One step is the forward pass of generator and discriminator with sampling
between them, backward, clipping by global norm, Adam with weight decay; with
dropout 0.1, the same sizes and one and the same batch of full rows. Peak memory
is of the steps.

  python benchmarks/step.py finetuning --python=PEER/bin/python --rows=sst

The same of a classifier, and its evaluation, batches in memory. `--rows=full`
gives every arm the same full rows; `--rows=sst` real sentences, which each arm
pads as its users do: ours and transformers to a batch's longest row, ours in
evaluation sorted by length;
tf-models-official and the original to --length.

Further arms, of ours or a peer with other settings:

  --variants='{"recompute": {"hparams": {"recompute_grad": true}},
      "fixed length": {"hparams": {"length_buckets": false}},
      "oneDNN": {"arm": "tfmodels",
                 "environment": {"TF_ENABLE_ONEDNN_OPTS": "1"}},
      "compiled": {"arm": "transformers", "compile": true},
      "sorted": {"arm": "transformers", "by_length": true}}'

The environment of transformers: benchmarks/requirements-transformers.txt.
"""

import json
import tempfile

import harness
import work

WORK = {"pretraining": work.pretraining, "finetuning": work.finetuning}
KINDS = ("ours", "tfmodels", "transformers", "original")


def parse_args():
    """Reads the command line."""
    parser = harness.parser(__doc__, repeats=7)
    add = parser.add_argument
    add("task", choices=tuple(WORK))
    add("--model_size", default="small", choices=tuple(work.SIZES))
    add("--batch", type=int, help="default: 16, in fine-tuning 32")
    add("--length", type=int, default=128)
    add("--steps", type=int, default=5, help="of each turn")
    add("--precision", default="float32", choices=("float32", "bf16"))
    add("--hparams", type=json.loads, default={}, help="JSON, of ours")
    add("--rows", default="full", choices=("full", "sst"))
    add("--eval_batches", type=int, default=27, help="of each turn")
    add("--data_dir", default=harness.DATA, help="holds finetuning_data/sst")
    add("--vocab_file", default=harness.VOCAB, help="for the rows of sst")
    args = parser.parse_args()
    args.batch = args.batch or {"pretraining": 16, "finetuning": 32}[args.task]
    return args


def measure(args, given):
    """Lets the arms take turns at training, then at evaluation."""
    shared = {"precision": args.precision, "hparams": args.hparams}
    planned = harness.plan(
        args, KINDS, task=args.task.title(), work=given, **shared
    )
    turns = {"train": lambda arm: arm.ask("run", steps=args.steps)}
    if args.task == "finetuning":
        turns["evaluate"] = lambda arm: arm.ask("evaluate")["seconds"]
    seconds, memory = {}, {}
    with harness.Arms(args, planned) as arms:
        about = arms.ask_all("describe")
        losses = arms.ask_all("losses", steps=2)
        for what, turn in turns.items():
            for arm in arms.values():
                turn(arm)  # Traces and first allocations are not counted.
                arm.ask("forget_peak")
            seconds[what] = harness.take_turns(arms, turn, args.repeats)
            memory[what] = arms.ask_all("memory")
        last = arms.ask_all("losses", steps=1)
        if args.task == "finetuning":
            rows = {n: a["rows"] for n, a in arms.ask_all("evaluate").items()}
            if len(set(rows.values())) > 1:
                raise RuntimeError(f"different numbers of rows: {rows}")
        return {
            "about": {name: about[name] for name in arms},
            "losses": {name: losses[name] + last[name] for name in arms},
            "seconds": seconds,
            "faster": {
                what: harness.faster(found) for what, found in seconds.items()
            },
            "memory": memory,
        }, arms.failed


def table(args, result):
    """The rows of the report."""
    rows = []
    for what, found in result["seconds"].items():
        for name, runs in found.items():
            spread = harness.Spread.of([1000 * run for run in runs])
            examples = args.batch if what == "train" else 1
            most = result["memory"][what][name]["peak"]
            above = most - result["about"][name]["imported"]
            row = {
                "": what,
                "arm": name,
                "ms per step (evaluate: row)": spread.shown(2),
                "rows/s": f"{1000 * examples / spread.median:.1f}",
                "ours is faster": harness.shown(result["faster"][what], name),
                "peak MB": f"{most:.0f}",
                "above imports": f"{above:.0f}",
                "losses": " ".join(
                    f"{loss:.3f}" for loss in result["losses"][name]
                ),
            }
            rows.append(row)
    return rows


def main():
    """Measures and shows."""
    args = parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given = WORK[args.task](args, folder)
        result, failed = measure(args, given)
    title = (
        f"{args.task}, {args.model_size}, {args.rows} rows, {args.batch} x"
        f" {args.length}, {args.precision}, {args.threads} threads"
    )
    harness.report(args, title, result, table(args, result), failed=failed)


if __name__ == "__main__":
    main()
