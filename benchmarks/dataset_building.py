# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Time building records, from the command line to the last byte written.

The routes take turns: the original's builder (with --original; it has the same
seed), this project's with one process, with two, and with draws by document.
Wall and CPU time are of whole programs, including their start; on a busy
machine the CPU time varies less. Examples of the first two routes are compared
one by one. Two simultaneous builds show the possible gain of a second core.
Memory is the resident peak of a route's largest process; --megabytes and
--copies show whether it grows with the corpus.

  python benchmarks/dataset_building.py --original=ORIGINAL --before=../before
"""

import glob
import itertools
import os
import sys
import tempfile

import harness

SEEDED = """import random, build_pretraining_dataset as original
random.seed(0)
original.main()"""
# Name of a ratio -> slow route, fast route, factor of the slow route's time.
RATIOS = {
    "one process against the original": ("original", "one process", 1),
    "two processes against one": ("one process", "two processes", 1),
    "the same, draws by document": ("one by document", "two by document", 1),
    "two builds that share nothing": ("one process", "two builds at once", 2),
    "now against before, one process": ("one before", "one process", 1),
    "now against before, two": ("two before", "two processes", 1),
}


def copy_corpus(args, target):
    """Copy the corpus or the first lines of its files; return the megabytes."""
    names = sorted(os.listdir(args.corpus_dir))
    share = int(args.megabytes * 1e6 / len(names)) if args.megabytes else -1
    total = 0
    for name in names:
        with open(os.path.join(args.corpus_dir, name), "rb") as source:
            text = source.read(share)
        text = text[: text.rfind(b"\n") + 1]
        for number in range(args.copies):
            total += len(text)
            copy_name = f"{number}_{name}" if number else name
            with open(os.path.join(target, copy_name), "wb") as copy:
                copy.write(text)
    return total / 1e6


def make_routes(args, corpus):
    """Return (command, root) by route, for the routes that --arms names."""
    vocab_file = os.path.abspath(args.vocab_file)
    shared = [f"--corpus-dir={corpus}", f"--vocab-file={vocab_file}"]
    single = [sys.executable, "build_pretraining_dataset.py", *shared]
    double, document = [*single, "--num_processes=2"], "--draws=document"
    routes = {}
    if args.original:
        folder = os.path.abspath(args.original)
        command = [f"{folder}/env/bin/python", "-c", SEEDED, *shared]
        routes["original"] = (command, f"{folder}/electra")
    ours = {
        "one process": single,
        "two processes": double,
        "two builds at once": single,
    }
    ours["one by document"] = [*single, document]
    ours["two by document"] = [*double, document]
    routes |= {name: (route, harness.ROOT) for name, route in ours.items()}
    for name, root in list(harness.checkouts(args).items())[1:]:
        routes |= {f"one {name}": (single, root), f"two {name}": (double, root)}
    if unknown := set(args.arms) - set(routes):
        sys.exit(
            f"error: --arms: unknown routes {', '.join(unknown)}; expected some"
            f" of {', '.join(routes)}. Correct --arms"
        )
    return {name: routes[name] for name in args.arms or routes}


def build(folder, count, command, root):
    """Run a program `count` times at once; return measurements and folders."""
    folders = [tempfile.mkdtemp(dir=folder) + "/records" for _ in range(count)]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    programs = []
    for output_dir in folders:
        arguments = [*command, f"--output-dir={output_dir}"]
        programs.append(harness.Program(arguments, root, quiet))
    measurements = [program.finish() for program in programs]
    how = {"end": max, "processor": sum, "peak": max}
    return {
        n: add(run[n] for run in measurements) for n, add in how.items()
    }, folders


def measure(args, folder, corpus):
    routes = make_routes(args, corpus)
    runs, compared = {name: [] for name in routes}, {}
    for repeat, name in itertools.product(range(args.repeats), routes):
        count = 2 if name == "two builds at once" else 1
        measurements, folders = build(folder, count, *routes[name])
        runs[name].append(measurements)
        if repeat == 0 and name in ("original", "one process"):
            compared[name] = folders[0]
            continue
        # Files are emptied, not deleted: after deletions in the last minutes,
        # ext4 takes a second to create a thousand files.
        for output_dir in folders:
            for shard in os.listdir(output_dir):
                os.truncate(os.path.join(output_dir, shard), 0)
        os.sync()  # Pending writes must not delay the next route.
    same = same_examples(*compared.values()) if len(compared) == 2 else None
    return {"runs": runs, "same_examples": same}


def same_examples(*folders):
    import tensorflow as tf

    def examples(folder):
        paths = sorted(glob.glob(f"{folder}/*.tfrecord*"))
        for record in tf.data.TFRecordDataset(paths).as_numpy_iterator():
            feature = tf.train.Example.FromString(record).features.feature
            yield {k: list(v.int64_list.value) for k, v in feature.items()}

    pairs = itertools.zip_longest(*map(examples, folders))
    return all(example == other_example for example, other_example in pairs)


def main():
    parser = harness.parser(__doc__, repeats=3)
    add = parser.add_argument
    add("--corpus_dir", default=harness.CORPUS)
    add("--vocab_file", default=harness.VOCAB)
    add(
        "--megabytes",
        type=float,
        default=0,
        help="megabytes of the corpus; 0: all",
    )
    add(
        "--copies",
        type=int,
        default=1,
        help="number of copies, which make the corpus larger",
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpus = os.path.join(folder, "corpus")
        os.mkdir(corpus)
        megabytes = copy_corpus(args, corpus)
        result = {"megabytes": megabytes, **measure(args, folder, corpus)}
    rows, seconds = [], {}
    for name, runs in result["runs"].items():
        seconds[name] = [run["end"] for run in runs]
        spread = harness.Spread.of(seconds[name])
        row = {"route": name, "seconds": spread.shown(2)}
        row["MB/s"] = f"{megabytes / spread.median:.2f}"
        processor = harness.Spread.of([run["processor"] for run in runs])
        row["processor seconds"] = processor.shown(2)
        row["peak MB"] = f"{max(run['peak'] for run in runs):.0f}"
        rows.append(row)
    result["ratios"] = {
        what: harness.ratios([factor * s for s in seconds[slow]], seconds[fast])
        for what, (slow, fast, factor) in RATIOS.items()
        if slow in seconds and fast in seconds
    }
    lines = [f"{w}: {s.shown(2, 'x')}" for w, s in result["ratios"].items()]
    lines.append(f"same examples as the original's: {result['same_examples']}")
    title = f"Building records, {megabytes:.1f} MB, 1,000 shards"
    harness.report(args, title, result, rows, "\n".join(lines))


if __name__ == "__main__":
    main()
