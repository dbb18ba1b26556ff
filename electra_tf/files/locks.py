# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A lock that admits one process to a folder."""

import contextlib
import datetime
import fcntl
import os
import socket
from collections.abc import Iterator

from configure.errors import UserError
from electra_tf.files import filesystem

LOCK_FILE = "run.lock"


@contextlib.contextmanager
def folder_lock(folder: str) -> Iterator[None]:
    """Lock a folder; raise a UserError that names the process holding it.

    The operating system holds the lock and releases it when the process ends,
    for whatever reason. Between hosts it is as reliable as the locks of the
    file system that they share. A file system without locks gets a warning;
    remote folders are not locked.
    """
    if filesystem.is_remote(folder):
        yield
        return
    path = os.path.join(folder, LOCK_FILE)
    file = _open_locked(folder, path)
    try:
        now = datetime.datetime.now().isoformat(" ", "seconds")
        holder = (
            f"process {os.getpid()} on {socket.gethostname()} (since {now})"
        )
        # The program's own writes report a full disk.
        with contextlib.suppress(OSError):
            os.truncate(file, 0)
            os.pwrite(file, holder.encode(), 0)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.remove(path)
        os.close(file)


def _open_locked(folder: str, path: str) -> int:
    """Return the descriptor of a lock file that this process holds."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(file, 200).decode("utf-8", "replace").strip()
            os.close(file)
            raise UserError(
                f"{folder}: in use by {holder or 'another process'} (lock file"
                f" {path}). Wait, stop it, or choose another folder."
            ) from None
        except OSError as error:
            print(
                f"WARNING: {folder}: its file system has no locks"
                f" ({error.strerror}): a second run in it is not refused.",
                flush=True,
            )
        # A holder removes the file when it leaves.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        os.close(file)
