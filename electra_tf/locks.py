# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A folder for one process at a time."""

import contextlib
import datetime
import os
import socket
from collections.abc import Iterator

from configure.errors import UserError
from electra_tf import files

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCK = "run.lock"


@contextlib.contextmanager
def folder_lock(folder: str) -> Iterator[None]:
    """Lock a folder; raise a UserError that names the process that has it.

    The lock is the system's and ends with its process, however that ends.
    Between hosts it is as good as that of the file system they share. A file
    system without locks gets a warning; remote paths and Windows have none.
    """
    path = os.path.join(folder, LOCK)
    if files.is_remote(folder) or fcntl is None:
        yield
        return
    file = _open_locked(folder, path)
    try:
        now = datetime.datetime.now().isoformat(" ", "seconds")
        who = f"process {os.getpid()} on {socket.gethostname()} (since {now})"
        with contextlib.suppress(OSError):  # A full disk is reported elsewhere.
            os.truncate(file, 0)
            os.pwrite(file, who.encode(), 0)
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
