# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The work of the arms, and code that all arms share.

`pretraining` and `finetuning` describe the work in plain values for the program
that compares arms; the rest runs in every arm and needs only numpy.
"""

import json
import math
import os
import pathlib
import random
import time
import zlib

import harness

CLS, SEP, MASK, FIRST_WORD, LABELS = 101, 102, 103, 1000, 2
VOCABULARY, MASKED_SHARE = 30522, 0.15
WEIGHT_DECAY, CLIP_NORM, DISC_WEIGHT = 0.01, 1.0, 50.0
PRETRAINING = {"rate": 5e-4, "steps": 1_000_000, "warmup": 10_000}
FINETUNING = {"rate": 1e-4, "steps": 10_000, "warmup": 1_000}
SIZES = {"small": (256, 128), "base": (768, 768)}  # hidden size, embedding size
# Names of the arrays of a fine-tuning batch.
NAMES = ("input_ids", "input_mask", "segment_ids", "labels")


def encoder(hidden_size):
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
    sizes = {"model_size": args.model_size, "max_seq_length": args.length}
    sizes |= {"train_batch_size": args.batch, "eval_batch_size": args.batch}
    return {**sizes, "weight_decay_rate": WEIGHT_DECAY}


def pretraining(args, folder):
    """Return sizes of networks and batch, and this project's hparams."""
    hidden, embedding = SIZES[args.model_size]
    hparams = {**_hparams(args), "disc_weight": DISC_WEIGHT}
    hparams["learning_rate"] = PRETRAINING["rate"]
    hparams["num_train_steps"] = PRETRAINING["steps"]
    hparams["num_warmup_steps"] = PRETRAINING["warmup"]
    return {
        "discriminator": encoder(hidden),
        "generator": encoder(hidden // 4),
        "embedding_size": embedding,
        "batch": args.batch,
        "length": args.length,
        "predictions": int((MASKED_SHARE + 0.005) * args.length),
        "hparams": hparams,
    }


def finetuning(args, folder):
    """Return sizes, hparams, and the file of both splits' [ids, label] rows."""
    hidden, embedding = SIZES[args.model_size]
    counts = {"train": max(args.steps, 8), "dev": args.eval_batches}
    make = _full_rows if args.rows == "full" else _sst_rows
    rows = {n: make(args, n, args.batch * count) for n, count in counts.items()}
    hparams = {"learning_rate": FINETUNING["rate"], "task_names": ["sst"]}
    hparams["init_checkpoint"] = None
    path = pathlib.Path(folder, "rows.json")
    path.write_text(json.dumps(rows))
    return {
        "encoder": encoder(hidden),
        "embedding_size": embedding,
        "batch": args.batch,
        "length": args.length,
        "rows_file": str(path),
        "hparams": {**_hparams(args), **hparams},
    }


def make_batch(work):
    """Return rows of random tokens [B, L], masked at `positions` [B, N]."""
    import numpy as np

    rng = np.random.default_rng(0)
    rows, length = work["batch"], work["length"]
    ids = rng.integers(FIRST_WORD, VOCABULARY, (rows, length), dtype=np.int32)
    ids[:, 0], ids[:, -1] = CLS, SEP
    inner = np.arange(1, length - 1, dtype=np.int32)
    count = work["predictions"]
    drawn = [rng.choice(inner, count, replace=False) for _ in range(rows)]
    positions = np.sort(np.stack(drawn))
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
    """Return batches of a split: int32 [B, L], labels [B].

    Rows are padded to `length` if `fixed`, otherwise to the longest row.
    `by_length` puts rows of similar length together.
    """
    import numpy as np

    rows = json.loads(pathlib.Path(work["rows_file"]).read_text())[split]
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
    drawn, ids_of_words = random.Random(split), range(FIRST_WORD, VOCABULARY)
    rows = []
    for _ in range(count):
        ids = [CLS, *drawn.choices(ids_of_words, k=args.length - 2), SEP]
        rows.append([ids, drawn.randrange(LABELS)])
    return rows


def _sst_rows(args, split, count):
    """Return [ids, label] of SST's sentences, in a random order."""
    import arm_ours

    make = arm_ours.product("FullTokenizer", harness.ROOT)
    encode = make(args.vocab_file).encode
    path = os.path.join(args.data_dir, "finetuning_data/sst", f"{split}.tsv")
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
    started = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - started


def use_threads(count, at_a_time=None):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(count)
    tf.config.threading.set_inter_op_parallelism_threads(at_a_time or count)


class Trainer:
    """Base class of arms that train; a subclass defines `losses(steps)`.

    `imported` is the memory after the imports; `answer(batch)` returns a
    classifier's predictions for a batch of `dev`.
    """

    def describe(self):
        sizes = [math.prod(map(int, weight.shape)) for weight in self.weights()]
        return {
            "parameters": sum(sizes),
            "versions": harness.versions(*self.PACKAGES),
            "imported": self.imported,
        }

    def run(self, steps):
        return timed(self.losses, steps) / steps

    def evaluate(self):
        started = time.perf_counter()
        rows = sum(len(self.answer(batch)) for batch in self.dev)
        return {"seconds": (time.perf_counter() - started) / rows, "rows": rows}


class Checkpoints:
    def turn(self, folder):
        seconds = {
            n: timed(getattr(self, n), folder) for n in ("write", "read")
        }
        files = [p for p in pathlib.Path(folder).rglob("*") if p.is_file()]
        return {**seconds, "bytes": sum(file.stat().st_size for file in files)}


class Answering:
    """Base class of arms that predict texts; a subclass defines `load`."""

    def __init__(self, spec):
        self._ask = self.load(spec)
        self._ask(["loaded"])
        # The arm's script imports harness first, so this time includes all
        # imports.
        self._start = time.perf_counter() - harness.STARTED

    def describe(self):
        versions = harness.versions(*self.PACKAGES)
        return {"start": self._start, "versions": versions}

    def run(self, batches):
        return [timed(self._ask, texts) for texts in batches]

    def probabilities(self, texts):
        return [list(map(float, row)) for row in self._ask(texts)]


class Tokenizers:
    """Base class of arms that tokenize.

    A subclass defines `encoder(name, vocab_file)`, which returns a function
    from a list of lines (with `in_graph`, a string tensor) to ids or tokens.
    """

    PACKAGES = ("tf-models-official", "tensorflow-text", "tokenizers")

    def __init__(self, spec, names):
        self._spec, self._names, self._made = spec, names, {}
        with open(spec["lines_file"], encoding="utf-8") as file:
            self._lines = json.load(file)

    def describe(self):
        versions = harness.versions(*self.PACKAGES)
        return {"names": self._names, "versions": versions}

    def make(self):
        """Make all tokenizers with empty caches; make graphs only once."""
        in_graph = self._spec["in_graph"]
        for name in self._names if not (self._made and in_graph) else ():
            self._made[name] = self.encoder(name, self._spec["vocab_file"])
            if in_graph:
                self._made[name](self._given(0))

    def chunk(self, name, start):
        """Return CPU seconds for the chunk that begins at `start`."""
        lines, encode = self._given(start), self._made[name]
        started = time.process_time()
        encode(lines)
        return time.process_time() - started

    def digests(self, name):
        """Return a checksum of each line's ids or tokens."""
        numbers = []
        for start in range(0, len(self._lines), self._spec["chunk"]):
            encoded = self._made[name](self._given(start))
            encoded = encoded[0] if isinstance(encoded, tuple) else encoded
            encoded = (
                encoded.to_list() if hasattr(encoded, "to_list") else encoded
            )
            numbers += [zlib.crc32(repr(ids).encode()) for ids in encoded]
        return numbers

    def _given(self, start):
        lines = self._lines[start : start + self._spec["chunk"]]
        if not self._spec["in_graph"]:
            return lines
        import tensorflow as tf

        return tf.constant(lines)
