# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times building records, from the command line to the last byte written.

The routes take turns: the pure-Python one (plain_example_builder.py), ours
with one process, ours with two, and ours with draws by document. Wall time and
processor time of whole programs, start-up included; on a busy machine the
processor time is the steadier one. The examples of the first two routes are
compared one by one. What two cores can be worth on the machine is shown by two
whole builds that run beside each other and share nothing. Memory is the
resident peak of the largest process of a route; with --megabytes and --copies
it shows whether it grows with the corpus.

The files of records stay until the end, emptied: ext4 looks at every file
deleted in the last minutes before it makes a new one, and a thousand new files
would take a second instead of 20 ms.

  python benchmarks/dataset_building.py --repeats=3 --json=result.json
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, ROOT)


def _reference():
    default = os.path.join(os.path.dirname(ROOT), "shared")
    return os.environ.get("ELECTRA_TF_REFERENCE", default)


def _subset(corpus_dir, megabytes, copies, target):
    """Copies the corpus, or the first lines of each file; several times."""
    names = sorted(os.listdir(corpus_dir))
    share = int(megabytes * 1e6 / len(names)) if megabytes else None
    total = 0
    for name in names:
        with open(os.path.join(corpus_dir, name), "rb") as source:
            text = source.read(-1 if share is None else share)
        text = text[: text.rfind(b"\n") + 1]
        for number in range(copies):
            total += len(text)
            own = f"{number}_{name}" if number else name
            with open(os.path.join(target, own), "wb") as copy:
                copy.write(text)
    return total


def _run(*commands):
    """Wall seconds, processor seconds, MB of the largest process.

    Args:
      *commands: programs that run beside each other.
    """
    started = time.perf_counter()
    programs = [
        subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": ROOT, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        for command in commands
    ]
    processor = largest = 0
    for program in programs:
        # wait4 tells of this program and the workers it waited for, and of no
        # program measured before it.
        _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
        if program.returncode:
            raise subprocess.CalledProcessError(
                program.returncode, program.args
            )
        processor += usage.ru_utime + usage.ru_stime
        largest = max(largest, usage.ru_maxrss / 1000)
    return time.perf_counter() - started, processor, largest


def _empty(folder):
    for name in os.listdir(folder):
        os.truncate(os.path.join(folder, name), 0)
    os.sync()  # What is on its way to the disk must not meet the next run.


