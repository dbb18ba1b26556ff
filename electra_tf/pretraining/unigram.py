# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replacements by how often tokens are in the records.

The unigram generator draws so; hparams unigram_steps and unigram_floor mix it
with a generator network.

All training records (of raw text, its first epoch) are counted when a run first
needs it: wordpieces, without [CLS], [SEP] and padding. The run keeps the counts
in its model directory, and goes on with the same ones.

Source: ELECTRA paper section 3.2, Smaller Generators.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.data.input_pipeline import each_example_once
from electra_tf.files import filesystem
from electra_tf.files.digests import check_digest
from electra_tf.files.json_files import read_json
from electra_tf.text.vocabulary import CLS, PAD, SEP, SPECIAL_TOKENS
from electra_tf.training.loop import next_batch

TOKEN_COUNTS = "token_counts.json"


def count_tokens(
    batches: Iterable[Mapping[str, tf.Tensor]],
    vocab_size: int,
    max_examples: int | None = 20_000,
) -> np.ndarray:
    """Counts the real tokens of training examples: int64 [V]."""
    counts = np.zeros(vocab_size, np.int64)
    seen = 0
    iterator = iter(batches)
    while (batch := next_batch(iterator, "counting")) is not None:
        ids = batch["input_ids"].numpy()
        real = ids[batch["input_mask"].numpy().astype(bool)]
        counts += np.bincount(real, minlength=vocab_size)[:vocab_size]
        seen += ids.shape[0]
        if max_examples is not None and seen >= max_examples:
            break
    return counts


def run_token_counts(
    config: Any, vocab: Mapping[str, int], vocab_size: int
) -> np.ndarray:
    """The counts of a run, int64 [V]: its own, or taken now."""
    kept = os.path.join(config.model_dir, TOKEN_COUNTS)
    if filesystem.exists(kept) and not (config.do_train and config.overwrite):
        counts = read_counts(kept, vocab_size)
    else:
        print(
            "Counting the tokens of all training examples, by which"
            f" replacements are drawn, once; kept as {TOKEN_COUNTS} in the"
            " model directory.",
            flush=True,
        )
        counts = count_training_tokens(config, vocab, vocab_size)
    if np.count_nonzero(drawable(counts, vocab)) < 2:
        raise UserError(
            f"{_hparam(config)} draws by the counts of tokens, and there are"
            " fewer than two different ones in the training data; give more of"
            " pretrain_tfrecords or pretrain_text, or choose another generator."
        )
    return counts


def count_training_tokens(
    config: Any, vocab: Mapping[str, int], vocab_size: int
) -> np.ndarray:
    """Counts the wordpieces of all training examples, once: int64 [V]."""
    batches = each_example_once(config, batch_size=1024)
    counts = count_tokens(batches, vocab_size, None)
    counts[[vocab[token] for token in (PAD, CLS, SEP)]] = 0
    return counts


def _hparam(config: Any) -> str:
    """Names the hparam that asks for the counts."""
    if config.generator == "unigram":
        return "generator: 'unigram'"
    if config.unigram_steps:
        return f"unigram_steps: {config.unigram_steps}"
    return f"unigram_floor: {config.unigram_floor:g}"


def read_counts(path: str, vocab_size: int) -> np.ndarray:
    """The counts that a run keeps, int64 [V]."""
    check_digest(path)
    counts = read_json(path).get("counts")
    if not isinstance(counts, list) or len(counts) != vocab_size:
        raise UserError(
            f"{path}: expected the `counts` of {vocab_size} tokens; restore it,"
            " or train anew with --overwrite."
        )
    return np.array(counts, np.int64)


def drawable(counts: np.ndarray, vocab: Mapping[str, int]) -> np.ndarray:
    """The counts by which replacements are drawn: of no special token."""
    counts = counts.copy()
    counts[[vocab[token] for token in SPECIAL_TOKENS if token in vocab]] = 0
    return counts
