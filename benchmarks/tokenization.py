# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Time tokenizers of this project and of its peers on one core.

Every repeat makes new tokenizers (so that the cache of this project's tokenizer
is empty), which take turns in tokenizing the same chunk of lines. CPU time is
measured for all threads of the arm's process, without reading files, making
tokenizers and tracing graphs; nothing runs in parallel. At the end the ids of
every line are compared.

  python benchmarks/tokenization.py --python=PEER/bin/python
  python benchmarks/tokenization.py --in_graph --chunk=512 --max_lines=20000

--in_graph compares the tokenizer of exported models with two of
tensorflow-text, made once and called with string tensors of --chunk lines.
"""

import json
import os
import pathlib
import random
import tempfile

import harness

KINDS = ("ours", "tfmodels", "transformers")
# Nothing may run in parallel, because one core is measured.
ONE_CORE = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}


def read_lines(args):
    """Return all lines of the corpus, or a random sample in their order."""
    lines = []
    for path in sorted(pathlib.Path(args.corpus_dir).iterdir()):
        lines += path.read_text(encoding="utf-8").split("\n")
    if args.max_lines and args.max_lines < len(lines):
        chosen = random.Random(0).sample(range(len(lines)), args.max_lines)
        lines = [lines[number] for number in sorted(chosen)]
    return lines


def measure(args, arms, count):
    """Return seconds of each turn and digests of all lines, by tokenizer."""
    seconds, digests, about = {}, {}, arms.ask_all("describe")
    for _ in range(args.repeats):
        arms.ask_all("make")
        # label of a tokenizer -> its arm and its name in the arm
        arm_of_label = {
            f"{a}: {n}": (a, n) for a in arms for n in about[a]["names"]
        }
        spent = dict.fromkeys(arm_of_label, 0.0)
        for start in range(0, count, args.chunk):
            for label, (arm, name) in arm_of_label.items():
                spent[label] += arms[arm].ask("chunk", name=name, start=start)
        for label, total in spent.items():
            seconds.setdefault(label, []).append(total)
    for label, (arm, name) in arm_of_label.items():
        digests[label] = arms[arm].ask("digests", name=name)
    return about, seconds, digests


def main():
    parser = harness.parser(__doc__, repeats=3)
    add = parser.add_argument
    add("--corpus_dir", default=harness.CORPUS)
    add("--vocab_file", default=harness.VOCAB)
    add("--in_graph", action="store_true")
    add("--chunk", type=int, default=1000, help="lines of a call")
    more = "maximum number of lines; 0: the whole corpus"
    add("--max_lines", type=int, default=0, help=more)
    args = parser.parse_args()
    args.threads = 1
    lines, rows, result = read_lines(args), [], {"faster": {}, "different": {}}
    shared = {"chunk": args.chunk, "in_graph": args.in_graph}
    shared["vocab_file"] = os.path.abspath(args.vocab_file)
    shared |= {"task": "Tokenizers", "environment": ONE_CORE}
    with tempfile.NamedTemporaryFile("w") as file:
        json.dump(lines, file)
        file.flush()
        kinds = KINDS[:2] if args.in_graph else KINDS
        planned = harness.plan(args, kinds, lines_file=file.name, **shared)
        with harness.Arms(args, planned) as arms:
            about, seconds, digests = measure(args, arms, len(lines))
    size = sum(len(line.encode()) + 1 for line in lines) / 1e6
    for label, runs in seconds.items():
        way = "tokenize" if label.endswith("tokenize") else "encode"
        way = "encode_with_offsets" if "offsets" in label else way
        if not label.startswith("ours"):
            ratio = harness.ratios(runs, seconds[f"ours: {way}"])
            result["faster"][label] = ratio
        pairs = zip(digests[label], digests[f"ours: {way}"], strict=True)
        result["different"][label] = sum(
            digest != base_digest for digest, base_digest in pairs
        )
        spread = harness.Spread.of(runs)
        row = {"": label, "processor seconds": spread.shown(2)}
        row["MB/s"] = f"{size / spread.median:.2f}"
        row["ours is faster"] = harness.shown(result["faster"], label)
        rows.append({**row, "lines otherwise": result["different"][label]})
    where = f"in the graph by {args.chunk}" if args.in_graph else "in Python"
    title = f"Tokenizers {where}, {len(lines):,} lines, {size:.1f} MB"
    result |= {"about": about, "seconds": seconds, "megabytes": size}
    harness.report(args, title, result, rows, failed=arms.failed)


if __name__ == "__main__":
    main()
