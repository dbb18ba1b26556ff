# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compare Electric with a masked LM in finding acceptable sentences.

Each acceptable sentence of CoLA is compared with corrupted copies (two adjacent
words swapped, a word replaced by one drawn by frequency, a word dropped), and
is ranked in a list of ten texts made by such edits. `score` scores every text:
Electric in one pass, a masked LM in one pass per token. The highest score wins.

    PYTHONPATH=. python examples/electric_pairs.py --cola CoLA/dev.tsv \
        --model electric=runs/models/electric --model mlm=runs/models/mlm

If the name of a model is a method of `score`, that method is used. --output
receives each model's NAME.jsonl and NAME.jsonl.few, their texts (.txt), and
results.json.
"""

import argparse
import collections
import json
import os
import random
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from configure import flags
from configure.errors import UserError
from configure.formatting import shorten
from configure.text_tables import render_rows
from electra_tf.commands import score
from electra_tf.data.tables import read_rows
from electra_tf.files.atomic import write_atomically
from electra_tf.files.lines import LineReader

METHODS = ("electric", "cloze", "masked_lm")  # methods of `score`
KINDS = ("swapped", "replaced", "dropped")
LIST = 10  # texts in a list, the acceptable one included
# texts per sentence: itself, its corrupted copies, and the rest of its list
TEXTS = len(KINDS) + LIST
LISTED = [0, *range(1 + len(KINDS), TEXTS)]  # indices of the list's texts
SHORTEST = 4  # minimum words; shorter sentences are skipped
FEW = 64  # texts scored first, to measure the time of a start


def sound_sentences(path: str) -> list[list[str]]:
    """Return the words of CoLA's acceptable sentences, without full stops."""
    sentences = []
    for row in read_rows(path, "tsv"):
        if len(row.cells) != 4 or row.cells[1] not in ("0", "1"):
            shown = shorten(row.content or row.cells)
            raise UserError(
                f"{path}:{row.line}: found {shown}; expected four columns, the"
                " second of which is 0 or 1. Correct the line."
            )
        words = row.cells[3].rstrip(" .?!").split()
        if row.cells[1] == "1" and len(words) >= SHORTEST:
            sentences.append(words)
    if len(sentences) < 2:
        raise UserError(
            f"{path}: {len(sentences)} accepted sentences of {SHORTEST} or"
            " more words; expected CoLA's file. Pass it with --cola."
        )
    return sentences


def corrupted(
    words: list[str], kind: str, counts: dict[str, int], draws: random.Random
) -> list[str]:
    """Apply one edit to the words, which always changes them."""
    position = draws.randrange(len(words))
    if kind == "dropped":
        return words[:position] + words[position + 1 :]
    pairs = [i for i, two in enumerate(pairwise(words)) if two[0] != two[1]]
    if kind == "swapped" and pairs:
        i = draws.choice(pairs)
        return [*words[:i], words[i + 1], words[i], *words[i + 2 :]]
    others = [word for word in counts if word != words[position]]
    (other,) = draws.choices(others, [counts[word] for word in others])
    return [*words[:position], other, *words[position + 1 :]]


def make_texts(
    sentences: list[list[str]], seed: int
) -> tuple[list[str], np.ndarray]:
    """Return texts and their counts of edits, int64 [sentences, TEXTS].

    The texts of a sentence are the sentence itself, a corrupted copy of each
    kind, and the rest of its list.
    """
    draws = random.Random(seed)
    counts = collections.Counter(w for words in sentences for w in words)
    texts, edits = [], []
    for words in sentences:
        group = [words, *(corrupted(words, k, counts, draws) for k in KINDS)]
        counts_of_edits = [0] + [1] * len(KINDS)
        while len(group) < TEXTS:
            number, other = draws.randint(1, 3), words
            for _ in range(number):
                other = corrupted(other, draws.choice(KINDS), counts, draws)
            # Two edits may undo each other; such a text is dropped.
            if other != words:
                group.append(other)
                counts_of_edits.append(number)
        texts += [f"{' '.join(text)}." for text in group]
        edits.append(counts_of_edits)
    return texts, np.array(edits)


