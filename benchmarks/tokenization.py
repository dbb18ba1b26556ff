# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizer throughput, one process, beside the peers that are installed.

Every repeat makes each tokenizer anew (so that ours starts with an empty memo)
and goes once through the lines, a thousand at a time: each tokenizer in turn
does the same thousand, so that what else the machine does meets all alike. Time
is that of the processor, in this process alone. Reading files and making
tokenizers is not timed. At the end tokens and ids of every line are compared.

  python benchmarks/tokenization.py --vocab-file ../shared/golden/vocab.txt \
      --corpus-dir ../shared/data/pretrain_corpus --output results.json
"""

import argparse
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from electra_tf.text.tokenization import FullTokenizer

BASELINE = "tf-models tokenize"


def ours_tokenize(vocab_file: str) -> Callable:
    return FullTokenizer(vocab_file).tokenize


def ours_encode(vocab_file: str) -> Callable:
    return FullTokenizer(vocab_file).encode


def tf_models_tokenize(vocab_file: str) -> Callable:
    from official.nlp.tools import tokenization

    return tokenization.FullTokenizer(vocab_file).tokenize


def tf_models_encode(vocab_file: str) -> Callable:
    from official.nlp.tools import tokenization

    tokenizer = tokenization.FullTokenizer(vocab_file)
    return lambda line: tokenizer.convert_tokens_to_ids(
        tokenizer.tokenize(line)
    )


def hf_tokenizers_encode(vocab_file: str) -> Callable:
    import tokenizers

    tokenizer = tokenizers.BertWordPieceTokenizer(vocab_file)
    return lambda line: tokenizer.encode(line, add_special_tokens=False).ids


CONTESTANTS = {
    "ours tokenize": ours_tokenize,
    "ours encode": ours_encode,
    BASELINE: tf_models_tokenize,
    "tf-models encode": tf_models_encode,
    "tokenizers encode": hf_tokenizers_encode,
}


def read_lines(folder: str, max_lines: int) -> list[str]:
    """All lines, or a sample spread evenly over the corpus."""
    lines = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            lines += file.read().split("\n")
    if max_lines and max_lines < len(lines):
        chosen = random.Random(0).sample(range(len(lines)), max_lines)
        lines = [lines[number] for number in sorted(chosen)]
    return lines


def seconds_for(tokenize: Callable, lines: list[str]) -> float:
    started = time.process_time()
    for line in lines:
        tokenize(line)
    return time.process_time() - started


def one_pass(
    names: list[str], vocab_file: str, lines: list[str]
) -> dict[str, float]:
    tokenizers = {name: CONTESTANTS[name](vocab_file) for name in names}
    seconds = dict.fromkeys(names, 0.0)
    for start in range(0, len(lines), 1000):
        chunk = lines[start : start + 1000]
        for name, tokenize in tokenizers.items():
            seconds[name] += seconds_for(tokenize, chunk)
    return seconds


def count_differences(
    lines: list[str], one: Callable, other: Callable
) -> dict[str, object]:
    different = [line for line in lines if one(line) != other(line)]
    return {
        "lines": len(lines),
        "different": len(different),
        "examples": different[:5],
    }


def installed(vocab_file: str) -> list[str]:
    names = []
    for name, make in CONTESTANTS.items():
        try:
            make(vocab_file)
            names.append(name)
        except ImportError as error:
            print(f"left out: {name} ({error})", file=sys.stderr)
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus-dir", required=True)
    parser.add_argument("--vocab-file", required=True)
    parser.add_argument("--output", help="JSON file to write")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--max-lines", type=int, default=0, help="0: the whole corpus"
    )
    args = parser.parse_args()
    lines = read_lines(args.corpus_dir, args.max_lines)
    size = sum(len(line.encode()) + 1 for line in lines)
    names = installed(args.vocab_file)
    times: dict[str, list[float]] = {name: [] for name in names}
    for repeat in range(args.repeats):
        for name, seconds in one_pass(names, args.vocab_file, lines).items():
            times[name].append(seconds)
            print(f"{repeat}: {name}: {seconds:.2f} s", flush=True)
    result = {
        "lines": len(lines),
        "bytes": size,
        "repeats": args.repeats,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load_average": os.getloadavg()[0],
        "seconds": times,
        "median_seconds": {n: statistics.median(t) for n, t in times.items()},
    }
    medians = result["median_seconds"]
    if BASELINE in medians:
        add_comparison(result, lines, args.vocab_file)
    print_table(medians, size)
    if args.output:
        with open(args.output, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
            file.write("\n")


def add_comparison(result: dict, lines: list[str], vocab_file: str) -> None:
    ours, peer = ours_tokenize(vocab_file), tf_models_tokenize(vocab_file)
    result["tokens_equal"] = count_differences(lines, ours, peer)
    ours, peer = ours_encode(vocab_file), tf_models_encode(vocab_file)
    result["ids_equal"] = count_differences(lines, ours, peer)
    times = result["seconds"]
    for way in ("tokenize", "encode"):
        ratios = [
            theirs / own
            for theirs, own in zip(
                times[f"tf-models {way}"], times[f"ours {way}"], strict=True
            )
        ]
        result[f"{way}_times_as_fast"] = statistics.median(ratios)
        print(
            f"{way}: {statistics.median(ratios):.1f} times as fast as"
            f" tf-models (repeats: {min(ratios):.1f} to {max(ratios):.1f})"
        )
    for kind in ("tokens", "ids"):
        compared = result[f"{kind}_equal"]
        print(
            f"{kind}: {compared['different']} of {compared['lines']} lines"
            " differ from tf-models'"
        )


def print_table(medians: dict[str, float], size: int) -> None:
    print(f"\n{'median of one pass':<22}{'seconds':>9}{'MB/s':>8}")
    for name, seconds in medians.items():
        print(f"{name:<22}{seconds:>9.2f}{size / seconds / 1e6:>8.2f}")


if __name__ == "__main__":
    main()
