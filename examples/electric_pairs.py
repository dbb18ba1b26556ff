# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which scores find the sound sentence: Electric's, or a masked LM's?

CoLA's acceptable sentences, each beside its corrupted twins (two neighbours
swapped, a word replaced by how often words are, a word dropped), and in lists
of ten that such edits made. `score` gives every text its score, Electric's in
one pass, a masked LM's in one pass a token; the higher one wins.

    PYTHONPATH=. python examples/electric_pairs.py --cola CoLA/dev.tsv \
        --model electric=runs/models/electric --model mlm=runs/models/mlm

A model that is named as a method of `score` is asked by that method.
--output gets each model's NAME.jsonl and NAME.jsonl.few, beside them the
texts (.txt), and results.json.
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

METHODS = ("electric", "cloze", "masked_lm")  # of `score`
KINDS = ("swapped", "replaced", "dropped")
LIST = 10  # texts of a list, the sound one among them
TEXTS = len(KINDS) + LIST  # of a sentence
LISTED = [0, *range(1 + len(KINDS), TEXTS)]  # of them
SHORTEST = 4  # words of a sentence that is used
FEW = 64  # texts that are scored first, for the time of a start


def sound_sentences(path: str) -> list[list[str]]:
    """Words of the sentences of CoLA that linguists accept, without the end."""
    found = []
    for row in read_rows(path, "tsv"):
        if len(row.cells) != 4 or row.cells[1] not in ("0", "1"):
            shown = shorten(row.content or row.cells)
            raise UserError(
                f"{path}:{row.line}: found {shown}; expected four columns, the"
                " second of which is 0 or 1."
            )
        words = row.cells[3].rstrip(" .?!").split()
        if row.cells[1] == "1" and len(words) >= SHORTEST:
            found.append(words)
    if len(found) < 2:
        raise UserError(
            f"{path}: {len(found)} accepted sentences of {SHORTEST} words or"
            " more; expected CoLA's file."
        )
    return found


def corrupted(
    words: list[str], kind: str, counts: dict[str, int], draws: random.Random
) -> list[str]:
    """The words with one edit; they always differ."""
    place = draws.randrange(len(words))
    if kind == "dropped":
        return words[:place] + words[place + 1 :]
    pairs = [i for i, two in enumerate(pairwise(words)) if two[0] != two[1]]
    if kind == "swapped" and pairs:
        i = draws.choice(pairs)
        return [*words[:i], words[i + 1], words[i], *words[i + 2 :]]
    others = [word for word in counts if word != words[place]]
    (other,) = draws.choices(others, [counts[word] for word in others])
    return [*words[:place], other, *words[place + 1 :]]


def make_texts(
    sentences: list[list[str]], seed: int
) -> tuple[list[str], np.ndarray]:
    """Texts, and how many edits each has, int64 [sentences, TEXTS].

    A sentence's texts: itself, its twin of each kind, the rest of its list.
    """
    draws = random.Random(seed)
    counts = collections.Counter(w for words in sentences for w in words)
    texts, edits = [], []
    for words in sentences:
        group = [words, *(corrupted(words, k, counts, draws) for k in KINDS)]
        made = [0, *[1] * len(KINDS)]
        while len(group) < TEXTS:
            number, other = draws.randint(1, 3), words
            for _ in range(number):
                other = corrupted(other, draws.choice(KINDS), counts, draws)
            if other != words:  # Two edits may undo each other.
                group.append(other)
                made.append(number)
        texts += [f"{' '.join(text)}." for text in group]
        edits.append(made)
    return texts, np.array(edits)


def score_texts(
    name: str, model: str, texts: Sequence[str], path: str
) -> tuple[list[dict[str, Any]], float]:
    """What `score` says of texts, and its seconds."""
    given = f"{path}.txt"
    write_atomically(given, "".join(f"{text}\n" for text in texts))
    argv = ["score", "--model", model, given, "--output", path]
    argv += ["--method", name if name in METHODS else "auto", "--overwrite"]
    started = time.perf_counter()
    score.main(score.parse_flags(argv))
    seconds = time.perf_counter() - started
    rows = [json.loads(line) for line in LineReader(path).texts()]
    if [row["text"] for row in rows] != list(texts):
        raise UserError(f"{path}: not the texts of {given}, in their order.")
    return rows, seconds


def judge(scores: np.ndarray, edits: np.ndarray) -> dict[str, float]:
    """How often the sound text has the highest score, of pairs and of lists."""
    ours, twins = scores[:, :1], scores[:, 1 : 1 + len(KINDS)]
    wins = (ours > twins) + 0.5 * (ours == twins)
    chosen = scores[:, LISTED].argmax(1)[:, None]
    left = np.take_along_axis(edits[:, LISTED], chosen, 1)
    error = wins.mean(1).std(ddof=1) / len(wins) ** 0.5  # over sentences
    return {
        "pairs": float(wins.mean()),
        **dict(zip(KINDS, wins.mean(0).tolist(), strict=True)),
        **{
            "lists": float((left == 0).mean()),
            "edits left": float(left.mean()),
        },
        "standard error of pairs": float(error),
    }


def main(args: argparse.Namespace) -> None:
    """Makes the texts, lets every model score them, compares."""
    sentences = sound_sentences(args.cola)[: args.sentences]
    texts, edits = make_texts(sentences, args.seed)
    results: dict[str, dict[str, Any]] = {}
    for name, model in args.model:
        path = os.path.join(args.output, f"{name}.jsonl")
        for _ in range(2):  # The first warms the libraries up.
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
    found = {"sentences": len(sentences), "texts": len(texts), **results}
    path = os.path.join(args.output, "results.json")
    write_atomically(path, json.dumps(found, indent=1) + "\n")
    columns = list(dict.fromkeys(c for of in results.values() for c in of))
    table = [["scores", "", *columns]]
    for name, result in results.items():
        cells = (result.get(column) for column in columns)
        texts = ["-" if cell is None else f"{cell:.3f}" for cell in cells]
        table.append([name, "", *texts])
    print("\n".join(render_rows(table)))


def _named(text: str) -> tuple[str, str]:
    name, equals, model = text.partition("=")
    if not (name.isidentifier() and equals and model):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected NAME=FOLDER, such as mlm=runs/models/mlm"
        )
    return name, model


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--cola", required=True, metavar="FILE", help="CoLA's dev.tsv")
    add("--model", required=True, action="append", type=_named)
    add("--output", default="runs/electric_pairs")
    add("--seed", type=int, default=1)
    add("--sentences", type=int, help="so many, to try it")
    return parser.parse_args(argv[1:])


if __name__ == "__main__":
    flags.run_program(main, parse_flags)
