# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Time training steps of this project, the original and two libraries.

  python benchmarks/step.py pretraining --python=PEER/bin/python \
      --original=ORIGINAL --before=../before --steps=5 --repeats=9
  python benchmarks/step.py finetuning --python=PEER/bin/python --rows=sst

A pre-training step is the forward pass of generator and discriminator with
sampling between them, the backward pass, clipping by global norm, and Adam with
weight decay. Dropout is 0.1, sizes are equal, and there is one batch of full
rows. Fine-tuning steps, and evaluation, are those of a classifier on batches in
memory. `--rows=full` has equal full rows for every arm; `--rows=sst` has real
sentences, which each arm pads as its users do: this project and transformers to
the longest row of a batch, this project's evaluation sorted by length,
tf-models-official and the original to --length. Peak memory is of the steps.
Further arms are this project or a peer with other settings:

  --variants='{"recompute": {"hparams": {"recompute_grad": true}},
      "fixed length": {"hparams": {"length_buckets": false}},
      "oneDNN": {"arm": "tfmodels",
                 "environment": {"TF_ENABLE_ONEDNN_OPTS": "1"}},
      "sorted": {"arm": "transformers", "by_length": true}}'
"""

import json
import tempfile

import harness
import work

WORK = {"pretraining": work.pretraining, "finetuning": work.finetuning}
# The original, which comes last, computes only in float32.
KINDS = (
    "ours",
    "tfmodels",
    "transformers",
    "transformers compiled",
    "original",
)


def measure(args, arms):
    turns = {"train": lambda arm: arm.ask("run", steps=args.steps)}
    if args.task == "finetuning":
        turns["evaluate"] = lambda arm: arm.ask("evaluate")["seconds"]
    seconds, memory = {}, {}
    about = arms.ask_all("describe")
    losses = arms.ask_all("losses", steps=2)
    for what, turn in turns.items():
        for arm in arms.values():
            # The first turns trace graphs and allocate memory, so they are
            # excluded.
            turn(arm)
            arm.ask("forget_peak")
        seconds[what] = harness.take_turns(arms, turn, args.repeats)
        memory[what] = arms.ask_all("memory")
    last = arms.ask_all("losses", steps=1)
    if args.task == "finetuning":
        rows = {n: a["rows"] for n, a in arms.ask_all("evaluate").items()}
        if len(set(rows.values())) > 1:
            raise RuntimeError(
                f"the arms have different numbers of rows: {rows}"
            )
    return {
        "about": {name: about[name] for name in arms},
        "losses": {name: losses[name] + last[name] for name in arms},
        "seconds": seconds,
        "faster": {what: harness.faster(s) for what, s in seconds.items()},
        "memory": memory,
    }


def table(args, result):
    rows = []
    for what, seconds in result["seconds"].items():
        for name, runs in seconds.items():
            spread = harness.Spread.of([1000 * run for run in runs])
            examples = args.batch if what == "train" else 1
            most = result["memory"][what][name]["peak"]
            above = most - result["about"][name]["imported"]
            losses = " ".join(f"{x:.3f}" for x in result["losses"][name])
            row = {"": what, "arm": name}
            row["ms per step (evaluate: row)"] = spread.shown(2)
            row["rows/s"] = f"{1000 * examples / spread.median:.1f}"
            faster = harness.shown(result["faster"][what], name)
            row |= {"ours is faster": faster, "peak MB": f"{most:.0f}"}
            row |= {"above imports": f"{above:.0f}", "losses": losses}
            rows.append(row)
    return rows


def main():
    parser = harness.parser(__doc__, repeats=7)
    add = parser.add_argument
    add("task", choices=tuple(WORK))
    add("--model_size", default="small", choices=tuple(work.SIZES))
    more = "rows of a batch; default: 16, in fine-tuning 32"
    add("--batch", type=int, help=more)
    add("--length", type=int, default=128)
    add("--steps", type=int, default=5, help="steps of each turn")
    add("--precision", default="float32", choices=("float32", "bf16"))
    more = "hparams of this project, as JSON"
    add("--hparams", type=json.loads, default={}, help=more)
    add("--rows", default="full", choices=("full", "sst"))
    add("--eval_batches", type=int, default=27, help="batches of each turn")
    add(
        "--data_dir",
        default=harness.DATA,
        help="folder that contains finetuning_data/sst",
    )
    add(
        "--vocab_file",
        default=harness.VOCAB,
        help="vocabulary for the rows of sst",
    )
    args = parser.parse_args()
    args.batch = args.batch or {"pretraining": 16, "finetuning": 32}[args.task]
    shared = {"precision": args.precision, "hparams": args.hparams}
    with tempfile.TemporaryDirectory() as folder:
        shared["work"] = WORK[args.task](args, folder)
        kinds = KINDS if args.precision == "float32" else KINDS[:4]
        planned = harness.plan(args, kinds, task=args.task.title(), **shared)
        with harness.Arms(args, planned) as arms:
            result = measure(args, arms)
    title = f"{args.task}, {args.model_size}, {args.rows} rows, {args.batch} x"
    title += f" {args.length}, {args.precision}, {args.threads} threads"
    harness.report(args, title, result, table(args, result), failed=arms.failed)


if __name__ == "__main__":
    main()
