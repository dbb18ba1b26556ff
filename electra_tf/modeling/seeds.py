# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Seeds of stateless random operations, one for each named site."""

import zlib

import tensorflow as tf


class SeedStream:
    """Independent seeds, one for each named site.

    The graph contains no generator state, so that a restored run makes the same
    draws as an uninterrupted run.

    Args:
      seed: int32 [2], by convention the run's seed and the step.
      scope: prefix of the names of sites.
    """

    def __init__(self, seed: tf.Tensor, scope: str = "") -> None:
        self._seed = seed
        self._scope = scope

    def child(self, scope: str) -> "SeedStream":
        """Return the stream of the seeds in a sub-scope."""
        return SeedStream(self._seed, f"{self._scope}{scope}/")

    def seed(self, site: str) -> tf.Tensor:
        """Return a site's seed, int32 [2], for tf.random.stateless_*."""
        key = zlib.crc32((self._scope + site).encode()) & 0x7FFFFFFF
        return tf.random.experimental.stateless_fold_in(self._seed, key)
