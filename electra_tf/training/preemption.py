# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Orderly and timely stop of a run after a signal."""

import contextlib
import os
import signal
import threading
import time
from types import FrameType
from typing import Any

# Seconds within which a second SIGTERM counts as a copy of the first: a signal
# to a group of processes reaches this process directly, and again from a parent
# process that forwards the signal.
_SAME_REQUEST_SECONDS = 5.0


class PreemptionHandler:
    """A context in which SIGTERM or SIGINT stops a run after the current step.

    A second signal stops the run at once, except a SIGTERM within 5 seconds of
    the first signal. Schedulers kill a process some time after SIGTERM. Before
    that time the process exits, even in the middle of a step or of a file. All
    files are then complete or absent, and the next start writes missing files.
    """

    def __init__(self, seconds: float = 25.0) -> None:
        """Set the time limit; signals are handled only inside `with`.

        Args:
          seconds: seconds from SIGTERM to the end of the process; 0: no limit.
        """
        self.signal_number: int | None = None
        self._requested_at = 0.0
        self._seconds = seconds
        self._previous: dict[int, Any] = {}
        self._pipe: tuple[int, int] | None = None

    def requested(self) -> bool:
        """Return whether a signal was received."""
        return self.signal_number is not None

    def __enter__(self) -> "PreemptionHandler":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._previous[number] = signal.signal(number, self._note)
            # Python's handlers wait until the running operation ends, but a
            # thread that reads a pipe does not.
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
            if number == signal.SIGTERM and since < _SAME_REQUEST_SECONDS:
                return
            self.__exit__()
            raise KeyboardInterrupt
        self.signal_number = number
        self._requested_at = time.monotonic()
        _write_to_stderr(
            "stopping after this step; send the signal again to stop at once"
        )

    def __exit__(self, *unused: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}
        if self._pipe:
            signal.set_wakeup_fd(self._former)
            # Closing the pipe's write end stops the loop of `_watch`.
            os.close(self._pipe[1])
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
        _write_to_stderr(
            f"{self._seconds:g} seconds after SIGTERM: exiting now. Run the"
            " same command, without --overwrite, to continue."
        )
        os._exit(128 + signal.SIGTERM)


def _write_to_stderr(text: str) -> None:
    """Write a line to standard error from a signal handler.

    print would fail if the signal had interrupted another print. Errors are
    ignored, because the reader may have ended at the same signal, and an
    exception would end the main thread before it saves.
    """
    with contextlib.suppress(OSError):
        os.write(2, f"\n{text}\n".encode())
