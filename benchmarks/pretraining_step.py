# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A pre-training step: ours, tf-models-official's, transformers'.

One step is the forward pass of generator and discriminator with sampling
between them, backward, clipping by global norm, Adam with weight decay; with
dropout 0.1, the same sizes and one and the same batch of full rows. The arms
take turns. Measured besides: peak memory, the machine's matrix peak, the
share of it that a step reaches.

  python benchmarks/pretraining_step.py --python=peers/bin/python \
      --model_size=small --batch=16 --length=128 --steps=5 --repeats=9 \
      --output=runs/performance

Further arms of ours with other hparams, of other checkouts (before and
after), of the peer with other settings:

  --variants='{"recompute": {"recompute_grad": true}}'
  --checkouts='{"before": "../before"}'
  --peer_variants='{"compiled": {"compile": true},
      "inverse": {"sampling": "inverse"}, "oneDNN": {"arm": "tfmodels",
      "environment": {"TF_ENABLE_ONEDNN_OPTS": "1"}}}'

Scaling over batch, length and width, with fitted exponents: --scaling.
Time by kind of op of every arm of ours: --profile. The environment of
transformers: benchmarks/requirements-transformers.txt.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, ROOT)

import comparing  # noqa: E402
import pretraining_report  # noqa: E402
import pretraining_work  # noqa: E402
import step_arms  # noqa: E402
import workers  # noqa: E402

SCRIPTS = {
    "ours": "pretraining_ours.py",
    "tfmodels": "pretraining_tfmodels.py",
    "transformers": "pretraining_transformers.py",
}


def parse_args():
    """Reads the command line."""

    def numbers(text):
        return [int(name) for name in step_arms.names(text)]

    parser = step_arms.parser(__doc__, SCRIPTS, batch=16)
    add = parser.add_argument
    add("--profile", action="store_true")
    add("--scaling", action="store_true")
    add("--batches", type=numbers, default=[8, 16, 32, 64, 128])
    add("--lengths", type=numbers, default=[128, 256, 512])
    add("--widths", type=numbers, default=[128, 256, 512, 768])
    return step_arms.parse(parser, SCRIPTS)


def start(args, work, arms):
    """Starts every arm and lets it make its first two steps.

    Args:
      args: the command line.
      work: see `pretraining_work.describe`.
      arms: the workers that work are put there.

    Returns:
      By name: what the others say of themselves, with `losses` and the peak
      `memory` so far; and the errors of those that do not work.
    """
    about, failed = {}, {}
    for name, (kind, spec) in step_arms.planned(args, work=work).items():
        try:
            arms[name] = step_arms.start(args, SCRIPTS, name, kind, spec)
            about[name] = arms[name].ask("describe")
            # Traces and first allocations belong to the start.
            about[name]["losses"] = arms[name].ask("losses", steps=2)
            about[name]["memory"] = arms[name].ask("memory")["peak"]
        except workers.ArmError as error:
            failed[name] = str(error)
            if name in arms:
                arms.pop(name).close()
    return about, failed


def measure(args, work):
    """Lets the arms take turns at one piece of work."""
    with workers.Arms() as arms:
        about, failed = start(args, work, arms)
        # Memory before the matrix products, whose large operands would stay in
        # TensorFlow's pool and be counted as the steps'.
        steps = {}
        for name, arm in arms.items():
            arm.ask("forget_peak")
            arm.ask("run", steps=args.steps)
            steps[name] = arm.ask("memory")["peak"]
        before = matrix_rates(args, arms)
        seconds = comparing.take_turns(
            arms, lambda arm: arm.ask("run", steps=args.steps), args.repeats
        )
        last = {name: arm.ask("losses", steps=1) for name, arm in arms.items()}
        after = matrix_rates(args, arms)
        return {
            "work": work,
            "flops": work["flops"],
            "about": about,
            "failed": failed,
            "losses": {
                name: [*about[name]["losses"], *last[name]] for name in arms
            },
            "seconds": seconds,
            "memory": {
                name: {
                    "imported": about[name]["imported"],
                    "start": about[name]["memory"],
                    "steps": steps[name],
                }
                for name in arms
            },
            "matrix_rates": {
                name: {
                    shape: max(rate, after[name].get(shape, 0))
                    for shape, rate in rates.items()
                }
                for name, rates in before.items()
            },
            "profile": profiles(args, arms),
        }


def matrix_rates(args, arms):
    """Rates of matrix products, by library and shape."""
    return {
        name: arms[name].ask("matrix_rates", precision=args.precision)
        for name in ("ours", "transformers")
        if name in arms
    }


def profiles(args, arms):
    """Time by kind of op of every arm of ours, where asked."""
    if not args.profile:
        return {}
    return {
        name: arm.ask("profile", steps=args.steps)
        for name, arm in arms.items()
        if name.startswith("ours")
    }


def scale(args):
    """Measures along each axis; a point that fails is kept as its error."""
    points = {
        "batch": [(n, (args.model_size, n, args.length)) for n in args.batches],
        "length": [(n, (args.model_size, args.batch, n)) for n in args.lengths],
        "width": [
            (n, (args.model_size, args.batch, args.length, n))
            for n in args.widths
        ],
    }
    found, known = {}, {}
    for axis, places in points.items():
        found[axis] = []
        for value, place in places:
            work = pretraining_work.describe(*place)
            key = json.dumps({**work, "hparams": None}, sort_keys=True)
            if key not in known:
                print(f"{axis} {value} ...", flush=True)
                try:
                    known[key] = measure(args, work)
                except workers.ArmError as error:
                    known[key] = {"error": str(error)}
            found[axis].append({"value": value, **known[key]})
    return found


def main():
    """Measures and shows."""
    args = parse_args()
    title = (
        f"{args.model_size}, batch {args.batch}, length {args.length},"
        f" {args.precision}, {args.threads} threads"
    )
    result = {"arguments": vars(args)}
    if args.scaling:
        result["scaling"] = scale(args)
        pretraining_report.write_scaling(args.output, title, result)
        return
    work = pretraining_work.describe(args.model_size, args.batch, args.length)
    try:
        result |= measure(args, work)
    except workers.ArmError as error:
        sys.exit(f"error: {error}")
    pretraining_report.write_step(args.output, title, result)


if __name__ == "__main__":
    main()
