# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Leaving in order, and in time, when a signal asks for it."""

import contextlib
import os
import signal
import threading
import time
from types import FrameType

# Seconds in which SIGTERM comes twice without being meant twice: whoever ends a
# group of processes reaches this one, and its parent, which passes it on.
_SAME_REQUEST = 5.0


class PreemptionHandler:
    """Turns SIGTERM and SIGINT into a request to stop after this step.

    While active; a second signal stops at once, but for a SIGTERM within 5
    seconds of the first signal. Some time after SIGTERM the
    process ends wherever it is, since whoever sent it will not wait longer:
    every file is whole or absent, and the next start does what is missing.
    """

    def __init__(self, seconds: float = 25.0) -> None:
        """Nothing is installed before `with`."""
        self.signal_number: int | None = None
        self._requested_at = 0.0
        self._seconds = seconds  # from SIGTERM to the end; 0: as many as needed
        self._previous: dict[int, object] = {}
        self._pipe: tuple[int, int] | None = None

    def requested(self) -> bool:
        return self.signal_number is not None

    def __enter__(self) -> "PreemptionHandler":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._previous[number] = signal.signal(number, self._note)
            # Python's handlers wait for the operation that is running; what
            # comes through a pipe does not.
            self._pipe = os.pipe()
            os.set_blocking(self._pipe[1], False)
            self._former = signal.set_wakeup_fd(
                self._pipe[1], warn_on_full_buffer=False
            )
            threading.Thread(
                target=self._watch, args=self._pipe[:1], daemon=True
            ).start()
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested():
            since = time.monotonic() - self._requested_at
            if number == signal.SIGTERM and since < _SAME_REQUEST:
                return
            self.__exit__()
            raise KeyboardInterrupt
        self.signal_number = number
        self._requested_at = time.monotonic()
        _tell("stopping after this step; once more stops at once")

    def __exit__(self, *unused: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}
        if self._pipe:
            signal.set_wakeup_fd(self._former)
            os.close(self._pipe[1])  # which ends the watch
            self._pipe = None

    def _watch(self, reader: int) -> None:
        timer = None
        while number := os.read(reader, 1):
            if self._seconds and not timer and number[0] == signal.SIGTERM:
                timer = threading.Timer(self._seconds, self._leave)
                timer.daemon = True
                timer.start()
        os.close(reader)
        if timer:
            timer.cancel()

    def _leave(self) -> None:
        _tell(
            f"{self._seconds:g} seconds after SIGTERM: leaving as it is; the"
            " same command, without --overwrite, goes on"
        )
        os._exit(128 + signal.SIGTERM)


def _tell(text: str) -> None:
    """Write a line to standard error, wherever a signal interrupted.

    Not by print, in the middle of which the signal may have come. The reader
    may have got the same signal and be gone: an error here would be raised in
    whatever the main thread does, and end it before anything is saved.
    """
    with contextlib.suppress(OSError):
        os.write(2, f"\n{text}\n".encode())
