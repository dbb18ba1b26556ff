# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A lock that admits a single process to a folder."""

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
    """Lock a folder; raise a UserError if another process has locked it.

    The operating system releases the lock when the process ends for any reason.
    Between hosts, the lock is as reliable as the locks of the shared file
    system. A warning is printed for a file system without locks. Remote folders
    are not locked.
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
        # A full disk must not prevent the lock; later writes report a full
        # disk.
        with contextlib.suppress(OSError):
            os.truncate(file, 0)
            os.pwrite(file, holder.encode(), 0)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.remove(path)
        os.close(file)


def _open_locked(folder: str, path: str) -> int:
    """Return the descriptor of a lock file that this process has locked."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(file, 200).decode("utf-8", "replace").strip()
            os.close(file)
            raise UserError(
                f"{folder}: in use by {holder or 'another process'} (lock file"
                f" {path}). Wait for this process, stop it, or choose another"
                " folder."
            ) from None
        except OSError as error:
            print(
                f"WARNING: {folder}: the file system does not support locks"
                f" ({error.strerror}), so a second run in this folder cannot be"
                " prevented. Start only one run in this folder.",
                flush=True,
            )
        # If the previous holder removed the file before the file was locked
        # here, the loop opens the path again.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        os.close(file)
