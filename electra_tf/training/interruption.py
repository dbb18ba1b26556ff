# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Turns SIGTERM and SIGINT into a request to stop after the current step."""

import os
import signal
import threading
from types import FrameType


class Interruption:
    """While active, notes the first signal; a second one stops at once."""

    def __init__(self) -> None:
        """Nothing is installed before `with`."""
        self.signal_number: int | None = None
        self._previous: dict[int, object] = {}

    def requested(self) -> bool:
        """Whether a stop was asked for."""
        return self.signal_number is not None

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *unused: object) -> None:
        self._put_back()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested():
            self._put_back()
            raise KeyboardInterrupt
        self.signal_number = number
        # Not print: the signal may have come in the middle of one.
        os.write(2, b"\nstopping after this step; once more stops at once\n")

    def _put_back(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}
