# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batches of pre-training examples, in an order that can be resumed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import tensorflow as tf

from electra_tf.data.input_files import InputFiles
from electra_tf.data.raw_text import RawText
from electra_tf.data.tfrecords import FEATURE_NAMES

if TYPE_CHECKING:
    from configure.pretraining import PretrainingConfig

# Number of files that are interleaved; the original has as many reading
# threads.
_FILES_AT_ONCE = 4
# Number of documents of raw text that are interleaved, so that a batch contains
# examples of many documents.
_DOCUMENTS_AT_ONCE = 32


def build_dataset(
    config: PretrainingConfig,
    batch_size: int,
    training: bool,
    worker: tuple[int, int] = (0, 1),
) -> tf.data.Dataset:
    """Return the batches of a run.

    Training: files are repeated forever and shuffled; records are interleaved
    from four files and shuffled in a buffer of `config.shuffle_buffer_size`.
    With `pretrain_text`, documents replace files, and are split differently in
    each epoch.
    Evaluation: held-out records are read once, in the order of files; the last
    batch may be smaller. Without held-out records, training records are read as
    in training.

    With `config.deterministic_input` the batches are a function of
    `config.seed` (and of TensorFlow's global seed, if one is set), and a saved
    iterator, including shuffle buffer and prefetched batches, continues exactly
    from its position.

    Args:
      config: config of the run, which determines the data and its order.
      batch_size: number of rows in a batch, B.
      training: whether the batches are for training.
      worker: index w and number n of workers. A worker w > 0 parses only each
        n-th row, from row w. The first worker parses all rows, because its
        prefetched batches are saved in checkpoints, which any number of workers
        may load.

    Returns:
      Dataset of `input_ids`, `input_mask`, `segment_ids`, int32 [B, L].

    Source: pretrain/pretrain_data.py, get_input_fn.
    Differs: seeded and resumable by default (the original reads in whatever
      order threads finish); parses whole batches at once; evaluation prefers
      held-out records.
    """
    # Two cases require a deterministic order: evaluations draw masks by the
    # index of a batch, and several workers must read the same batches, because
    # each worker uses only a part of a batch.
    deterministic = config.deterministic_input or not training or worker[1] > 1
    files = InputFiles.of(config)
    if hparam := files.text_hparam(training):
        text = RawText(config, hparam)
        shuffled, records = text.repeats, _cut_text(text)
    else:
        paths, held_out, _ = files.find_records(training)
        shuffled = training or not held_out
        if shuffled:
            seed = _derive_seed(config.seed, "files")
            records = _interleave_files(paths, seed, deterministic)
        else:
            records = tf.data.TFRecordDataset(paths)
    if shuffled:
        records = records.shuffle(
            max(1, config.shuffle_buffer_size),
            seed=_derive_seed(config.seed, "records"),
        )
    batches = records.batch(batch_size, drop_remainder=shuffled)
    first, step = worker

    def parse(payloads: tf.Tensor) -> dict[str, tf.Tensor]:
        if first:
            # A prefetched batch in a checkpoint may have any number of rows, so
            # the static shape must not fix this number.
            payloads = tf.compat.v1.placeholder_with_default(
                payloads[first::step], [None]
            )
        return _parse(payloads, config.max_seq_length)

    batches = batches.map(
        parse, num_parallel_calls=1 if deterministic else tf.data.AUTOTUNE
    ).prefetch(2)
    return batches.with_options(input_options(deterministic))


def _interleave_files(
    paths: list[str], seed: int, deterministic: bool
) -> tf.data.Dataset:
    """Return the records of files; the order of files changes each epoch."""
    names = tf.data.Dataset.from_tensor_slices(paths).repeat()
    names = names.shuffle(len(paths), seed=seed)
    return names.interleave(
        tf.data.TFRecordDataset,
        cycle_length=min(_FILES_AT_ONCE, len(paths)),
        block_length=1,
        num_parallel_calls=None if deterministic else tf.data.AUTOTUNE,
        deterministic=None if deterministic else False,
    )


def input_options(deterministic: bool = True) -> tf.data.Options:
    """Return dataset options; a deterministic order disables autotuning.

    The tuning thread sleeps up to a minute between measurements, and an
    iterator that ends may wait for this thread (TensorFlow 2.20).
    """
    options = tf.data.Options()
    options.deterministic = deterministic
    options.autotune.enabled = not deterministic
    return options


def each_example_once(
    config: PretrainingConfig, batch_size: int
) -> tf.data.Dataset:
    """Return batches that contain each training example of one epoch once."""
    files = InputFiles.of(config)
    if hparam := files.text_hparam(training=True):
        text = RawText(config, hparam)
        text.repeats = False
        records = _cut_text(text)
    else:
        paths = files.find_records(training=True).paths
        records = tf.data.TFRecordDataset(paths)
    batches = records.batch(batch_size).map(
        lambda payloads: _parse(payloads, config.max_seq_length)
    )
    return batches.with_options(input_options())


def _derive_seed(seed: int, purpose: str) -> int:
    return random.Random(f"{seed} {purpose}").getrandbits(31)


def _cut_text(text: RawText) -> tf.data.Dataset:
    """Return the records of documents; iterators save only document numbers."""

    def cut(number: tf.Tensor) -> tf.data.Dataset:
        # Only a stateless function may be part of a saved iterator.
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