def _same_examples(first, second):
    from electra_tf.data.records import decode_example, read_records

    for name in os.listdir(first):
        pairs = zip(
            read_records(os.path.join(first, name)),
            read_records(os.path.join(second, name)),
            strict=True,
        )
        if any(decode_example(a) != decode_example(b) for a, b in pairs):
            return False
    return True


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    data = os.path.join(_reference(), "data")
    parser.add_argument(
        "--corpus_dir", default=os.path.join(data, "pretrain_corpus")
    )
    parser.add_argument(
        "--vocab_file", default=os.path.join(data, "vocab", "vocab.txt")
    )
    parser.add_argument("--megabytes", type=float, default=0, help="0: all")
    parser.add_argument(
        "--copies", type=int, default=1, help="of the corpus, to make it larger"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--plain_repeats",
        type=int,
        help="default: as many as repeats; 0: leave the plain route out",
    )
    parser.add_argument(
        "--routes", nargs="*", default=[], help="only these; default: all"
    )
    parser.add_argument("--num_shards", type=int, default=1000)
    parser.add_argument("--json", default="")
    args = parser.parse_args()
    if args.plain_repeats is None:
        args.plain_repeats = args.repeats
    with tempfile.TemporaryDirectory() as folder:
        corpus = os.path.join(folder, "corpus")
        os.mkdir(corpus)
        size = _subset(args.corpus_dir, args.megabytes, args.copies, corpus)
        result = _measure(args, folder, corpus)
    result["corpus_megabytes"] = round(size / 1e6, 1)
    result["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    result["load_average"] = os.getloadavg()
    _show(result)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


def _measure(args, folder, corpus):
    shared = [
        f"--corpus_dir={corpus}",
        f"--vocab_file={args.vocab_file}",
        f"--num_shards={args.num_shards}",
    ]
    ours = [os.path.join(ROOT, "build_pretraining_dataset.py"), *shared]
    plain = [os.path.join(HERE, "plain_example_builder.py"), *shared]
    two = ["--num_processes=2"]
    routes = {
        "plain": plain,
        "one process": ours,
        "two processes": [*ours, *two],
        "two builds at once": ours,
        "one process, document draws": [*ours, "--draws=document"],
        "two processes, document draws": [*ours, *two, "--draws=document"],
    }
    chosen = args.routes
    for name in chosen:
        if name not in routes:
            sys.exit(f"error: no route {name!r}; there are {list(routes)}")
    routes = {n: c for n, c in routes.items() if not chosen or n in chosen}
    seconds = {name: [] for name in routes}
    processor = {name: [] for name in routes}
    megabytes = {name: 0.0 for name in routes}
    same = None
    for repeat in range(args.repeats):
        for name, command in routes.items():
            if name == "plain" and repeat >= args.plain_repeats:
                continue
            output = os.path.join(folder, f"{name} {repeat}")
            outputs = [output]
            if name == "two builds at once":
                outputs.append(f"{output} again")
            wall, cpu, peak = _run(
                *([*command, f"--output_dir={path}"] for path in outputs)
            )
            seconds[name].append(wall)
            processor[name].append(cpu)
            megabytes[name] = max(megabytes[name], peak)
            if repeat or name not in ("plain", "one process"):
                for path in outputs:  # the others are compared
                    _empty(path)
        if same is None and args.plain_repeats and not chosen:
            same = _same_examples(
                os.path.join(folder, "plain 0"),
                os.path.join(folder, "one process 0"),
            )
    seconds = {name: found for name, found in seconds.items() if found}
    processor = {name: processor[name] for name in seconds}
    medians = {name: statistics.median(s) for name, s in seconds.items()}

    def speedup(slow, fast):
        """The median of the ratios of runs that followed each other."""
        pairs = zip(seconds.get(slow, []), seconds.get(fast, []), strict=False)
        ratios = [one / other for one, other in pairs]
        return statistics.median(ratios) if ratios else None

    at_once = speedup("one process", "two builds at once")
    return {
        "seconds": seconds,
        "processor_seconds": {
            name: statistics.median(s) for name, s in processor.items()
        },
        "medians": medians,
        "peak_megabytes": {name: megabytes[name] for name in seconds},
        "same_examples": same,
        "num_shards": args.num_shards,
        "speedup_one_process": speedup("plain", "one process"),
        "speedup_two_over_one": speedup("one process", "two processes"),
        "speedup_two_over_one_document": speedup(
            "one process, document draws", "two processes, document draws"
        ),
        "speedup_of_two_separate_builds": at_once and 2 * at_once,
    }


def _show(result):
    print(f"{result['corpus_megabytes']} MB, {result['machine']}")
    print(
        f"{'route':32}{'median s':>10}{'MB/s':>8}{'cpu s':>8}{'MB':>7}   runs"
    )
    for name, median in result["medians"].items():
        rate = result["corpus_megabytes"] / median
        runs = " ".join(f"{s:.1f}" for s in result["seconds"][name])
        cpu = result["processor_seconds"][name]
        peak = result["peak_megabytes"][name]
        print(
            f"{name:32}{median:10.2f}{rate:8.2f}{cpu:8.2f}{peak:7.0f}   {runs}"
        )
    print(f"same examples as the plain route: {result['same_examples']}")
    for name in (
        "speedup_one_process",
        "speedup_two_over_one",
        "speedup_two_over_one_document",
        "speedup_of_two_separate_builds",
    ):
        if result[name]:
            print(f"{name}: {result[name]:.2f}x")


if __name__ == "__main__":
    main()
