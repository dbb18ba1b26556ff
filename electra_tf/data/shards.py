# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The record files of one job: written under other names, then renamed."""

import contextlib
import os
from typing import Any

from electra_tf.data import storage
from electra_tf.data.manifest import TEMPORARY_PREFIX, shard_name
from electra_tf.data.records import frame_record

_SPARE_FILES = 128
_MANY_FILES = 64  # What Linux has room for at first.


class ShardSet:
    """Deals records out to files, the n-th to file n modulo their number.

    Source: build_pretraining_dataset.py, ExampleWriter.
    Differs: files carry a temporary name until `publish`.
    """

    def __init__(
        self, directory: str, prefix: str, indices: list[int], count: int
    ):
        """Creates the files.

        Args:
          directory: where.
          prefix: such as "pretrain_data".
          indices: which of the `count` shards belong to this set.
          count: number of shards of all sets together.
        """
        self.num_records = 0
        self._directory = directory
        self._names = [shard_name(prefix, i, count) for i in indices]
        self._sizes = [0] * len(indices)
        if not storage.is_remote(directory):
            _allow_open_files(len(indices))
        self._files = [
            storage.open_file(self._temporary(name), "wb")
            for name in self._names
        ]

    def write(self, payload: bytes) -> None:
        """Adds a record."""
        record = frame_record(payload)
        number = self.num_records % len(self._files)
        self._files[number].write(record)
        self._sizes[number] += len(record)
        self.num_records += 1

    def close(self) -> None:
        """Closes the files."""
        for file in self._files:
            file.close()

    def publish(self) -> list[dict[str, Any]]:
        """Gives the closed files their names.

        Returns:
          For each its `name`, number of `records` and size in `bytes`.
        """
        entries = []
        shares = divmod(self.num_records, max(1, len(self._names)))
        for i, (name, size) in enumerate(
            zip(self._names, self._sizes, strict=True)
        ):
            target = os.path.join(self._directory, name)
            storage.rename(self._temporary(name), target)
            records = shares[0] + (i < shares[1])
            entries.append({"name": name, "records": records, "bytes": size})
        return entries

    def _temporary(self, name: str) -> str:
        return os.path.join(self._directory, TEMPORARY_PREFIX + name)


def _allow_open_files(count: int) -> None:
    """Makes room for open files where the system has a limit on them."""
    try:
        import fcntl
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _SPARE_FILES
    # Where the system refuses, opening the files will say so itself.
    with contextlib.suppress(ValueError, OSError):
        if soft != resource.RLIM_INFINITY and soft < wanted:
            if hard != resource.RLIM_INFINITY:
                wanted = min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        # A process with threads (a worker has one) waits some 30 ms each
        # time Linux doubles its table of files; one high number makes it grow
        # once.
        if count >= _MANY_FILES:
            with open(os.devnull, "rb") as file:
                os.close(fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, wanted - 1))
