# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From raw texts to class probabilities: ours beside transformers.

One classifier with fresh weights in three forms: a fine-tuned folder asked
through `Predictor`, its exported SavedModel asked through `serve_text`, and a
Hugging Face folder asked through AutoTokenizer (the fast one) and PyTorch.
Sentences are those of SST, in the order of the file; a batch is padded to its
longest. Probabilities are compared first. The arms take turns with the same
texts; each turn has texts that none has met.

  python benchmarks/prediction.py --python=peers/bin/python \
      --data_dir=../shared/data --repeats=9 --output=runs/performance

Ours with other variables, of other checkouts, the peer with other settings:

  --environments='{"oneDNN": {"TF_ENABLE_ONEDNN_OPTS": "1"}}'
  --checkouts='{"before": "../before"}'
  --peer_variants='{"compiled": {"compile": true}}'

The environment of transformers: benchmarks/requirements-transformers.txt.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, ROOT)

import comparing  # noqa: E402
import prediction_folder  # noqa: E402
import workers  # noqa: E402

PEER = "transformers"


def parse_args():
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def numbers(text):
        return [int(name) for name in text.split(",")]

    default = os.path.join(os.path.dirname(ROOT), "shared")
    data = os.environ.get("ELECTRA_TF_REFERENCE", default)
    data = os.path.join(data, "data")
    add = parser.add_argument
    add("--python", default="", help="that has transformers; '': no peer")
    add("--data_dir", default=data, help="holds finetuning_data/sst")
    add("--vocab_file", default=os.path.join(data, "vocab", "vocab.txt"))
    add("--split", default="train", help="of SST, whose sentences are asked")
    add("--model_size", default="small")
    add("--length", type=int, default=128, help="most wordpieces of a text")
    add("--batches", type=numbers, default=[1, 32], help="sizes, by commas")
    add("--texts", type=int, default=192, help="of each turn")
    add("--repeats", type=int, default=9, help="turns of each arm")
    add("--threads", type=int, default=comparing.usable_cores())
    add("--environments", type=json.loads, default={}, help="JSON: name, dict")
    add("--checkouts", type=json.loads, default={}, help="JSON: name, path")
    add("--peer_variants", type=json.loads, default={}, help="JSON")
    add("--output", default="", help="directory of JSON, Markdown, PNG")
    return parser.parse_args()


def read_texts(args):
    """The sentences, in the order of the file."""
    path = os.path.join(
        args.data_dir, "finetuning_data", "sst", f"{args.split}.tsv"
    )
    with open(path, encoding="utf-8") as file:
        return [line.split("\t")[0].strip() for line in list(file)[1:]]


def start_arms(args, paths):
    """The workers by name, in the order of their turns."""
    spec = {
        "paths": paths,
        "threads": args.threads,
        "length": args.length,
        "root": ROOT,
    }
    planned = {}

    def plan(suffix, root=ROOT, environment=None):
        for kind in ("predictor", *prediction_folder.SERVED):
            own = {**spec, "kind": kind, "root": root}
            planned[kind + suffix] = (
                sys.executable,
                "prediction_ours.py",
                own,
                environment or {},
            )

    plan("")
    for name, environment in args.environments.items():
        plan(f", {name}", environment=environment)
    for name, path in args.checkouts.items():
        plan(f", {name}", os.path.abspath(path))
    if args.python:
        cores = {"OMP_NUM_THREADS": str(args.threads)}
        script = "prediction_transformers.py"
        for name, own in {"": {}, **args.peer_variants}.items():
            name = f"{PEER}, {name}" if name else PEER
            planned[name] = (args.python, script, {**spec, **own}, cores)
    arms = workers.Arms()
    try:
        for name, (python, script, own, environment) in planned.items():
            arms[name] = workers.Worker(
                name, python, os.path.join(HERE, script), own, environment
            )
    except BaseException:
        arms.__exit__()
        raise
    return arms


