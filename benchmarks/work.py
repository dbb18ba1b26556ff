# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The work that arms are given, and what arms have in common.

`pretraining` and `finetuning` describe work in plain values where the
comparison is made; the rest runs in every arm and needs nothing but numpy.
"""

import json
import math
import os
import random
import time
import zlib

import harness

CLS, SEP, MASK, FIRST_WORD, LABELS = 101, 102, 103, 1000, 2
VOCABULARY, MASKED_SHARE = 30522, 0.15
WEIGHT_DECAY, CLIP_NORM, DISC_WEIGHT = 0.01, 1.0, 50.0
PRETRAINING = {"rate": 5e-4, "steps": 1_000_000, "warmup": 10_000}
FINETUNING = {"rate": 1e-4, "steps": 10_000, "warmup": 1_000}
SIZES = {"small": (256, 128), "base": (768, 768)}  # hidden, embedding
NAMES = ("input_ids", "input_mask", "segment_ids", "labels")  # of arrays


def encoder(hidden_size):
    """Fields of a BERT encoder, by the names of the original."""
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": hidden_size,
        "num_hidden_layers": 12,
        "num_attention_heads": hidden_size // 64,
        "intermediate_size": 4 * hidden_size,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "initializer_range": 0.02,
    }


def _hparams(args):
    return {
        "model_size": args.model_size,
        "train_batch_size": args.batch,
        "eval_batch_size": args.batch,
        "max_seq_length": args.length,
        "weight_decay_rate": WEIGHT_DECAY,
    }


def pretraining(args, folder):
    """Sizes of both networks and of the batch, and `hparams` of ours."""
    hidden, embedding = SIZES[args.model_size]
    return {
        "discriminator": encoder(hidden),
        "generator": encoder(hidden // 4),
        "embedding_size": embedding,
        "batch": args.batch,
        "length": args.length,
        "predictions": int((MASKED_SHARE + 0.005) * args.length),
        "hparams": {
            **_hparams(args),
            "learning_rate": PRETRAINING["rate"],
            "num_train_steps": PRETRAINING["steps"],
            "num_warmup_steps": PRETRAINING["warmup"],
            "disc_weight": DISC_WEIGHT,
        },
    }


def finetuning(args, folder):
    """Sizes of a classifier, `hparams` of ours, rows; `args` of step.py.

    `rows_file` in `folder`: JSON with [ids, label] of each row of train, dev.
    """
    hidden, embedding = SIZES[args.model_size]
    counts = {
        "train": args.batch * max(args.steps, 8),
        "dev": args.batch * args.eval_batches,
    }
    make = _full_rows if args.rows == "full" else _sst_rows
    path = os.path.join(folder, "rows.json")
    rows = {split: make(args, split, count) for split, count in counts.items()}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file)
    return {
        "encoder": encoder(hidden),
        "embedding_size": embedding,
        "batch": args.batch,
        "length": args.length,
        "rows_file": path,
        "hparams": {
            **_hparams(args),
            "task_names": ["sst"],
            "learning_rate": FINETUNING["rate"],
            "init_checkpoint": None,
        },
    }


def make_batch(work):
    """A batch of full-length rows of random tokens, and its masked form.

    int32 arrays: `input_ids`, `input_mask`, `segment_ids`, `masked_ids`
    [B, L]; `positions` and `labels` [B, N], positions distinct.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    rows, length = work["batch"], work["length"]
    ids = rng.integers(FIRST_WORD, VOCABULARY, (rows, length), dtype=np.int32)
    ids[:, 0], ids[:, -1] = CLS, SEP
    inner = np.arange(1, length - 1, dtype=np.int32)
    drawn = [
        np.sort(rng.choice(inner, work["predictions"], replace=False))
        for _ in range(rows)
    ]
    positions = np.stack(drawn)
    masked, labels = ids.copy(), np.take_along_axis(ids, positions, 1)
    shown = np.where(rng.random(positions.shape) < 0.85, MASK, labels)
    np.put_along_axis(masked, positions, shown, 1)
    return {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": np.zeros_like(ids),
        "masked_ids": masked,
        "positions": positions,
        "labels": labels,
    }


def make_batches(work, split, fixed=False, by_length=False, names=NAMES):
    """Batches of a split, padded to `length` if fixed, else to the longest row.

    `by_length` puts rows of similar length together. int32 arrays, under the
    given `names`: `input_ids`, `input_mask`, `segment_ids` [B, L], `labels`
    [B].
    """
    import numpy as np

    with open(work["rows_file"], encoding="utf-8") as file:
        rows = json.load(file)[split]
    if by_length:
        rows = sorted(rows, key=lambda row: -len(row[0]))
    batches = []
    for start in range(0, len(rows), work["batch"]):
        chosen = rows[start : start + work["batch"]]
        longest = max(len(ids) for ids, _ in chosen)
        shape = [len(chosen), work["length"] if fixed else longest]
        ids, mask = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        for i, (row, _) in enumerate(chosen):
            ids[i, : len(row)], mask[i, : len(row)] = row, 1
        labels = np.array([label for _, label in chosen], np.int32)
        arrays = (ids, mask, np.zeros_like(ids), labels)
        batches.append(dict(zip(names, arrays, strict=True)))
    return batches


