# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writing and reading weights: our formats, tf-models', transformers'.

Each arm holds generator and discriminator of the same sizes and takes its turn
at writing them to a folder and reading them back into a model; optimizer slots
are not among them. Files are read from the system's cache. Per megabyte on
disk, too, since transformers has the embeddings in both of its folders; and it
makes its models anew when it reads, where the others fill those they have.

  python benchmarks/checkpoint_speed.py --python=peers/bin/python \
      --model_size=base --repeats=5 --output=runs/performance
"""

import argparse
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, ROOT)

import comparing  # noqa: E402
import pretraining_work  # noqa: E402
import step_arms  # noqa: E402
import workers  # noqa: E402

KINDS = {
    "ours, TF1": "tf1",
    "ours, native": "native",
    "ours, Hugging Face": "huggingface",
    "tf-models, tf.train.Checkpoint": "tfmodels",
    "transformers": "transformers",
}
SCRIPTS = dict.fromkeys(KINDS.values(), "checkpoint_arms.py")


def parse_args():
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--python", default=sys.executable, help="that has transformers")
    add("--model_size", default="base", choices=("small", "base"))
    add("--repeats", type=int, default=5, help="turns of each arm")
    add("--threads", type=int, default=comparing.usable_cores())
    add("--output", default="", help="directory of JSON, Markdown, PNG")
    return parser.parse_args()


def measure(args, work):
    """Lets the arms take turns; writes and reads by name of the arm."""
    with workers.Arms() as arms, tempfile.TemporaryDirectory() as folder:
        for name, kind in KINDS.items():
            spec = {
                "kind": kind,
                "work": work,
                "precision": "float32",
                "threads": args.threads,
                "root": ROOT,
                "hparams": {},
            }
            arms[name] = step_arms.start(args, SCRIPTS, name, kind, spec)
        about = {name: arm.ask("describe") for name, arm in arms.items()}

        def turn(arm):
            place = os.path.join(folder, arm.name)
            os.makedirs(place, exist_ok=True)
            os.sync()  # What others wrote must not be on its way to the disk.
            return arm.ask("turn", folder=place)

        return about, comparing.take_turns(arms, turn, args.repeats)


def main():
    """Measures and shows."""
    args = parse_args()
    work = pretraining_work.describe(args.model_size, batch=1, length=128)
    about, turns = measure(args, work)
    lines = []
    for name, found in turns.items():
        megabytes = found[0]["bytes"] / 1e6
        cells = [name, f"{megabytes:,.0f}"]
        for way in ("write", "read"):
            spread = comparing.Spread.of([turn[way] for turn in found])
            cells += [
                spread.shown(unit=" s"),
                f"{megabytes / spread.median:,.0f}",
            ]
        lines.append(cells)
    header = ["arm", "MB", "write", "MB/s", "read", "MB/s"]
    text = (
        f"Checkpoints: {args.model_size}, {args.threads} threads\n\n"
        + comparing.table(header, lines)
    )
    result = {"arguments": vars(args), "about": about, "turns": turns}
    comparing.write_report(args.output, "checkpoint_speed", result, text)
    if args.output:
        comparing.draw_bars(
            os.path.join(args.output, "checkpoint_speed.png"),
            f"Writing and reading back, {args.model_size}",
            "seconds",
            {
                f"{name}: {way}": [turn[way] for turn in found]
                for name, found in turns.items()
                for way in ("write", "read")
            },
        )


if __name__ == "__main__":
    main()
