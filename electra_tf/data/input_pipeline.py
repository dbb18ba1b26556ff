# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records or raw text -> batches, in an order that can be saved and resumed."""

import random
from typing import Any

import tensorflow as tf

from electra_tf.data.raw_text import RawText
from electra_tf.data.record_files import find_record_files, text_hparam
from electra_tf.data.records import FEATURE_NAMES

# Files read in turn; the original's number of reading threads.
_FILES_AT_ONCE = 4
# Documents of raw text read in turn, so that a batch is of many.
_DOCUMENTS_AT_ONCE = 32


def build_dataset(
    config: Any,
    batch_size: int,
    training: bool,
    worker: tuple[int, int] = (0, 1),
) -> tf.data.Dataset:
    """Batches of pre-training examples.

    Training: files repeated for ever and shuffled, records interleaved from
    four files and shuffled in a buffer of `config.shuffle_buffer_size`; with
    `pretrain_text` that of documents, cut anew in every epoch.
    Evaluation: held-out records once, in file order, the last batch perhaps
    smaller; without held-out records, the training records as in training.

    With `config.deterministic_input` the batches are a function of
    `config.seed` (and of TensorFlow's global seed, if one is set), and a saved
    iterator, with shuffle buffer and prefetched batches, goes on exactly where
    it stopped.

    Args:
      worker: w and n: the worker w > 0 of n parses every n-th row alone, from
        w on. The first parses all: checkpoints hold its batches that were read
        ahead, for any number of workers.

    Returns:
      Dataset of dicts `input_ids`, `input_mask`, `segment_ids`, int32 [B, L].

    Source: pretrain/pretrain_data.py, get_input_fn.
    Differs: seeded and resumable by default (the original reads in whatever
      order threads finish); parses whole batches at once; evaluation prefers
      held-out records.
    """
    # Evaluations draw masks by a batch's number; workers count the same rows.
    deterministic = config.deterministic_input or not training or worker[1] > 1
    if hparam := text_hparam(config, training):
        text = RawText(config, hparam)
        shuffled, records = text.repeats, _cut_text(text)
    else:
        paths, held_out, _ = find_record_files(config, training)
        shuffled = training or not held_out
        records = tf.data.TFRecordDataset(paths)
    if shuffled and not hparam:
        names = tf.data.Dataset.from_tensor_slices(paths).repeat()
        names = names.shuffle(len(paths), seed=_seed(config, "files"))
        records = names.interleave(
            tf.data.TFRecordDataset,
            cycle_length=min(_FILES_AT_ONCE, len(paths)),
            block_length=1,
            num_parallel_calls=None if deterministic else tf.data.AUTOTUNE,
            deterministic=None if deterministic else False,
        )
    if shuffled:
        records = records.shuffle(
            max(1, config.shuffle_buffer_size), seed=_seed(config, "records")
        )
    batches = records.batch(batch_size, drop_remainder=shuffled)
    first, step = worker

    def parse(payloads: tf.Tensor) -> dict[str, tf.Tensor]:
        if first:
            # Whole batches may come from a checkpoint: any number of rows.
            payloads = tf.compat.v1.placeholder_with_default(
                payloads[first::step], [None]
            )
        return _parse(payloads, config.max_seq_length)

    batches = batches.map(
        parse, num_parallel_calls=1 if deterministic else tf.data.AUTOTUNE
    ).prefetch(2)
    return batches.with_options(input_options(deterministic))


def input_options(deterministic: bool = True) -> tf.data.Options:
    """Where order is fixed, threads are, too, so that nothing is tuned.

    The tuner's thread sleeps between looks, each time twice as long, up to a
    minute, and at its end an iterator may wait for it (TensorFlow 2.20).
    """
    options = tf.data.Options()
    options.deterministic = deterministic
    options.autotune.enabled = not deterministic
    return options


def each_example_once(config: Any, batch_size: int) -> tf.data.Dataset:
    """Batches of all training examples, once; of text, its first epoch."""
    if hparam := text_hparam(config, training=True):
        text = RawText(config, hparam)
        text.repeats = False
        records = _cut_text(text)
    else:
        paths = find_record_files(config, training=True).paths
        records = tf.data.TFRecordDataset(paths)
    batches = records.batch(batch_size).map(
        lambda payloads: _parse(payloads, config.max_seq_length)
    )
    return batches.with_options(input_options())


def _seed(config: Any, purpose: str) -> int:
    return random.Random(f"{config.seed} {purpose}").getrandbits(31)


def _cut_text(text: RawText) -> tf.data.Dataset:
    """Records cut from documents, of which the iterator saves the numbers."""

    def cut(number: tf.Tensor) -> tf.data.Dataset:
        # Only what is declared stateless may be part of a saved iterator.
        records = tf.numpy_function(
            text.records, [number], tf.string, stateful=False
        )
        records = tf.ensure_shape(records, [None])
        return tf.data.Dataset.from_tensor_slices(records)

    numbers = tf.data.Dataset.range(len(text))
    if text.repeats:
        numbers = tf.data.Dataset.counter()
    return numbers.interleave(
        cut,
        cycle_length=_DOCUMENTS_AT_ONCE if text.repeats else 1,
        block_length=1,
    )


def _parse(payloads: tf.Tensor, length: int) -> dict[str, tf.Tensor]:
    feature = tf.io.FixedLenFeature([length], tf.int64)
    features = dict.fromkeys(FEATURE_NAMES, feature)
    parsed = tf.io.parse_example(payloads, features)
    return {name: tf.cast(parsed[name], tf.int32) for name in FEATURE_NAMES}
