# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Position of a run in its data, as stored in checkpoints.

The position is the state of the iterator over the batches: the files, the
shuffle buffers, the prefetched batches. A continued run restores the iterator
and reads the batch after its last batch. The state is valid only for the data
with which it was saved. Checkpoints therefore also contain a fingerprint of the
data.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping

import tensorflow as tf

from electra_tf.checkpoints import tf1
from electra_tf.checkpoints.hparam_changes import list_changes

ITERATOR = "iterator"  # key in checkpoints


def open_iterator(dataset: tf.data.Dataset) -> Iterator[dict[str, tf.Tensor]]:
    """Return an iterator on the CPU that starts at the first batch."""
    with tf.device("/cpu:0"):
        return iter(dataset)


class DataFingerprint(tf.train.experimental.PythonState):
    """Facts about the data of a run, as stored in checkpoints."""

    KEY = "data"  # key in checkpoints

    def __init__(self, facts: Mapping[str, object]) -> None:
        self._facts = facts

    def serialize(self) -> str:
        return json.dumps(self._facts)

    def deserialize(self, text: str) -> None:
        """Ignore a checkpoint's facts, because `changes` reads them itself."""

    def former_facts(
        self, path: str, otherwise: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Return the facts in a checkpoint.

        Args:
          path: prefix of the checkpoint.
          otherwise: result if the checkpoint contains no facts.
        """
        name = f"{self.KEY}/.ATTRIBUTES/py_state"
        # A corrupt checkpoint is reported later, when the run restores it.
        with contextlib.suppress(IndexError, ValueError, tf.errors.OpError):
            reader = tf1.load_reader(path)
            if reader.has_tensor(name):
                return json.loads(reader.get_tensor(name))
        return otherwise

    def changes(self, former: Mapping[str, object]) -> list[str]:
        """Return a line for each fact that differs from the former fact."""
        return list_changes(former, self._facts, tuple(self._facts))
