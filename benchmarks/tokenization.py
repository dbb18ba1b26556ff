# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizer throughput on one core, beside the peers.

Every repeat makes each tokenizer anew (so that ours starts with an empty memo)
and goes once through the lines, a thousand at a time: each tokenizer in turn
does the same thousand, so that what else the machine does meets all alike. Time
is that of the processor, of all threads of the tokenizer's process. Reading
files and making tokenizers is not timed. Hugging Face's `tokenizers` is asked
line by line, by batches, and by batches without offsets, none in parallel;
tensorflow-text by batches. At the end the ids of every line are compared.

  python benchmarks/tokenization.py --python=peers/bin/python --repeats=5 \
      --corpus-dir=../shared/data/pretrain_corpus \
      --vocab-file=../shared/data/vocab/vocab.txt --output=runs/performance

--python is an interpreter that has `tokenizers`, where this one has not
(benchmarks/requirements-transformers.txt).
"""

import argparse
import os
import random
import statistics
import sys
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, ROOT)

import comparing  # noqa: E402
import workers  # noqa: E402

CHUNK = 1000
OURS = "ours encode"
# Nothing in parallel: one core is what is compared.
ONE_CORE = {
    "TOKENIZERS_PARALLELISM": "false",
    "RAYON_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


def ours_tokenize(vocab_file):
    from electra_tf.text.tokenization import FullTokenizer

    tokenize = FullTokenizer(vocab_file).tokenize
    return lambda lines: [tokenize(line) for line in lines]


def ours_encode(vocab_file):
    from electra_tf.text.tokenization import FullTokenizer

    encode = FullTokenizer(vocab_file).encode
    return lambda lines: [encode(line) for line in lines]


def tf_models_tokenize(vocab_file):
    from official.nlp.tools import tokenization

    tokenize = tokenization.FullTokenizer(vocab_file).tokenize
    return lambda lines: [tokenize(line) for line in lines]


def tf_models_encode(vocab_file):
    from official.nlp.tools import tokenization

    tokenizer = tokenization.FullTokenizer(vocab_file)
    return lambda lines: [
        tokenizer.convert_tokens_to_ids(tokenizer.tokenize(line))
        for line in lines
    ]


def tensorflow_text_encode(vocab_file):
    import tensorflow as tf
    import tensorflow_text

    with open(vocab_file, encoding="utf-8") as file:
        words = file.read().splitlines()
    tokenizer = tensorflow_text.FastBertTokenizer(
        words, token_out_type=tf.int32, lower_case_nfd_strip_accents=True
    )

    def encode(lines):
        return tokenizer.tokenize(tf.constant(lines)).merge_dims(1, -1)

    return encode


def _hf_tokenizer(vocab_file):
    import tokenizers

    return tokenizers.BertWordPieceTokenizer(vocab_file)


def tokenizers_encode(vocab_file):
    encode = _hf_tokenizer(vocab_file).encode
    return lambda lines: [
        encode(line, add_special_tokens=False).ids for line in lines
    ]


def tokenizers_encode_batch(vocab_file):
    encode = _hf_tokenizer(vocab_file).encode_batch
    return lambda lines: [
        found.ids for found in encode(lines, add_special_tokens=False)
    ]


def tokenizers_encode_batch_fast(vocab_file):
    encode = _hf_tokenizer(vocab_file)._tokenizer.encode_batch_fast
    return lambda lines: [
        found.ids for found in encode(lines, add_special_tokens=False)
    ]


CONTESTANTS = {
    "ours tokenize": ours_tokenize,
    OURS: ours_encode,
    "tf-models tokenize": tf_models_tokenize,
    "tf-models encode": tf_models_encode,
    "tensorflow-text encode": tensorflow_text_encode,
    "tokenizers encode": tokenizers_encode,
    "tokenizers encode_batch": tokenizers_encode_batch,
    "tokenizers encode_batch_fast": tokenizers_encode_batch_fast,
}


class Arm:
    """The tokenizers that one interpreter has.

    Args:
      spec: `corpus_dir`, `max_lines`, `vocab_file`, `names`.
    """

    def __init__(self, spec):
        self._vocab_file = spec["vocab_file"]
        self._lines = read_lines(spec["corpus_dir"], spec["max_lines"])
        self._names, self._left_out = [], {}
        for name in spec["names"]:
            try:
                CONTESTANTS[name](self._vocab_file)
                self._names.append(name)
            except ImportError as error:
                self._left_out[name] = str(error)
        self._made = {}

    def describe(self):
        """Names of what is there, versions, size of the corpus."""
        return {
            "names": self._names,
            "left_out": self._left_out,
            "versions": comparing.versions(
                "tf-models-official", "tensorflow-text", "tokenizers"
            ),
            "lines": len(self._lines),
            "bytes": sum(len(line.encode()) + 1 for line in self._lines),
        }

    def make(self):
        """Makes all tokenizers anew."""
        self._made = {
            name: CONTESTANTS[name](self._vocab_file) for name in self._names
        }

    def chunk(self, name, start):
        """Seconds of the processor for the lines from `start` on."""
        lines = self._lines[start : start + CHUNK]
        started = time.process_time()
        self._made[name](lines)
        return time.process_time() - started

    def digests(self, name):
        """A number for each line, made of its ids or tokens."""
        found = []
        for start in range(0, len(self._lines), CHUNK):
            ids = self._made[name](self._lines[start : start + CHUNK])
            ids = ids.to_list() if hasattr(ids, "to_list") else ids
            found += [zlib.crc32(repr(line).encode()) for line in ids]
        return found

    def show(self, name, number):
        """A line, and what a tokenizer makes of it."""
        line = self._lines[number]
        found = self._made[name]([line])
        found = found.to_list() if hasattr(found, "to_list") else found
        return [line, found[0]]


def read_lines(folder, max_lines):
    """All lines, or a sample spread evenly over the corpus."""
    lines = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            lines += file.read().split("\n")
    if max_lines and max_lines < len(lines):
        chosen = random.Random(0).sample(range(len(lines)), max_lines)
        lines = [lines[number] for number in sorted(chosen)]
    return lines


def parse_args():
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--corpus-dir", required=True)
    add("--vocab-file", required=True)
    add("--python", default="", help="interpreter that has tokenizers")
    add("--repeats", type=int, default=3)
    add("--max-lines", type=int, default=0, help="0: the whole corpus")
    add("--output", default="", help="directory of JSON, Markdown, PNG")
    return parser.parse_args()


def start_arms(args):
    """A worker for each interpreter."""
    spec = {
        "corpus_dir": args.corpus_dir,
        "vocab_file": args.vocab_file,
        "max_lines": args.max_lines,
    }
    theirs = [name for name in CONTESTANTS if name.startswith("tokenizers")]
    here = [n for n in CONTESTANTS if not args.python or n not in theirs]
    planned = {sys.executable: here}
    if args.python:
        planned[args.python] = theirs
    arms = workers.Arms()
    for number, (python, names) in enumerate(planned.items()):
        arms[f"interpreter {number}"] = workers.Worker(
            python,
            python,
            os.path.abspath(__file__),
            {**spec, "names": names},
            ONE_CORE,
        )
    return arms


def measure(args):
    """Lets the tokenizers take turns at every thousand lines."""
    with start_arms(args) as arms:
        about = {name: arm.ask("describe") for name, arm in arms.items()}
        for found in about.values():
            for name, error in found["left_out"].items():
                print(f"left out: {name} ({error})", file=sys.stderr)
        place = {
            name: arms[arm]
            for arm, found in about.items()
            for name in found["names"]
        }
        place = {name: place[name] for name in CONTESTANTS if name in place}
        count = next(iter(about.values()))["lines"]
        times = {name: [] for name in place}
        for _ in range(args.repeats):
            for arm in arms.values():
                arm.ask("make")
            seconds = dict.fromkeys(place, 0.0)
            for start in range(0, count, CHUNK):
                for name, arm in place.items():
                    seconds[name] += arm.ask("chunk", name=name, start=start)
            for name, spent in seconds.items():
                times[name].append(spent)
        return {
            "about": about,
            "seconds": times,
            "different": compare(place),
        }


def compare(place):
    """Lines that a peer makes other ids (or tokens) of than we do."""
    found = {}
    for way in ("tokenize", "encode"):
        ours = f"ours {way}"
        mine = place[ours].ask("digests", name=ours)
        for name, arm in place.items():
            if name == ours or f" {way}" not in name:
                continue
            theirs = arm.ask("digests", name=name)
            other = [
                i
                for i, pair in enumerate(zip(mine, theirs, strict=True))
                if pair[0] != pair[1]
            ]
            found[name] = {
                "lines": len(other),
                "examples": [
                    {
                        "ours": place[ours].ask("show", name=ours, number=i),
                        "theirs": arm.ask("show", name=name, number=i)[1],
                    }
                    for i in other[:5]
                ],
            }
    return found


def report(args, result):
    """Shows the table; writes the files where asked."""
    about = next(iter(result["about"].values()))
    times, rows = result["seconds"], []
    result["ours_times_as_fast"] = {}
    for name, seconds in times.items():
        way = "ours tokenize" if name.endswith("tokenize") else OURS
        faster = different = ""
        if not name.startswith("ours"):
            spread = comparing.ratios(seconds, times[way])
            result["ours_times_as_fast"][name] = spread
            faster = spread.shown(2, "x")
            different = f"{result['different'][name]['lines']:,}"
        rate = about["bytes"] / statistics.median(seconds) / 1e6
        rows.append(
            [
                name,
                comparing.Spread.of(seconds).shown(2),
                f"{rate:.2f}",
                faster,
                different,
            ]
        )
    title = f"Tokenizers, {about['bytes'] / 1e6:.1f} MB, one core"
    header = [
        "",
        "processor seconds",
        "MB/s",
        "ours is faster",
        f"of {about['lines']:,} lines, otherwise",
    ]
    text = (
        f"{title}: medians of {args.repeats} passes (lowest to highest).\n\n"
        f"{comparing.table(header, rows)}"
    )
    comparing.write_report(args.output, "tokenization", result, text)
    if args.output:
        path = os.path.join(args.output, "tokenization.png")
        comparing.draw_bars(path, title, "processor seconds", times)


def main():
    """Measures and shows."""
    args = parse_args()
    try:
        result = measure(args)
    except workers.ArmError as error:
        sys.exit(f"error: {error}")
    report(args, {"arguments": vars(args), **result})


if __name__ == "__main__":
    if workers.is_worker():
        workers.serve(Arm)
    else:
        main()
