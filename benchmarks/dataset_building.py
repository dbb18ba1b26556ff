# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times building records, from the command line to the last byte written.

The routes take turns: the pure-Python one (plain_example_builder.py), ours with
one process, with two, and with draws by document. Wall and processor time of
whole programs, start-up included; on a busy machine the latter is the steadier.
The examples of the first two routes are compared one by one. What two cores can
be worth is shown by two whole builds that run beside each other. Memory is the
resident peak of a route's largest process; with --megabytes and --copies it
shows whether it grows with the corpus.

  python benchmarks/dataset_building.py --repeats=3 --before=../before
"""

import itertools
import os
import sys
import tempfile

import harness

# What is said of the routes: (slow, fast, factor).
RATIOS = {
    "one process against plain": ("plain", "one process", 1),
    "two processes against one": ("one process", "two processes", 1),
    "the same, draws by document": ("one by document", "two by document", 1),
    "two builds that share nothing": ("one process", "two builds at once", 2),
    "now against before, one process": ("one before", "one process", 1),
    "now against before, two": ("two before", "two processes", 1),
}


def parse_args():
    """Reads the command line."""
    parser = harness.parser(__doc__, repeats=3)
    add = parser.add_argument
    add("--corpus_dir", default=harness.CORPUS)
    add("--vocab_file", default=harness.VOCAB)
    add("--megabytes", type=float, default=0, help="of the corpus; 0: all")
    add("--copies", type=int, default=1, help="to make the corpus larger")
    add("--num_shards", type=int, default=1000)
    return parser.parse_args()


def copy_corpus(args, target):
    """Copies it, or the first lines of each file; several times; returns MB."""
    names = sorted(os.listdir(args.corpus_dir))
    share = int(args.megabytes * 1e6 / len(names)) if args.megabytes else -1
    total = 0
    for name in names:
        with open(os.path.join(args.corpus_dir, name), "rb") as source:
            text = source.read(share)
        text = text[: text.rfind(b"\n") + 1]
        for number in range(args.copies):
            total += len(text)
            own = f"{number}_{name}" if number else name
            with open(os.path.join(target, own), "wb") as copy:
                copy.write(text)
    return total / 1e6


def make_routes(args, corpus):
    """(command, root) by name, in the order of their turns; --arms chooses."""
    shared = [
        f"--corpus_dir={corpus}",
        f"--vocab_file={args.vocab_file}",
        f"--num_shards={args.num_shards}",
    ]
    plain = [os.path.join(harness.HERE, "plain_example_builder.py"), *shared]
    one = ["build_pretraining_dataset.py", *shared]
    two, document = [*one, "--num_processes=2"], "--draws=document"
    routes = {"plain": plain, "one process": one, "two processes": two}
    routes["two builds at once"] = one
    routes["one by document"] = [*one, document]
    routes["two by document"] = [*two, document]
    routes = {name: (route, harness.ROOT) for name, route in routes.items()}
    for name, root in harness.checkouts(args).items():
        if name != "ours":
            routes[f"one {name}"], routes[f"two {name}"] = (
                (route, root) for route in (one, two)
            )
    for name in args.arms:
        if name not in routes:
            sys.exit(f"error: no route {name!r}; there are {list(routes)}")
    return {name: routes[name] for name in args.arms or routes}


def build(folder, count, command, root):
    """Runs a program `count` times at once; what they took, their outputs."""
    places = [
        os.path.join(tempfile.mkdtemp(dir=folder), "records")
        for _ in range(count)
    ]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, *command]
    programs = [
        harness.Program([*command, f"--output_dir={place}"], root, quiet)
        for place in places
    ]
    found = [program.finish() for program in programs]
    return {
        "end": max(one["end"] for one in found),
        "processor": sum(one["processor"] for one in found),
        "peak": max(one["peak"] for one in found),
    }, places


def measure(args, folder, corpus):
    """Lets the routes take turns; what each run took, by route."""
    routes = make_routes(args, corpus)
    runs, kept = {name: [] for name in routes}, {}
    for repeat, name in itertools.product(range(args.repeats), routes):
        count = 2 if name == "two builds at once" else 1
        found, places = build(folder, count, *routes[name])
        runs[name].append(found)
        if repeat == 0 and name in ("plain", "one process"):
            kept[name] = places[0]
            continue
        # Emptied, not deleted: ext4 looks at every file deleted in the last
        # minutes before it makes a new one, a second for a thousand of them.
        for place in places:
            for shard in os.listdir(place):
                os.truncate(os.path.join(place, shard), 0)
        os.sync()  # What is on its way to the disk must not meet the next.
    same = same_examples(*kept.values()) if len(kept) == 2 else None
    return {"runs": runs, "same_examples": same}


def same_examples(first, second):
    """Whether two folders hold the same examples in the same order."""
    import tensorflow as tf

    def examples(path):
        for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
            feature = tf.train.Example.FromString(record).features.feature
            yield {k: list(v.int64_list.value) for k, v in feature.items()}

    return all(
        one == other
        for name in sorted(os.listdir(first))
        for one, other in itertools.zip_longest(
            *(examples(os.path.join(place, name)) for place in (first, second))
        )
    )


def tables(result):
    """The parts of the report."""
    seconds = {
        name: [run["end"] for run in runs]
        for name, runs in result["runs"].items()
    }
    rows = []
    for name, runs in result["runs"].items():
        spread = harness.Spread.of(seconds[name])
        processor = harness.Spread.of([run["processor"] for run in runs])
        rows.append(
            {
                "route": name,
                "seconds": spread.shown(2),
                "MB/s": f"{result['megabytes'] / spread.median:.2f}",
                "processor seconds": processor.shown(2),
                "peak MB": f"{max(run['peak'] for run in runs):.0f}",
            }
        )
    result["ratios"] = {
        what: harness.ratios([factor * s for s in seconds[slow]], seconds[fast])
        for what, (slow, fast, factor) in RATIOS.items()
        if slow in seconds and fast in seconds
    }
    lines = [f"{w}: {s.shown(2, 'x')}" for w, s in result["ratios"].items()]
    same = f"same examples as the plain route: {result['same_examples']}"
    return rows, "\n".join([same, *lines])


def main():
    """Measures and shows."""
    args = parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpus = os.path.join(folder, "corpus")
        os.mkdir(corpus)
        megabytes = copy_corpus(args, corpus)
        result = {"megabytes": megabytes, **measure(args, folder, corpus)}
    title = f"Building records, {megabytes:.1f} MB, {args.num_shards} shards"
    harness.report(args, title, result, *tables(result))


if __name__ == "__main__":
    main()