def _full_rows(args, split, count):
    """Rows of random words as long as can be, with random labels."""
    drawn, words = random.Random(split), range(FIRST_WORD, VOCABULARY)
    return [
        [
            [CLS, *drawn.choices(words, k=args.length - 2), SEP],
            drawn.randrange(LABELS),
        ]
        for _ in range(count)
    ]


def _sst_rows(args, split, count):
    """Sentences of SST in a drawn order, as ids; as many as there are."""
    import arm_ours

    make = arm_ours.product("FullTokenizer", harness.ROOT)
    encode = make(args.vocab_file).encode
    path = os.path.join(args.data_dir, "finetuning_data", "sst", f"{split}.tsv")
    with open(path, encoding="utf-8") as file:
        lines = list(file)[1:]
    random.Random(0).shuffle(lines)
    rows = []
    for line in lines[: min(count, len(lines) // args.batch * args.batch)]:
        text, label = line.rstrip("\n").split("\t")
        ids = encode(text)[: args.length - 2]
        rows.append([[CLS, *ids, SEP], int(label)])
    return rows


def timed(run, *arguments):
    """Seconds that a call takes."""
    started = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - started


def use_threads(count, at_a_time=None):
    """Threads of TensorFlow: of one operation, and operations at a time."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(count)
    tf.config.threading.set_inter_op_parallelism_threads(at_a_time or count)


class Trainer:
    """An arm that trains; a subclass gives the rest.

    `losses(steps)` trains and returns the loss of each step; `imported` is the
    memory after the imports; `answer(batch)` gives a classifier's predictions
    for a batch, `dev` the batches.
    """

    def describe(self):
        """Parameters, versions, memory after the imports."""
        sizes = [math.prod(map(int, weight.shape)) for weight in self.weights()]
        return {
            "parameters": sum(sizes),
            "versions": harness.versions(*self.PACKAGES),
            "imported": self.imported,
        }

    def run(self, steps):
        """Trains; returns seconds per step."""
        return timed(self.losses, steps) / steps

    def evaluate(self):
        """Evaluates; returns seconds per row and rows; reads predictions."""
        started = time.perf_counter()
        rows = sum(len(self.answer(batch)) for batch in self.dev)
        return {"seconds": (time.perf_counter() - started) / rows, "rows": rows}


class Checkpoints:
    """An arm that writes its weights to a folder and reads them back."""

    def turn(self, folder):
        """Seconds of each, bytes on disk."""
        found = {n: timed(getattr(self, n), folder) for n in ("write", "read")}
        sizes = [
            os.path.getsize(os.path.join(path, name))
            for path, _, names in os.walk(folder)
            for name in names
        ]
        return {**found, "bytes": sum(sizes)}


class Answering:
    """An arm that answers texts: a subclass gives `load`."""

    def __init__(self, spec):
        self._ask = self.load(spec)
        self._ask(["loaded"])
        # The arm's script imports harness before any library.
        self._start = time.perf_counter() - harness.STARTED

    def describe(self):
        """Versions, seconds from nothing to the first answer."""
        versions = harness.versions(*self.PACKAGES)
        return {"start": self._start, "versions": versions}

    def run(self, batches):
        """Answers batches one after the other; returns seconds of each."""
        return [timed(self._ask, texts) for texts in batches]

    def probabilities(self, texts):
        """Probabilities of the classes, a list for each text."""
        return [list(map(float, row)) for row in self._ask(texts)]


class Tokenizers:
    """An arm of tokenizers; `makers` make them from a vocabulary file.

    What is made takes a list of lines (with `in_graph` a string tensor) and
    gives their ids or tokens.
    """

    PACKAGES = ("tf-models-official", "tensorflow-text", "tokenizers")

    def __init__(self, spec, makers):
        self._vocab_file, self._makers = spec["vocab_file"], makers
        with open(spec["lines_file"], encoding="utf-8") as file:
            self._lines = json.load(file)
        self._size, self._in_graph = spec["chunk"], spec["in_graph"]
        self._made = {}

    def describe(self):
        """Names of the tokenizers, versions."""
        versions = harness.versions(*self.PACKAGES)
        return {"names": list(self._makers), "versions": versions}

    def make(self):
        """Makes all tokenizers anew, with an empty memo; graphs only once."""
        if self._made and self._in_graph:
            return
        for name, make in self._makers.items():
            self._made[name] = make(self._vocab_file)
            if self._in_graph:
                self._made[name](self._given(self._lines[: self._size]))

    def chunk(self, name, start):
        """Seconds of the processor for the lines from `start` on."""
        given = self._given(self._lines[start : start + self._size])
        encode = self._made[name]
        started = time.process_time()
        encode(given)
        return time.process_time() - started

    def digests(self, name):
        """A number for each line, made of its ids or tokens."""
        return [
            zlib.crc32(repr(ids).encode())
            for start in range(0, len(self._lines), self._size)
            for ids in self._ids(name, self._lines[start : start + self._size])
        ]

    def _ids(self, name, lines):
        found = self._made[name](self._given(lines))
        found = found[0] if isinstance(found, tuple) else found
        return found.to_list() if hasattr(found, "to_list") else found

    def _given(self, lines):
        if not self._in_graph:
            return lines
        import tensorflow as tf

        return tf.constant(lines)
