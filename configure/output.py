# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Standard output and standard error that may go away under a program.

In `run ... 2>&1 | tee log` a Ctrl-C ends `tee` first, a terminal closes, a disk
fills up: none of that may cost the work of a run, whose logs and checkpoints
are files of their own.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

from configure.errors import UserError

_STANDARD = (0, 1, 2)  # descriptors of input, output and error


class LastingStream:
    """A text stream whose writes do not fail when nobody can read them.

    After the first failure everything is discarded, at the level of the
    descriptor, too, so that neither libraries nor the interpreter's own flush
    at its end meet the error again.
    """

    def __init__(self, stream: Any, name: str) -> None:
        """Wrap `stream`, called `name` in the notice of its loss."""
        self._stream, self._name, self._is_lost = stream, name, False

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._stream, attribute)

    def write(self, text: str) -> int:
        if not self._is_lost:
            with self._losing():
                self._stream.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if not self._is_lost:
            with self._losing():
                self._stream.flush()

    @contextlib.contextmanager
    def _losing(self) -> Iterator[None]:
        try:
            yield
        except BlockingIOError:
            pass  # The reader is slow: this text alone is lost.
        except OSError as error:
            self._lose(error.strerror or str(error))
        except ValueError:  # of a closed stream, or about the text
            if not self._stream.closed:
                raise
            self._lose("closed")

    def _lose(self, reason: str) -> None:
        self._is_lost = True
        discard(self._stream)
        if self is not sys.stderr and sys.stderr is not None:
            print(
                f"warning: {self._name} cannot be written ({reason}); the"
                " program goes on without it",
                file=sys.stderr,
                flush=True,
            )


class _ClosedOutput:
    """Standard output that was closed before a program with answers began."""

    def write(self, text: str) -> NoReturn:
        raise UserError(
            "standard output is closed, so that the answers would be lost;"
            " redirect it to a file"
        )

    @property
    def buffer(self) -> "_ClosedOutput":
        return self

    def flush(self) -> None:
        """Do nothing: nothing was written."""

    def isatty(self) -> bool:
        return False


@contextlib.contextmanager
def guarded_output(is_log: bool) -> Iterator[None]:
    """Let a program outlive its standard error, and its output if a log.

    Args:
      is_log: whether standard output reports what the program does. Otherwise
        it is the product, and a write that fails raises as usual.
    """
    _open_standard_descriptors()
    streams = sys.stdout, sys.stderr
    outlive_output(is_log)
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        finally:
            sys.stderr.flush()
            sys.stdout, sys.stderr = streams


def outlive_output(is_log: bool = True) -> None:
    """Make this process go on without readers; see `guarded_output`."""
    if not isinstance(sys.stderr, LastingStream):
        sys.stderr = LastingStream(sys.stderr or _null(), "standard error")
    if is_log and not isinstance(sys.stdout, LastingStream):
        sys.stdout = LastingStream(sys.stdout or _null(), "standard output")
    elif sys.stdout is None:
        sys.stdout = _ClosedOutput()


def discard(stream: Any) -> None:
    """Send what a stream still buffers, and all that follows, nowhere."""
    # A stream in memory has no descriptor.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        number = stream.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)


def _open_standard_descriptors() -> None:
    """Open what is closed of the descriptors 0, 1 and 2.

    The next file that is opened would get the number of a closed one, and
    libraries write their messages to number 2 whatever it is.
    """
    for number in _STANDARD:
        try:
            os.fstat(number)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number


def _null() -> Any:
    return open(os.devnull, "w", encoding="utf-8")
