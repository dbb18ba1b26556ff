# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The work of finetuning_step.py: sizes and batches, the same for all arms.

`describe` runs where the comparison is made; the rest in every arm, so it
needs nothing but numpy.
"""

import dataclasses
import json
import os
import random
import time
from typing import Any

CLS, SEP, FIRST_WORD, LABELS = 101, 102, 1000, 2
LEARNING_RATE, WEIGHT_DECAY, CLIP_NORM = 1e-4, 0.01, 1.0
TRAIN_STEPS, WARMUP_STEPS = 10_000, 1_000


def describe(args: Any, folder: str) -> dict[str, Any]:
    """Sizes and rows, as plain values for the arms.

    Args:
      args: of finetuning_step.py.
      folder: gets a file with the rows.

    Returns:
      `encoder` (the fields of an `EncoderConfig`), `embedding_size`, `batch`,
      `length`, `hparams` of ours; `rows_file`: JSON with [ids, label] of each
      row of train and dev.
    """
    from configure.finetuning import FinetuningConfig
    from electra_tf.modeling.encoder_config import EncoderConfig

    hparams = {
        "model_size": args.model_size,
        "task_names": ["sst"],
        "train_batch_size": args.batch,
        "eval_batch_size": args.batch,
        "max_seq_length": args.length,
        "learning_rate": LEARNING_RATE,
        "weight_decay_rate": WEIGHT_DECAY,
        "init_checkpoint": None,
    }
    config = FinetuningConfig.create("benchmark", "benchmark", **hparams)
    sizes = EncoderConfig.for_size(
        args.model_size, config.vocab_size, config.model_hparam_overrides
    )
    counts = {
        "train": args.batch * max(args.steps, 8),
        "dev": args.batch * args.eval_batches,
    }
    if args.rows == "full":
        rows = {
            split: _full_rows(count, args.length, sizes.vocab_size)
            for split, count in counts.items()
        }
    else:
        rows = {
            split: _sst_rows(args, split, count)
            for split, count in counts.items()
        }
    path = os.path.join(folder, "rows.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file)
    return {
        "encoder": dataclasses.asdict(sizes),
        "embedding_size": config.embedding_size or sizes.hidden_size,
        "batch": args.batch,
        "length": args.length,
        "hparams": hparams,
        "rows_file": path,
    }


def make_batches(
    work: dict[str, Any],
    split: str,
    fixed: bool = False,
    by_length: bool = False,
    multiple: int = 1,
) -> list[dict[str, Any]]:
    """Batches of a split.

    Args:
      work: of `describe`.
      split: train or dev.
      fixed: pad to `length`; else to a batch's longest row.
      by_length: put rows of similar length together.
      multiple: the batches' lengths are multiples of it.

    Returns:
      int32 arrays: `input_ids`, `input_mask`, `segment_ids` [B, L], `labels`
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
        longest = min(-(-longest // multiple) * multiple, work["length"])
        shape = [len(chosen), work["length"] if fixed else longest]
        ids, mask = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        for i, (row, _) in enumerate(chosen):
            ids[i, : len(row)], mask[i, : len(row)] = row, 1
        batches.append(
            {
                "input_ids": ids,
                "input_mask": mask,
                "segment_ids": np.zeros_like(ids),
                "labels": np.array([label for _, label in chosen], np.int32),
            }
        )
    return batches


def timed(run: Any) -> float:
    """Seconds that a call takes."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def _full_rows(count: int, length: int, vocabulary: int) -> list[list[Any]]:
    drawn = random.Random(0)
    return [
        [
            [
                CLS,
                *(
                    drawn.randrange(FIRST_WORD, vocabulary)
                    for _ in range(length - 2)
                ),
                SEP,
            ],
            drawn.randrange(LABELS),
        ]
        for _ in range(count)
    ]


def _sst_rows(args: Any, split: str, count: int) -> list[list[Any]]:
    """Sentences of SST in a drawn order, as ids; as many as there are."""
    from electra_tf.text.tokenization import FullTokenizer

    tokenizer = FullTokenizer(args.vocab_file)
    path = os.path.join(args.data_dir, "finetuning_data", "sst", f"{split}.tsv")
    with open(path, encoding="utf-8") as file:
        lines = list(file)[1:]
    random.Random(0).shuffle(lines)
    lines = lines[: min(count, len(lines) // args.batch * args.batch)]
    rows = []
    for line in lines:
        text, label = line.rstrip("\n").split("\t")
        ids = tokenizer.encode(text)[: args.length - 2]
        rows.append([[CLS, *ids, SEP], int(label)])
    return rows
