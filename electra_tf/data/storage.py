# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files by path: local ones directly, `scheme://` ones through tf.io.gfile.

Local work stays free of TensorFlow, whose import takes seconds.
"""

import os
from typing import IO


def _gfile():
    import tensorflow as tf

    return tf.io.gfile


def is_remote(path: str) -> bool:
    """Whether only tf.io.gfile can reach the path (gs://, hdfs://, ...)."""
    return "://" in path


def open_file(path: str, mode: str) -> IO[bytes]:
    """Opens in a binary mode ("rb" or "wb")."""
    if is_remote(path):
        return _gfile().GFile(path, mode)
    return open(path, mode)


def list_directory(path: str) -> list[str]:
    """Names in a directory, sorted, without trailing slashes."""
    if is_remote(path):
        return sorted(n.rstrip("/") for n in _gfile().listdir(path))
    return sorted(os.listdir(path))


def is_directory(path: str) -> bool:
    """Whether the path is a directory."""
    return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def exists(path: str) -> bool:
    """Whether something is there."""
    return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def file_size(path: str) -> int:
    """Size in bytes."""
    if is_remote(path):
        return _gfile().stat(path).length
    return os.path.getsize(path)


def make_directory(path: str) -> None:
    """Creates a directory and its parents; fine if it exists."""
    if is_remote(path):
        _gfile().makedirs(path)
    else:
        os.makedirs(path, exist_ok=True)


def rename(source: str, target: str) -> None:
    """Renames, replacing the target."""
    if is_remote(source):
        _gfile().rename(source, target, overwrite=True)
    else:
        os.replace(source, target)


def remove(path: str) -> None:
    """Deletes one file."""
    if is_remote(path):
        _gfile().remove(path)
    else:
        os.remove(path)
