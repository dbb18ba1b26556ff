# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Command line and workers that the comparisons of a step have in common."""

import argparse
import json
import os
import sys

import comparing
import workers

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def names(text):
    """A list written with commas."""
    return [name for name in text.split(",") if name]


def parser(description, scripts, batch):
    """Begins a command line: the flags of every comparison of a step.

    Args:
      description: of the program.
      scripts: file of each kind of arm.
      batch: the default.
    """
    made = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("--arms", type=names, default=list(scripts), help="by commas")
    add("--python", default=sys.executable, help="that has transformers")
    add("--model_size", default="small", choices=("small", "base"))
    add("--batch", type=int, default=batch)
    add("--length", type=int, default=128)
    add("--steps", type=int, default=5, help="of each turn")
    add("--repeats", type=int, default=7, help="turns of each arm")
    add("--precision", default="float32", choices=("float32", "bf16"))
    add("--threads", type=int, default=comparing.usable_cores())
    add("--hparams", type=json.loads, default={}, help="JSON, of ours")
    add("--variants", type=json.loads, default={}, help="JSON: name, hparams")
    add("--checkouts", type=json.loads, default={}, help="JSON: name, path")
    add("--peer_variants", type=json.loads, default={}, help="JSON")
    add("--output", default="", help="directory of JSON, Markdown, PNG")
    return made


def parse(made, scripts):
    """Reads the command line; an unknown arm is an error."""
    args = made.parse_args()
    for name in args.arms:
        if name not in scripts:
            made.error(f"unknown arm {name}; there are {', '.join(scripts)}")
    return args


def planned(args, **shared):
    """(kind, spec) of each arm by name, in the order of their turns.

    Args:
      args: the command line.
      **shared: what else every spec holds.
    """
    shared |= {
        "precision": args.precision,
        "threads": args.threads,
        "root": ROOT,
        "hparams": args.hparams,
    }
    found = {name: (name, shared) for name in args.arms}
    for name, hparams in args.variants.items():
        own = {"hparams": {**args.hparams, **hparams}}
        found[f"ours, {name}"] = ("ours", {**shared, **own})
    for name, path in args.checkouts.items():
        own = {"root": os.path.abspath(path)}
        found[f"ours, {name}"] = ("ours", {**shared, **own})
    for name, own in args.peer_variants.items():
        kind = own.get("arm", "transformers")
        found[f"{kind}, {name}"] = (kind, {**shared, **own})
    return found


def start(args, scripts, name, kind, spec):
    """Starts one arm.

    Raises:
      ArmError: if it cannot prepare itself.
    """
    return workers.Worker(
        name,
        args.python if kind == "transformers" else sys.executable,
        os.path.join(HERE, scripts[kind]),
        spec,
        {"OMP_NUM_THREADS": str(args.threads), **spec.get("environment", {})},
    )
