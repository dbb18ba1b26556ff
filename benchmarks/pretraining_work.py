# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The work of a pre-training step: sizes, operations, batch, clock.

`describe` runs where the comparison is made; `make_batch` in every arm, so it
needs nothing but numpy.
"""

import dataclasses
import math
import time
from typing import Any

CLS, SEP, MASK, FIRST_WORD = 101, 102, 103, 1000
LEARNING_RATE, WEIGHT_DECAY, CLIP_NORM = 5e-4, 0.01, 1.0
TRAIN_STEPS, WARMUP_STEPS, DISC_WEIGHT = 1_000_000, 10_000, 50.0


def describe(
    model_size: str, batch: int, length: int, width: int = 0
) -> dict[str, Any]:
    """Sizes of both networks and of the batch, as plain values for the arms.

    Args:
      model_size: small or base.
      batch: rows.
      length: wordpieces of a row.
      width: hidden size in place of the named size's; 0 for that.

    Returns:
      `discriminator` and `generator` (the fields of an `EncoderConfig`),
      `embedding_size`, `batch`, `length`, `predictions`, `hparams` of ours,
      `flops`: of a step's matrix products, backward included. Element-wise
      work, look-ups and the optimizer are not in it, so that a share of the
      matrix peak counts all of that as lost.
    """
    from configure.pretraining import PretrainingConfig
    from electra_tf.modeling.encoder_config import EncoderConfig
    from electra_tf.plan.flops import pretraining_step_flops

    hparams: dict[str, Any] = {
        "model_size": model_size,
        "train_batch_size": batch,
        "max_seq_length": length,
        "learning_rate": LEARNING_RATE,
        "weight_decay_rate": WEIGHT_DECAY,
        "num_train_steps": TRAIN_STEPS,
        "num_warmup_steps": WARMUP_STEPS,
        "disc_weight": DISC_WEIGHT,
    }
    if width:
        hparams["model_hparam_overrides"] = {"hidden_size": width}
    config = PretrainingConfig.create("benchmark", "benchmark", **hparams)
    discriminator = EncoderConfig.for_size(
        model_size, config.vocab_size, config.model_hparam_overrides
    )
    generator = discriminator.scaled(
        config.generator_hidden_size, config.generator_layers
    )
    return {
        "discriminator": dataclasses.asdict(discriminator),
        "generator": dataclasses.asdict(generator),
        "embedding_size": config.embedding_size or discriminator.hidden_size,
        "batch": batch,
        "length": length,
        "predictions": config.max_predictions_per_seq,
        "hparams": hparams,
        "flops": pretraining_step_flops(config).matmul,
    }


def matrix_shapes(work: dict[str, Any]) -> list[tuple[int, int, int]]:
    """(m, k, n) of the products that take most of a step, and square ones."""
    tokens = work["batch"] * work["length"]
    hidden = work["discriminator"]["hidden_size"]
    inner = work["discriminator"]["intermediate_size"]
    picked = work["batch"] * work["predictions"]
    vocabulary = work["discriminator"]["vocab_size"]
    return [
        *((size, size, size) for size in (1024, 2048, 4096)),
        (tokens, hidden, hidden),
        (tokens, hidden, inner),
        (tokens, inner, hidden),
        (picked, work["embedding_size"], vocabulary),
    ]


def make_batch(work: dict[str, Any], seed: int = 0) -> dict[str, Any]:
    """A batch of full-length rows of random tokens, and its masked form.

    Returns:
      int32 arrays: `input_ids`, `input_mask`, `segment_ids`, `masked_ids`
      [B, L]; `positions` and `labels` [B, N], positions distinct.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    rows, length = work["batch"], work["length"]
    vocabulary = work["discriminator"]["vocab_size"]
    ids = rng.integers(FIRST_WORD, vocabulary, (rows, length), dtype=np.int32)
    ids[:, 0], ids[:, -1] = CLS, SEP
    inner = np.arange(1, length - 1, dtype=np.int32)
    positions = np.stack(
        [
            np.sort(rng.choice(inner, work["predictions"], replace=False))
            for _ in range(rows)
        ]
    )
    masked = ids.copy()
    shown = np.where(rng.random(positions.shape) < 0.85, MASK, -1)
    labels = np.take_along_axis(ids, positions, 1)
    np.put_along_axis(masked, positions, np.where(shown > 0, shown, labels), 1)
    return {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": np.zeros_like(ids),
        "masked_ids": masked.astype(np.int32),
        "positions": positions.astype(np.int32),
        "labels": labels.astype(np.int32),
    }


def timed_steps(step: Any, count: int) -> float:
    """Seconds of each of `count` steps, together, per step."""
    started = time.perf_counter()
    step(count)
    return (time.perf_counter() - started) / count


def best_rates(
    multiply: Any, shapes: list[tuple[int, int, int]], seconds: float = 0.5
) -> dict[str, float]:
    """Operations per second of matrix products, the best of some runs.

    Args:
      multiply: from (m, k, n) to a function that runs that product.
      shapes: (m, k, n) of each product. One that would take ten times
        `seconds` at the best rate so far is left out.
      seconds: that a shape is run for, twice at least.

    Returns:
      The rates by shape.
    """
    found: dict[str, float] = {}
    for m, k, n in sorted(shapes, key=math.prod):
        operations = 2.0 * m * k * n
        if found and operations / max(found.values()) > 10 * seconds:
            continue
        run = multiply(m, k, n)
        run()
        best, runs, begun = math.inf, 0, time.perf_counter()
        while runs < 2 or time.perf_counter() - begun < seconds:
            started = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - started)
            runs += 1
        found[f"{m}x{k}x{n}"] = operations / best
    return found
