# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizer throughput on one core, beside the peers; in Python or in a graph.

Every repeat makes each tokenizer anew (so that ours starts with an empty memo)
and goes once through the lines: each tokenizer in turn does the same chunk.
Time is that of the processor, of all threads of the arm's process; reading
files, making tokenizers and tracing graphs are not timed. `tokenizers` is asked
line by line, by batches, and by batches without offsets, none in parallel. At
the end the ids of every line are compared.

  python benchmarks/tokenization.py --python=PEER/bin/python
  python benchmarks/tokenization.py --in_graph --chunk=512 --max_lines=20000

--in_graph is our tokenizer of exported models beside tensorflow-text's two,
made once, asked with string tensors of --chunk lines.
"""

import json
import os
import random
import statistics
import tempfile

import harness

KINDS = ("ours", "tfmodels", "transformers")
# Nothing in parallel: one core is what is compared.
ONE_CORE = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}


def parse_args():
    """Reads the command line."""
    parser = harness.parser(__doc__, repeats=3)
    add = parser.add_argument
    add("--corpus_dir", default=harness.CORPUS)
    add("--vocab_file", default=harness.VOCAB)
    add("--in_graph", action="store_true")
    add("--chunk", type=int, default=1000, help="lines at a time")
    add("--max_lines", type=int, default=0, help="0: the whole corpus")
    args = parser.parse_args()
    args.threads = 1
    return args


def read_lines(args):
    """All lines, or a sample spread evenly over the corpus."""
    lines = []
    for name in sorted(os.listdir(args.corpus_dir)):
        path = os.path.join(args.corpus_dir, name)
        with open(path, encoding="utf-8") as file:
            lines += file.read().split("\n")
    if args.max_lines and args.max_lines < len(lines):
        chosen = random.Random(0).sample(range(len(lines)), args.max_lines)
        lines = [lines[number] for number in sorted(chosen)]
    return lines


def measure(args, lines, folder):
    """Lets the tokenizers take turns at every chunk of lines."""
    path = os.path.join(folder, "lines.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(lines, file)
    planned = harness.plan(
        args,
        [k for k in KINDS if not args.in_graph or k != "transformers"],
        task="Tokenizers",
        environment=ONE_CORE,
        lines_file=path,
        vocab_file=os.path.abspath(args.vocab_file),
        chunk=args.chunk,
        in_graph=args.in_graph,
    )
    with harness.Arms(args, planned) as arms:
        about = arms.ask_all("describe")
        # Name of a tokenizer -> its arm, and its name there.
        place = {
            f"{arm}: {name}": (arms[arm], name)
            for arm, found in about.items()
            for name in found["names"]
        }
        seconds = {}
        for _ in range(args.repeats):
            arms.ask_all("make")
            place = {k: v for k, v in place.items() if v[0] in arms.values()}
            spent = dict.fromkeys(place, 0.0)
            for start in range(0, len(lines), args.chunk):
                for label, (arm, name) in place.items():
                    spent[label] += arm.ask("chunk", name=name, start=start)
            for label, total in spent.items():
                seconds.setdefault(label, []).append(total)
        different = compare(place)
        return {
            "about": about,
            "lines": len(lines),
            "bytes": sum(len(line.encode()) + 1 for line in lines),
            "seconds": seconds,
            "faster": {
                label: harness.ratios(found, seconds[_same_way(label)])
                for label, found in seconds.items()
                if not label.startswith("ours")
            },
            "different": different,
        }, arms.failed


def _same_way(label):
    way = "tokenize" if label.endswith("tokenize") else "encode"
    return f"ours: {'encode_with_offsets' if 'offsets' in label else way}"


def compare(place):
    """Number of lines that another tokenizer makes other ids or tokens of."""
    digests = {
        label: arm.ask("digests", name=name)
        for label, (arm, name) in place.items()
    }
    return {
        label: sum(
            one != other
            for one, other in zip(found, digests[_same_way(label)], strict=True)
        )
        for label, found in digests.items()
    }


def main():
    """Measures and shows."""
    args = parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result, failed = measure(args, read_lines(args), folder)
    rows = [
        {
            "": label,
            "processor seconds": harness.Spread.of(runs).shown(2),
            "MB/s": f"{result['bytes'] / statistics.median(runs) / 1e6:.2f}",
            "ours is faster": harness.shown(result["faster"], label),
            "lines otherwise": result["different"][label],
        }
        for label, runs in result["seconds"].items()
    ]
    where = f"in the graph by {args.chunk}" if args.in_graph else "in Python"
    size = result["bytes"] / 1e6
    title = f"Tokenizers {where}, {result['lines']:,} lines, {size:.1f} MB"
    harness.report(args, title, result, rows, failed=failed)


if __name__ == "__main__":
    main()
