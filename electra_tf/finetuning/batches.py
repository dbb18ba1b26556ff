# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The batches of cached records, shuffled or grouped by length."""

import dataclasses
import random
from collections.abc import Sequence

import tensorflow as tf

from electra_tf.data import feature_spec
from electra_tf.data.input_pipeline import input_options

# Lengths are rounded up to multiples of this width for sorting, and also in
# batches if each new length requires a compilation.
BUCKET_WIDTH = 16  # tokens
_BATCHES_PER_POOL = 50  # batches whose examples are sorted by length together
_PARSE_AT_ONCE = 4096  # records


@dataclasses.dataclass(frozen=True)
class Batches:
    """A callable that returns the same batches of a split at every call."""

    path: str  # the record file
    specs: Sequence[feature_spec.FeatureSpec]  # every feature of a record
    n_examples: int  # records in the file, padding rows included
    batch_size: int
    max_seq_length: int  # L of the batches before trimming
    training: bool  # True: shuffled, without end; False: each record once
    shuffle_buffer_size: int = 100
    shuffle_whole_set: bool = False  # whether to shuffle all examples
    by_length: bool = False  # whether a batch has examples of similar length
    trim: bool = True  # whether to pad to the longest row of a batch, not to L
    shortest: int = 1  # minimum length of a batch
    # Batch lengths are rounded up to multiples of this number, at most to L.
    multiple: int = 1
    seed: int = 0

    def __call__(self) -> tf.data.Dataset:
        """Return the batches: features by name, int32 or float32 [B, ...].

        An axis of length L in a record has the length of the batch, at most L.
        An iterator made by `iter()` can be saved in a tf.train.Checkpoint.

        Source: google-research/electra, finetune/preprocessing.py,
          _input_fn_builder.
        Differs: the order follows from a seed, whole batches are parsed, and
          evaluations include the last, incomplete batch.
        """
        if self.by_length or (self.training and self.shuffle_whole_set):
            batches = self._gathered()
        else:
            records = tf.data.TFRecordDataset(self.path)
            if self.training:
                records = records.repeat().shuffle(
                    max(1, self.shuffle_buffer_size),
                    seed=self._seed_of("records"),
                )
            batches = records.batch(
                self.batch_size, drop_remainder=self.training
            )
        batches = batches.map(self._parse, num_parallel_calls=1).prefetch(2)
        options = input_options()
        options.experimental_distribute.auto_shard_policy = (
            tf.data.experimental.AutoShardPolicy.OFF
        )
        return batches.with_options(options)

    def _parse(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        features = feature_spec.decode_example(self.specs, records)
        return self._trim(features) if self.trim else features

    def _trim(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Cut off columns that are padding in every row.

        A column is padding only if it is 0 in every `*_mask`: a row may have
        more labels than tokens, because some words have no wordpiece.
        """
        needed = tf.constant(self.shortest, tf.int32)
        for spec in self.specs:
            if spec.per_token and spec.name.endswith("_mask"):
                used = tf.reduce_any(features[spec.name] != 0, 0)  # [L]
                lengths = tf.where(used, tf.range(1, tf.size(used) + 1), 0)
                needed = tf.maximum(needed, tf.reduce_max(lengths))
        needed = _round_up(needed, self.multiple)
        trimmed = {}
        for spec in self.specs:
            feature = features[spec.name]
            trimmed[spec.name] = (
                feature[:, :needed] if spec.per_token else feature
            )
        return trimmed

    def _gathered(self) -> tf.data.Dataset:
        """Return batches whose records are gathered from memory by index."""
        records, lengths = self._load()
        if self.training:
            numbers = tf.data.Dataset.counter().flat_map(
                lambda epoch: tf.data.Dataset.from_tensor_slices(
                    self._epoch_order(lengths, epoch)
                )
            )
        else:
            order = tf.argsort(-lengths, stable=True)
            numbers = tf.data.Dataset.from_tensor_slices(order)
            numbers = numbers.batch(self.batch_size)
        return numbers.map(lambda batch: tf.gather(records, batch))

    def _epoch_order(self, lengths: tf.Tensor, epoch: tf.Tensor) -> tf.Tensor:
        """Return the record numbers of an epoch's batches, [batches, size]."""
        size = self.batch_size
        count = self.n_examples // size * size

        def shuffled(numbers: tf.Tensor, purpose: str) -> tf.Tensor:
            seed = self._seed_of(purpose)
            pair = tf.stack([seed, tf.cast(epoch, tf.int32)])
            keys = tf.random.stateless_uniform([tf.shape(numbers)[0]], pair)
            return tf.gather(numbers, tf.argsort(keys))

        order = shuffled(tf.range(self.n_examples), "examples")[:count]
        if not self.by_length:
            return tf.reshape(order, [-1, size])
        pool = tf.range(count) // (size * _BATCHES_PER_POOL)
        span = self.max_seq_length + 1
        key = pool * span + tf.gather(lengths, order)
        order = tf.gather(order, tf.argsort(key, stable=True))
        return shuffled(tf.reshape(order, [-1, size]), "batches")

    def _seed_of(self, purpose: str) -> int:
        """Return the seed of the shuffle that `purpose` names."""
        return random.Random(f"{self.seed} {purpose}").getrandbits(31)

    def _load(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Return records, string [n], and their rounded lengths, int32 [n]."""
        mask_specs = [s for s in self.specs if s.name == "input_mask"]
        records, lengths = [], []
        parts = tf.data.TFRecordDataset(self.path).batch(_PARSE_AT_ONCE)
        for part in parts.with_options(input_options()):
            parsed = feature_spec.decode_example(mask_specs, part)["input_mask"]
            records.append(part)
            # Lengths are rounded, so that many are equal: the stable sort by
            # length then keeps much of the shuffled order.
            lengths.append(_round_up(tf.reduce_sum(parsed, 1), BUCKET_WIDTH))
        return tf.concat(records, 0), tf.concat(lengths, 0)


def _round_up(lengths: tf.Tensor, multiple: int) -> tf.Tensor:
    return -(-lengths // multiple) * multiple