def score_texts(
    name: str, model: str, texts: Sequence[str], path: str
) -> tuple[list[dict[str, Any]], float]:
    """Return the rows that `score` writes for texts, and its seconds."""
    text_path = f"{path}.txt"
    write_atomically(text_path, "".join(f"{text}\n" for text in texts))
    argv = ["score", "--model", model, text_path, "--output", path]
    argv += ["--method", name if name in METHODS else "auto", "--overwrite"]
    started = time.perf_counter()
    score.main(score.parse_flags(argv))
    seconds = time.perf_counter() - started
    rows = [json.loads(line) for line in LineReader(path).texts()]
    if [row["text"] for row in rows] != list(texts):
        raise UserError(
            f"{path}: the texts differ from those of {text_path}. Remove the"
            " file."
        )
    return rows, seconds


def judge(scores: np.ndarray, edits: np.ndarray) -> dict[str, float]:
    """Return how often the original scores highest, in pairs and in lists."""
    original, copies = scores[:, :1], scores[:, 1 : 1 + len(KINDS)]
    wins = np.where(original == copies, 0.5, original > copies)
    chosen = scores[:, LISTED].argmax(1)[:, None]
    edits_left = np.take_along_axis(edits[:, LISTED], chosen, 1)
    error = wins.mean(1).std(ddof=1) / len(wins) ** 0.5  # mean over sentences
    return {
        "pairs": float(wins.mean()),
        **dict(zip(KINDS, wins.mean(0).tolist(), strict=True)),
        "lists": float((edits_left == 0).mean()),
        "edits left": float(edits_left.mean()),
        "standard error of pairs": float(error),
    }


def main(args: argparse.Namespace) -> None:
    """Make the texts, score them with every model, and compare."""
    sentences = sound_sentences(args.cola)[: args.sentences]
    texts, edits = make_texts(sentences, args.seed)
    results: dict[str, dict[str, Any]] = {}
    for name, model in args.model:
        path = os.path.join(args.output, f"{name}.jsonl")
        # The first run initializes libraries, so it is not timed.
        for _ in range(2):
            _, start = score_texts(name, model, texts[:FEW], f"{path}.few")
        rows, seconds = score_texts(name, model, texts, path)
        each = 1000 * (seconds - start) / max(len(texts) - FEW, 1)
        whole = np.array([row["score"] for row in rows]).reshape(edits.shape)
        tokens = np.array([row["tokens"] for row in rows]).reshape(edits.shape)
        for how, scores in (("sum", whole), ("mean", whole / tokens)):
            result = judge(scores, edits) | {"s / 1000 texts": each}
            results[f"{name}, {how}"] = result
    chance = dict.fromkeys(("pairs", *KINDS), 0.5) | {"lists": 1 / LIST}
    results["chance"] = chance | {"edits left": edits[:, LISTED].mean()}
    report = {"sentences": len(sentences), "texts": len(texts), **results}
    path = os.path.join(args.output, "results.json")
    write_atomically(path, json.dumps(report, indent=1) + "\n")
    columns = list(dict.fromkeys(c for of in results.values() for c in of))
    table = [["scores", "", *columns]]
    for name, result in results.items():
        cells = (result.get(column) for column in columns)
        texts = ["-" if cell is None else f"{cell:.3f}" for cell in cells]
        table.append([name, "", *texts])
    print("\n".join(render_rows(table)))


def _parse_model(text: str) -> tuple[str, str]:
    """Return the name and the folder in NAME=FOLDER."""
    name, equals, model = text.partition("=")
    if not (name.isidentifier() and equals and model):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected NAME=FOLDER, such as mlm=runs/models/mlm"
        )
    return name, model


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--cola", required=True, metavar="FILE", help="CoLA's dev.tsv")
    add("--model", required=True, action="append", type=_parse_model)
    add("--output", default="runs/electric_pairs")
    add("--seed", type=int, default=1)
    add("--sentences", type=int, help="number of sentences; default: all")
    return parser.parse_args(argv[1:])


if __name__ == "__main__":
    flags.run_program(main, parse_flags)