def measure(args, texts, paths):
    """Compares the answers, then lets the arms take turns."""
    with start_arms(args, paths) as arms:
        about = {name: arm.ask("describe") for name, arm in arms.items()}
        differences = compare(arms, texts[:64])
        seconds = {}
        for size in args.batches:
            waiting = iter(turns_of(args, texts, size))
            taken = {}

            def run(arm, size=size, waiting=waiting, taken=taken):
                # Every arm of a turn gets the same texts.
                if arm.name in taken or not taken:
                    taken.clear()
                    taken["batches"] = next(waiting)
                taken[arm.name] = True
                found = arm.ask("run", batches=taken["batches"])
                return statistics.median(found)

            seconds[size] = comparing.take_turns(arms, run, args.repeats, 2)
        memory = {name: arm.ask("memory")["peak"] for name, arm in arms.items()}
    return {
        "about": about,
        "largest_difference": differences,
        "seconds": seconds,
        "peak_megabytes": memory,
    }


def compare(arms, texts):
    """Largest difference of each arm's probabilities from the first's."""
    answers = {
        n: arm.ask("probabilities", texts=texts) for n, arm in arms.items()
    }
    first = next(iter(answers.values()))
    if len({round(row[0], 6) for row in first}) < len(texts) // 2:
        raise RuntimeError("the model says the same of every text")
    return {
        name: max(
            abs(a - b)
            for ours, theirs in zip(first, found, strict=True)
            for a, b in zip(ours, theirs, strict=True)
        )
        for name, found in answers.items()
    }


def turns_of(args, texts, size):
    """Yields a turn's batches, of texts that were not asked before."""
    place = 64
    while True:
        each = max(1, args.texts // size) * size
        if place + each > len(texts):
            place = 0
        chosen = texts[place : place + each]
        place += each
        yield [chosen[i : i + size] for i in range(0, each, size)]


def report(args, result):
    """Shows the tables; writes the files where asked."""
    peers = [name for name in result["about"] if name.startswith(PEER)]
    lines, drawn = [], {}
    result["times_as_fast"] = {}
    for size, seconds in result["seconds"].items():
        rows = []
        for name, runs in seconds.items():
            thousandths = [1000 * run for run in runs]
            faster = ""
            if peers and name not in peers:
                spread = comparing.ratios(seconds[PEER], runs)
                result["times_as_fast"][f"{name}, batch {size}"] = spread
                faster = spread.shown(2, "x")
            rows.append(
                [
                    size,
                    name,
                    comparing.Spread.of(thousandths).shown(2),
                    f"{1000 * size / statistics.median(thousandths):.0f}",
                    faster,
                ]
            )
            drawn[f"{name}, batch {size}"] = [ms / size for ms in thousandths]
        lines += rows
    header = ["batch", "arm", "ms per call", "texts/s", f"against {PEER}"]
    rows = [
        [
            name,
            f"{about['start']:.1f}",
            f"{result['peak_megabytes'][name]:.0f}",
            f"{result['largest_difference'][name]:.1e}",
            ", ".join(f"{k} {v}" for k, v in about["versions"].items()),
        ]
        for name, about in result["about"].items()
    ]
    title = (
        f"Raw text to probabilities: {args.model_size}, SST,"
        f" {args.threads} threads"
    )
    text = (
        f"{title}; medians of {args.repeats} turns of {args.texts} texts"
        " (lowest to highest).\n\n"
        + comparing.table(header, lines)
        + "\n"
        + comparing.table(
            ["arm", "start, s", "peak, MB", "largest difference", "versions"],
            rows,
        )
    )
    comparing.write_report(args.output, "prediction", result, text)
    if args.output:
        path = os.path.join(args.output, "prediction.png")
        comparing.draw_bars(path, title, "milliseconds per text", drawn)


def main():
    """Measures and shows."""
    args = parse_args()
    texts = read_texts(args)
    with tempfile.TemporaryDirectory() as folder:
        spec = {
            "root": ROOT,
            "folder": folder,
            "vocab_file": os.path.abspath(args.vocab_file),
            "data_dir": os.path.abspath(args.data_dir),
            "model_size": args.model_size,
            "length": args.length,
        }
        script = os.path.join(HERE, "prediction_folder.py")
        try:
            maker = workers.Worker("folder", sys.executable, script, spec)
            paths = maker.ask("paths")
            maker.close()
            result = measure(args, texts, paths)
        except workers.ArmError as error:
            sys.exit(f"error: {error}")
    report(args, {"arguments": vars(args), **result})


if __name__ == "__main__":
    main()
