# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Cached records -> batches, in an order that can be saved and resumed."""

import dataclasses
import random
from collections.abc import Sequence

import tensorflow as tf

from electra_tf.data.feature_spec import FeatureSpec, decode_example

# Batches are padded to a multiple of this.
BUCKET_WIDTH = 16
# Batches whose examples are sorted by length among each other.
_BATCHES_PER_POOL = 50
_PARSE_AT_ONCE = 4096


@dataclasses.dataclass(frozen=True)
class Batches:
    """A split's records as a data set of batches.

    Call it for a fresh data set; the same arguments give the same batches.

    Attributes:
      path: the record file.
      specs: every feature of a record.
      n_examples: records in the file, padding rows included.
      batch_size: B unless another is asked for.
      max_seq_length: L of the records.
      training: repeat for ever, shuffled; else once, in order.
      shuffle_buffer_size: examples shuffled among each other.
      shuffle_whole_set: shuffle all examples, anew each epoch.
      by_length: put examples of similar length together.
      trim: pad batches to their longest row, not to L.
      shortest: least length of a batch.
      seed: of the order, unless another is asked for.
    """

    path: str
    specs: Sequence[FeatureSpec]
    n_examples: int
    batch_size: int
    max_seq_length: int
    training: bool
    shuffle_buffer_size: int = 100
    shuffle_whole_set: bool = False
    by_length: bool = False
    trim: bool = True
    shortest: int = 1
    seed: int = 0

    def __call__(
        self, batch_size: int | None = None, seed: int | None = None
    ) -> tf.data.Dataset:
        """Returns the data set.

        Args:
          batch_size: B; training drops a last smaller batch, evaluation
            keeps it.
          seed: of the order of a training set; trials have their own.

        Returns:
          Batches of every feature by name, int32 or float32 [B, ...]. Where a
          record has L, a batch has its own length, at most L. An iterator
          made by `iter()` can be saved in a tf.train.Checkpoint.

        Source: google-research/electra, finetune/preprocessing.py,
          _input_fn_builder.
        Differs: seeded; parses whole batches; nothing is lost at the end of
          an evaluation.
        """
        size = batch_size or self.batch_size
        seed = self.seed if seed is None else seed
        if self.by_length or (self.training and self.shuffle_whole_set):
            batches = self._gathered(size, seed)
        else:
            records = tf.data.TFRecordDataset(self.path)
            if self.training:
                records = records.repeat().shuffle(
                    max(1, self.shuffle_buffer_size),
                    seed=_seed(seed, "records"),
                )
            batches = records.batch(size, drop_remainder=self.training)
        batches = batches.map(self._parse, num_parallel_calls=1).prefetch(2)
        options = tf.data.Options()
        options.deterministic = True
        options.experimental_distribute.auto_shard_policy = (
            tf.data.experimental.AutoShardPolicy.OFF
        )
        return batches.with_options(options)

    def _parse(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        features = decode_example(self.specs, records)
        return self._trim(features) if self.trim else features

    def _trim(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Cuts off columns that are padding in every row.

        Columns count that any `*_mask` uses: labels may reach further than
        tokens, where words have no wordpiece.
        """
        needed = tf.constant(self.shortest, tf.int32)
        for spec in self.specs:
            if self._is_per_token(spec) and spec.name.endswith("_mask"):
                used = tf.reduce_any(features[spec.name] != 0, 0)  # [L]
                places = tf.where(used, tf.range(1, tf.size(used) + 1), 0)
                needed = tf.maximum(needed, tf.reduce_max(places))
        length = tf.minimum(_round_up(needed), self.max_seq_length)
        return {
            spec.name: features[spec.name][:, :length]
            if self._is_per_token(spec)
            else features[spec.name]
            for spec in self.specs
        }

    def _is_per_token(self, spec: FeatureSpec) -> bool:
        if spec.per_token is not None:
            return spec.per_token
        return spec.shape[:1] == [self.max_seq_length]

    def _gathered(self, size: int, seed: int) -> tf.data.Dataset:
        """Batches of records picked by number from memory."""
        records, lengths = self._load()
        if not self.training:
            order = tf.argsort(-lengths, stable=True)
            numbers = tf.data.Dataset.from_tensor_slices(order).batch(size)
        else:

            def epoch_batches(epoch: tf.Tensor) -> tf.data.Dataset:
                order = self._epoch_order(lengths, size, seed, epoch)
                return tf.data.Dataset.from_tensor_slices(order)

            epochs = tf.data.Dataset.counter()
            numbers = epochs.flat_map(epoch_batches)
        return numbers.map(lambda chosen: tf.gather(records, chosen))

    def _epoch_order(
        self, lengths: tf.Tensor, size: int, seed: int, epoch: tf.Tensor
    ) -> tf.Tensor:
        """Returns an epoch's record numbers, int32 [batches, size]."""
        count = self.n_examples // size * size

        def shuffled(numbers: tf.Tensor, purpose: str) -> tf.Tensor:
            pair = tf.stack([_seed(seed, purpose), tf.cast(epoch, tf.int32)])
            keys = tf.random.stateless_uniform([tf.shape(numbers)[0]], pair)
            return tf.gather(numbers, tf.argsort(keys))

        order = shuffled(tf.range(self.n_examples), "examples")
        order = order[:count]
        if self.by_length:
            pool = tf.range(count) // (size * _BATCHES_PER_POOL)
            span = self.max_seq_length + 1
            key = pool * span + tf.gather(lengths, order)
            order = tf.gather(order, tf.argsort(key, stable=True))
        batches = tf.reshape(order, [-1, size])
        return shuffled(batches, "batches") if self.by_length else batches

    def _load(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns all records, string [n], and their lengths, int32 [n]."""
        mask = [s for s in self.specs if s.name == "input_mask"]
        records, lengths = [], []
        for part in tf.data.TFRecordDataset(self.path).batch(_PARSE_AT_ONCE):
            parsed = decode_example(mask, part)["input_mask"]
            records.append(part)
            # Within a bucket the order stays as it is.
            lengths.append(_round_up(tf.reduce_sum(parsed, 1)))
        return tf.concat(records, 0), tf.concat(lengths, 0)


def _round_up(lengths: tf.Tensor) -> tf.Tensor:
    """Rounds int32 lengths up to a multiple of `BUCKET_WIDTH`."""
    return (lengths + BUCKET_WIDTH - 1) // BUCKET_WIDTH * BUCKET_WIDTH


def _seed(seed: int, purpose: str) -> int:
    """A seed of its own for each shuffle."""
    return random.Random(f"{seed} {purpose}").getrandbits(31)
