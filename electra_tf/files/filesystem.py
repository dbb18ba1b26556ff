# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Operations on files and folders by path.

Python accesses local paths, and tf.io.gfile accesses `scheme://` paths.
"""

import contextlib
import glob
import gzip
import io
import lzma
import os
import resource
import sys
import zlib
from typing import IO, Any

# Errors raised while reading a compressed file that is corrupt or truncated.
DECOMPRESSION_ERRORS = (
    EOFError,
    zlib.error,
    lzma.LZMAError,
    gzip.BadGzipFile,
)
COMPRESSED_ENDINGS = (".gz", ".xz")
# Number of file descriptors reserved for libraries, logs and streams.
_SPARE_FILES = 128


def _gfile():
    import tensorflow as tf

    return tf.io.gfile


def is_remote(path: str) -> bool:
    """Return whether only tf.io.gfile can open a path (gs://, hdfs://)."""
    return "://" in path


def io_errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors that file systems raise.

    TensorFlow's errors are included only if TensorFlow has been imported.
    Before the import, no remote path is accessed.
    """
    tf = sys.modules.get("tensorflow")
    return (OSError, tf.errors.OpError) if tf else (OSError,)


def open_file(path: str, mode: str) -> IO[bytes]:
    """Open a file in a binary mode ("rb" or "wb")."""
    if not is_remote(path):
        return open(path, mode)
    file = _gfile().GFile(path, mode)
    return io.BufferedReader(_RawGFile(file)) if mode == "rb" else file


class _RawGFile(io.RawIOBase):
    """A GFile with the methods that Python's buffered readers need.

    Unlike GFile.readline, BufferedReader.readline can limit the bytes read.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self.tell = file.tell

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._file.seek(offset, whence)
        return self._file.tell()


def open_decompressed(path: str) -> IO[bytes]:
    """Open a file for reading, and decompress .gz and .xz files."""
    raw = open_file(path, "rb")
    if path.endswith(".gz"):
        return gzip.GzipFile(fileobj=raw)
    return lzma.LZMAFile(raw) if path.endswith(".xz") else raw


def list_directory(path: str) -> list[str]:
    """Return the sorted names in a directory, without trailing slashes."""
    if is_remote(path):
        return sorted(name.rstrip("/") for name in _gfile().listdir(path))
    return sorted(os.listdir(path))


def match_pattern(pattern: str) -> list[str]:
    """Return the paths that match a glob pattern."""
    match = _gfile().glob if is_remote(pattern) else glob.glob
    return sorted(match(pattern))


def is_directory(path: str) -> bool:
    """Return whether a path is a directory."""
    return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def exists(path: str) -> bool:
    """Return whether a path is an existing file or directory."""
    return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def file_size(path: str) -> int:
    """Return the size of a file in bytes."""
    if is_remote(path):
        return _gfile().stat(path).length
    return os.path.getsize(path)


def make_directory(path: str) -> None:
    """Create a directory and its parents, if they do not exist."""
    if is_remote(path):
        _gfile().makedirs(path)
    else:
        os.makedirs(path, exist_ok=True)


def rename(source: str, target: str) -> None:
    """Rename a file, and replace an existing target."""
    if is_remote(source):
        _gfile().rename(source, target, overwrite=True)
    else:
        os.replace(source, target)


def remove(path: str) -> None:
    """Delete one file."""
    if is_remote(path):
        _gfile().remove(path)
    else:
        os.remove(path)


def allow_open_files(count: int) -> None:
    """Raise the process's limit on open files to `count` plus a reserve."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = count + _SPARE_FILES
    if soft == resource.RLIM_INFINITY or soft >= limit:
        return
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    # If the system refuses a higher limit, opening the files reports the error.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
