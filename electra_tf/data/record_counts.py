# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How many examples a run will read."""

import os
import struct
from typing import Any, NamedTuple

from electra_tf.data import storage
from electra_tf.data.manifest import load_manifest
from electra_tf.data.record_checks import find_record_files, listed_shards

_LENGTH = struct.Struct("<Q")
_AROUND_LENGTH = 4  # bytes of a checksum, after the length and the payload
# Records without a manifest are counted one by one up to this.
_BYTES_COUNTED = 256 << 20


class ExampleCount(NamedTuple):
    """Training examples on disk.

    Attributes:
      examples: how many.
      exact: False where the rest of large files was reckoned from the size.
      files: record files that are not empty.
    """

    examples: int
    exact: bool
    files: int


def count_training_examples(config: Any) -> ExampleCount:
    """Counts the records that `pretrain_tfrecords` names.

    Args:
      config: a PretrainingConfig.

    Returns:
      The number that manifests give. Files without one are read, up to 256
      MiB in all; what is beyond is reckoned from the sizes.

    Raises:
      UserError: if there are no records, or a manifest cannot be read.
    """
    paths = find_record_files(config, training=True).paths
    folders = dict.fromkeys(os.path.dirname(path) for path in paths)
    listed = {folder: _listed(folder) for folder in folders}
    examples = counted = walked = skipped = 0
    for path in paths:
        folder, name = os.path.split(path)
        if shard := listed[folder].get(name):
            examples += shard["records"]
            continue
        size = storage.file_size(path)
        records, read = _walk(path, max(0, _BYTES_COUNTED - walked))
        counted, walked = counted + records, walked + read
        skipped += max(0, size - read)
    if skipped and walked:
        counted += round(counted * skipped / walked)
    return ExampleCount(examples + counted, not skipped, len(paths))


def _listed(folder: str) -> dict[str, dict]:
    manifest = load_manifest(folder)
    return listed_shards(manifest) if manifest else {}


def _walk(path: str, limit: int) -> tuple[int, int]:
    """Counts records by their lengths; stops after `limit` bytes."""
    records = position = 0
    with storage.open_file(path, "rb") as file:
        while position < limit:
            header = file.read(_LENGTH.size)
            if len(header) < _LENGTH.size:
                break
            records += 1
            payload = _LENGTH.unpack(header)[0]
            position += _LENGTH.size + 2 * _AROUND_LENGTH + payload
            file.seek(position)
    return records, position
