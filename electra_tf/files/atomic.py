# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files and folders that get their names only when they are complete."""

import contextlib
import fcntl
import glob
import os
import shutil
from collections.abc import Iterator
from typing import IO

from configure.errors import UserError
from electra_tf.files import filesystem


def _open_exclusively(path: str) -> IO[bytes]:
    """Wait until no other process writes a file, then open and empty it."""
    if filesystem.is_remote(path):
        return filesystem.open_file(path, "wb")
    while True:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "wb")
        with contextlib.suppress(OSError):  # Some file systems have no locks.
            fcntl.flock(file, fcntl.LOCK_EX)
        # If the previous writer renamed or removed the file before the file was
        # locked here, the loop opens the path again.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                file.truncate(0)
                return file
        file.close()


def part_path(path: str) -> str:
    """Return the path of this process's unfinished version of a file.

    Removes the unfinished versions of processes that ended. Raises a UserError
    if another process, which the error names, is writing the file.
    """
    if filesystem.is_remote(path):
        return f"{path}.part"
    for part in glob.glob(f"{glob.escape(path)}.*.part"):
        process = part.removeprefix(f"{path}.").removesuffix(".part")
        if process.isdecimal():
            _remove_unlocked(part, path, process)
    return f"{path}.{os.getpid()}.part"


def _remove_unlocked(part: str, path: str, process: str) -> None:
    """Remove an unfinished version `part` whose writer has ended."""
    try:
        file = os.open(part, os.O_RDONLY)
    except FileNotFoundError:  # The writer has just finished.
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.isdir(part):
            shutil.rmtree(part, ignore_errors=True)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.remove(part)
    except BlockingIOError:
        raise UserError(
            f"{path}: process {process} is writing this file ({part}). Wait for"
            " the process, stop it, or choose another name."
        ) from None
    except OSError:
        # The file system has no locks, so the process may still be writing the
        # unfinished version, which therefore stays.
        pass
    finally:
        os.close(file)


@contextlib.contextmanager
def part_folder(path: str, parent: str) -> Iterator[str]:
    """Make a folder in `parent` for the unfinished version of a folder.

    Removes the folders of ended processes first, and this folder when the
    `with` block ends. Both folders are local.
    """
    name = os.path.basename(os.path.abspath(path))
    part = part_path(os.path.join(parent, name))
    os.mkdir(part)
    folder = os.open(part, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # Some file systems have no locks.
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
        os.close(folder)


@contextlib.contextmanager
def atomic_file(
    path: str, temporary: str | None = None, hint: str = "", keep: bool = False
) -> Iterator[IO[bytes]]:
    """Open a binary file that gets its name once it is complete.

    Creates the parent directories. After an error, an earlier file stays
    unchanged. A process that opens the same temporary file waits for this
    process.

    Args:
      path: path of the complete file.
      temporary: path of the unfinished file. None: `path`.tmp.
      hint: remedy that the error message names if writing fails.
      keep: whether `temporary` stays after an error.
    """
    temporary = temporary or f"{path}.tmp"
    io_errors = filesystem.io_errors()
    try:
        if filesystem.is_directory(path):
            raise IsADirectoryError(
                "the path is a directory; expected the path of a file. Choose a"
                " different path"
            )
        filesystem.make_directory(os.path.dirname(path) or ".")
        file = _open_exclusively(temporary)
    except io_errors as error:
        raise _cannot_write(path, error, hint) from error
    try:
        with file:
            yield file
            if not filesystem.is_remote(path):
                # The file is renamed while it is locked, so that no other
                # process opens the complete file by its temporary name.
                file.flush()
                filesystem.rename(temporary, path)
        if filesystem.is_remote(path):
            filesystem.rename(temporary, path)
    except BaseException as error:
        if not keep:
            with contextlib.suppress(*io_errors):
                filesystem.remove(temporary)
        # Errors that name other files, and errors of pipes, come from the
        # caller's block and are raised unchanged.
        filename = getattr(error, "filename", None)
        is_foreign = filename is not None and filename != temporary
        if is_foreign or isinstance(error, BrokenPipeError):
            raise
        if isinstance(error, io_errors):
            raise _cannot_write(path, error, hint) from error
        raise


def write_atomically(
    path: str,
    content: str | bytes,
    temporary: str | None = None,
    hint: str = "",
) -> None:
    """Write a file that appears only when complete; see `atomic_file`."""
    if isinstance(content, str):
        content = content.encode()
    with atomic_file(path, temporary, hint) as file:
        file.write(content)


def _cannot_write(path: str, error: Exception, hint: str) -> UserError:
    reason = getattr(error, "strerror", None) or str(error)
    hint = f" {hint}" if hint else ""
    return UserError(f"{path}: cannot be written: {reason}.{hint}")
