# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Throughput of the in-graph tokenizer beside tensorflow-text's two.

Each tokenizer in turn does the same batch, so that what else the machine does
meets all alike. Time is that of the processor, in this process alone, with one
thread. Making and tracing the tokenizers is not timed; one batch of each kind
is done beforehand. With `--check` the ids of every line are compared with the
Python tokenizer's.

  python benchmarks/graph_tokenization.py \
      --vocab-file ../shared/golden/vocab.txt \
      --corpus-dir ../shared/data/pretrain_corpus --max-lines 20000 --check
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
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf
import tensorflow_text as tf_text

from electra_tf.text.graph_tokenization import GraphTokenizer
from electra_tf.text.tokenization import FullTokenizer

BASELINES = ("BertTokenizer", "FastBertTokenizer")
STRINGS = [tf.TensorSpec([None], tf.string)]


def contestants(vocab_file: str) -> dict[str, Callable]:
    with open(vocab_file, encoding="utf-8") as file:
        vocab = file.read().splitlines()
    graph = GraphTokenizer(vocab_file)
    bert = tf_text.BertTokenizer(
        vocab_file, token_out_type=tf.int32, lower_case=True
    )
    fast = tf_text.FastBertTokenizer(
        vocab, token_out_type=tf.int32, lower_case_nfd_strip_accents=True
    )

    def bert_encode(strings: tf.Tensor) -> tf.RaggedTensor:
        return bert.tokenize(strings).merge_dims(1, 2)

    def fast_encode(strings: tf.Tensor) -> tf.RaggedTensor:
        return fast.tokenize(strings)

    return {
        "ours": graph.encode.get_concrete_function(),
        "ours, offsets": graph.encode_with_offsets.get_concrete_function(),
        BASELINES[0]: tf.function(
            bert_encode, input_signature=STRINGS
        ).get_concrete_function(),
        BASELINES[1]: tf.function(
            fast_encode, input_signature=STRINGS
        ).get_concrete_function(),
    }


def read_lines(folder: str) -> list[bytes]:
    lines = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            lines += file.read().split(b"\n")
    return [line for line in lines if line]


def sample(lines: list[bytes], max_lines: int) -> list[bytes]:
    """All lines, or some spread evenly over the corpus."""
    if not max_lines or max_lines >= len(lines):
        return lines
    chosen = random.Random(0).sample(range(len(lines)), max_lines)
    return [lines[number] for number in sorted(chosen)]


def one_pass(
    functions: dict[str, Callable], batches: list[tf.Tensor]
) -> dict[str, float]:
    seconds = dict.fromkeys(functions, 0.0)
    for batch in batches:
        for name, function in functions.items():
            started = time.process_time()
            function(batch)
            seconds[name] += time.process_time() - started
    return seconds


def measure(
    functions: dict[str, Callable],
    lines: list[bytes],
    batch_size: int,
    repeats: int,
) -> dict:
    batches = [
        tf.constant(lines[start : start + batch_size])
        for start in range(0, len(lines), batch_size)
    ]
    one_pass(functions, batches[:1])
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, seconds in one_pass(functions, batches).items():
            times[name].append(seconds)
    size = sum(map(len, lines))
    rates = {n: size / statistics.median(t) / 1e6 for n, t in times.items()}
    ratios = {
        f"{name} / {baseline}": statistics.median(
            theirs / own
            for own, theirs in zip(times[name], times[baseline], strict=True)
        )
        for name in functions
        if name not in BASELINES
        for baseline in BASELINES
    }
    return {
        "batch_size": batch_size,
        "lines": len(lines),
        "bytes": size,
        "seconds": times,
        "megabytes_a_second": rates,
        "times_as_fast": ratios,
    }


def count_differences(vocab_file: str, lines: list[bytes]) -> int:
    graph, plain = GraphTokenizer(vocab_file), FullTokenizer(vocab_file)
    different = 0
    for start in range(0, len(lines), 2000):
        some = lines[start : start + 2000]
        pairs = zip(some, graph.encode(some).to_list(), strict=True)
        different += sum(plain.encode(line) != ids for line, ids in pairs)
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus-dir", required=True)
    parser.add_argument("--vocab-file", required=True)
    parser.add_argument("--output", help="JSON file to write")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--batch-sizes", default="32,512")
    parser.add_argument("--check", action="store_true")
    parser.add_argument(
        "--max-lines", type=int, default=0, help="0: the whole corpus"
    )
    args = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    every = read_lines(args.corpus_dir)
    kinds = {
        "all lines": sample(every, args.max_lines),
        "lines not in ASCII": sample(
            [line for line in every if not line.isascii()], args.max_lines
        ),
    }
    functions = contestants(args.vocab_file)
    result = {
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, one used",
        "load_average": os.getloadavg()[0],
        "repeats": args.repeats,
    }
    for kind, lines in kinds.items():
        for batch_size in map(int, args.batch_sizes.split(",")):
            measured = measure(functions, lines, batch_size, args.repeats)
            result[f"{kind}, batches of {batch_size}"] = measured
            print_table(kind, measured)
    if args.check:
        result["different"] = count_differences(args.vocab_file, every)
        print(
            f"ids of {result['different']} of {len(every)} lines differ from"
            " the Python tokenizer's"
        )
    if args.output:
        with open(args.output, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
            file.write("\n")


def print_table(kind: str, measured: dict) -> None:
    print(
        f"\n{measured['lines']} {kind}, {measured['bytes'] / 1e6:.1f} MB,"
        f" in batches of {measured['batch_size']}"
    )
    for name, rate in measured["megabytes_a_second"].items():
        print(f"  {name:<20}{rate:>8.1f} MB/s")
    for name, ratio in measured["times_as_fast"].items():
        print(f"  {name:<40}{ratio:>6.2f} times as fast")


if __name__ == "__main__":
    main()
