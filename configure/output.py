# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Standard output and standard error whose loss does not end a program.

In `run ... 2>&1 | tee log`, Ctrl-C ends `tee` first; a terminal may close, or a
disk may be full. A run must continue after such events, because its logs and
checkpoints are separate files.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

from configure.errors import UserError

_STANDARD_DESCRIPTORS = (0, 1, 2)  # standard input, output and error


class LastingStream:
    """A text stream that discards all text after the first failed write.

    The stream's descriptor is then redirected, so that writes of libraries and
    the interpreter's last flush succeed.
    """

    def __init__(self, stream: Any, name: str) -> None:
        """Wrap a stream; the warning about its loss contains `name`."""
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
            pass  # The reader is slow, and only this text is lost.
        except OSError as error:
            self._lose(error.strerror or str(error))
        except ValueError:  # The stream is closed, or the text is invalid.
            if not self._stream.closed:
                raise
            self._lose("closed")

    def _lose(self, reason: str) -> None:
        self._is_lost = True
        discard(self._stream)
        if self is not sys.stderr and sys.stderr is not None:
            print(
                f"warning: {self._name} cannot be written ({reason}); the"
                " program continues without it",
                file=sys.stderr,
                flush=True,
            )


class _ClosedOutput:
    """Standard output that was closed before the program started."""

    def write(self, text: str) -> NoReturn:
        raise UserError(
            "standard output is closed, so the results would be lost. Redirect"
            " standard output to a file."
        )

    @property
    def buffer(self) -> "_ClosedOutput":
        return self

    def flush(self) -> None:
        """Do nothing, because no text was written."""

    def isatty(self) -> bool:
        return False


@contextlib.contextmanager
def guarded_output(is_log: bool) -> Iterator[None]:
    """Let a program survive the loss of output that only reports progress.

    Args:
      is_log: whether standard output only reports progress. Otherwise it
        contains the result, and a failing write raises an exception as usual.
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
    """Let this process survive the loss of its output; see `guarded_output`."""
    if not isinstance(sys.stderr, LastingStream):
        sys.stderr = LastingStream(sys.stderr or _null(), "standard error")
    if is_log and not isinstance(sys.stdout, LastingStream):
        sys.stdout = LastingStream(sys.stdout or _null(), "standard output")
    elif sys.stdout is None:
        sys.stdout = _ClosedOutput()


def discard(stream: Any) -> None:
    """Discard a stream's buffered text and all text written later."""
    # A stream in memory has no descriptor, and needs no redirection.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        number = stream.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)


def _open_standard_descriptors() -> None:
    """Open the standard descriptors that are closed.

    The next file opened would otherwise get the number of a closed descriptor,
    and libraries would write their messages to number 2 into that file.
    """
    for number in _STANDARD_DESCRIPTORS:
        try:
            os.fstat(number)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            # os.open uses the lowest free descriptor, which is the closed one.
            os.open(os.devnull, os.O_RDWR)


def _null() -> Any:
    return open(os.devnull, "w", encoding="utf-8")
