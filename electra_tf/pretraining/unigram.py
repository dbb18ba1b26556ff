# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Token counts of the training records, by which replacements are drawn.

The unigram generator draws by token counts. The hparams unigram_steps and
unigram_floor mix token counts with a generator network.

When a run first needs the counts, it counts the wordpieces of all training
records (of raw text, the first epoch), without [CLS], [SEP] and padding. The
run writes the counts to its model directory, from which later starts read them.

Source: ELECTRA paper section 3.2, Smaller Generators.
"""

import os
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.files import filesystem
from electra_tf.files.digests import check_digest
from electra_tf.files.json_files import read_json
from electra_tf.text.vocabulary import CLS, PAD, SEP, SPECIAL_TOKENS
from electra_tf.training.loop import next_batch

TOKEN_COUNTS = "token_counts.json"
Batch = dict[str, tf.Tensor]


def count_tokens(
    batches: Iterable[Batch],
    vocab_size: int,
    max_examples: int | None = 20_000,
) -> np.ndarray:
    """Return the counts of the real tokens of examples, int64 [V].

    Args:
      batches: batches of training examples.
      vocab_size: V.
      max_examples: number of examples after which counting stops (at the end of
        a batch); None: all examples are counted.
    """
    counts = np.zeros(vocab_size, np.int64)
    examples = 0
    iterator = iter(batches)
    while (batch := next_batch(iterator, "counting")) is not None:
        ids = batch["input_ids"].numpy()
        real = ids[batch["input_mask"].numpy().astype(bool)]
        counts += np.bincount(real, minlength=vocab_size)[:vocab_size]
        examples += ids.shape[0]
        if max_examples is not None and examples >= max_examples:
            break
    return counts


def run_token_counts(
    model_dir: str,
    starts_over: bool,
    read_examples: Callable[[], Iterable[Batch]],
    vocab: Mapping[str, int],
    vocab_size: int,
) -> np.ndarray:
    """Return the token counts of a run, int64 [V].

    A run that continues reads the counts from its model directory. Other runs,
    and runs without this file, count the tokens of their training examples.

    Args:
      model_dir: model directory of the run.
      starts_over: whether the run starts at step 0, so that counts in
        `model_dir` belong to an earlier run.
      read_examples: function that returns batches of all training examples.
      vocab: ids by token.
      vocab_size: V.
    """
    path = os.path.join(model_dir, TOKEN_COUNTS)
    if filesystem.exists(path) and not starts_over:
        return read_counts(path, vocab_size)
    print(
        "Counting the tokens of all training examples, because replacements"
        " are drawn by token counts.",
        flush=True,
    )
    return count_training_tokens(read_examples(), vocab, vocab_size)


def count_training_tokens(
    batches: Iterable[Batch], vocab: Mapping[str, int], vocab_size: int
) -> np.ndarray:
    """Return the counts of all training examples' wordpieces, int64 [V].

    The counts of [CLS], [SEP] and padding are 0.

    Args:
      batches: batches of all training examples.
      vocab: ids by token.
      vocab_size: V.
    """
    counts = count_tokens(batches, vocab_size, None)
    counts[[vocab[token] for token in (PAD, CLS, SEP)]] = 0
    return counts


def check_drawable(
    counts: np.ndarray,
    vocab: Mapping[str, int],
    generator: str | None,
    unigram_steps: int,
    unigram_floor: float,
) -> None:
    """Raise a UserError if fewer than two tokens can be drawn.

    Args:
      counts: int64 [V], V the size of the vocabulary.
      vocab: ids by token.
      generator: the hparam, for the message.
      unigram_steps: the hparam, for the message.
      unigram_floor: the hparam, for the message.
    """
    if np.count_nonzero(drawable(counts, vocab)) >= 2:
        return
    name, value = "unigram_floor", f"{unigram_floor:g}"
    if generator == "unigram":
        name, value = "generator", "'unigram'"
    elif unigram_steps:
        name, value = "unigram_steps", str(unigram_steps)
    raise UserError(
        f"{name} is {value}, which draws replacements by token counts, but the"
        " training data contains fewer than two different tokens. Add data to"
        f" pretrain_tfrecords or pretrain_text, or change {name}."
    )


def read_counts(path: str, vocab_size: int) -> np.ndarray:
    """Return the token counts in a run's file, int64 [V].

    Args:
      path: path of the file.
      vocab_size: V.

    Raises:
      UserError: the file is corrupt or has a wrong number of counts.
    """
    check_digest(path)
    counts = read_json(path).get("counts")
    if (
        not isinstance(counts, list)
        or len(counts) != vocab_size
        or not all(type(n) is int and 0 <= n < 2**53 for n in counts)
    ):
        raise UserError(
            f"{path} contains invalid token counts; expected the `counts` of"
            f" {vocab_size} tokens as integers of at least 0. Restore the file,"
            " or train again with --overwrite."
        )
    return np.array(counts, np.int64)


def drawable(counts: np.ndarray, vocab: Mapping[str, int]) -> np.ndarray:
    """Return the counts, with 0 for special tokens, which are never drawn.

    Args:
      counts: int64 [V].
      vocab: ids by token.
    """
    counts = counts.copy()
    counts[[vocab[token] for token in SPECIAL_TOKENS if token in vocab]] = 0
    return counts
