# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metadata of cached records: what they were made of, and whether whole."""

import hashlib
import json
import os
from typing import Any

from electra_tf.data import storage


def digest(value: Any) -> str:
    """Returns the SHA-256 of a JSON value, in hexadecimal."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_file(path: str) -> str:
    """Returns the SHA-256 of a file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with storage.open_file(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def read_metadata(
    prefix: str, fingerprint: dict[str, Any]
) -> dict[str, Any] | None:
    """Returns the metadata of records, if they can be used again.

    Args:
      prefix: path of the records without its end.
      fingerprint: what the records should be made of.

    Returns:
      The metadata; None where there are no records, others, or broken ones.
    """
    record_path = f"{prefix}.tfrecord"
    metadata_path = f"{prefix}.metadata"
    if not (storage.exists(record_path) and storage.exists(metadata_path)):
        return None
    with storage.open_file(metadata_path, "rb") as file:
        try:
            metadata = json.loads(file.read())
        except ValueError:
            return None
    if metadata.get("fingerprint") != fingerprint:
        return None
    if metadata.get("n_bytes") != storage.file_size(record_path):
        return None
    return metadata


def write_metadata(prefix: str, metadata: dict[str, Any]) -> None:
    """Writes metadata beside records.

    Args:
      prefix: path of the records without its end.
      metadata: plain values; `fingerprint` and `n_bytes` among them.
    """
    path = f"{prefix}.metadata"
    temporary = f"{path}.{os.getpid()}.tmp"
    with storage.open_file(temporary, "wb") as file:
        file.write((json.dumps(metadata, indent=1) + "\n").encode())
    storage.rename(temporary, path)
