# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a person sees while a run goes on."""

import contextlib
import datetime
import sys
import time
from collections.abc import Callable, Iterator
from typing import TextIO


class Console:
    """Writes lines to a stream, flushed at once."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Writes to `stream`, by default to standard output as it is now."""
        self._stream = stream or sys.stdout

    def line(self, text: str = "") -> None:
        """Writes one line."""
        self._stream.write(text + "\n")
        self._stream.flush()

    def heading(self, text: str) -> None:
        """Writes a line between two rules."""
        rule = "=" * 80
        self.line(rule)
        self.line(text)
        self.line(rule)

    def table(self, values: dict[str, object]) -> None:
        """Writes `key: value` lines, aligned."""
        width = max(map(len, values), default=0)
        for key, value in values.items():
            self.line(f"{key + ':':<{width + 1}} {value}")

    def warning(self, text: str) -> None:
        """Writes a line that cannot be overlooked."""
        self.line(f"WARNING: {text}")


class Progress:
    """Makes the progress line: step, rate, elapsed time, time to go.

    Differs: the first step is left out of the rate (the original's rate has it
    in, and the graph is traced then), so the time to go is right from the
    start; elapsed time has everything in.

    Source: google-research/electra, util/training_utils.py, ETAHook.
    """

    def __init__(
        self,
        start_step: int,
        total_steps: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Starts the clock at `start_step`; steps count to `total_steps`."""
        self._clock = clock
        self._total = total_steps
        self._start_step = start_step
        self._start = clock()
        self._rate_from: tuple[int, float] = (start_step, self._start)
        self._last = self._rate_from

    def first_step_done(self, step: int) -> None:
        """Starts the measuring of rates: the graph has been traced."""
        self._rate_from = self._last = (step, self._clock())

    def timing(
        self, step: int, tokens_per_step: float
    ) -> dict[str, float | None]:
        """Rates since the last call; call once per row.

        Args:
          step: updates done so far.
          tokens_per_step: real tokens of a step, mean over the interval.

        Returns:
          seconds since the start, steps_per_second, tokens_per_second; the
          rates are None where no step has been measured yet.
        """
        now = self._clock()
        steps, seconds = step - self._last[0], now - self._last[1]
        self._last = (step, now)
        rate = steps / max(seconds, 1e-9) if steps else None
        return {
            "seconds": now - self._start,
            "steps_per_second": rate,
            "tokens_per_second": rate and rate * tokens_per_step,
        }

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Leaves what happens inside out of the intervals `timing` measures.

        The rate and the time to go of `line` keep it in: saving and evaluating
        will go on happening.
        """
        begin = self._clock()
        yield
        step, time_of_last = self._last
        self._last = (step, time_of_last + self._clock() - begin)

    def line(self, step: int, shown: dict[str, str]) -> str:
        """The progress line.

        Args:
          step: updates done so far.
          shown: further items in order, as text.

        Returns:
          Text like `20/300 = 6.7%, SPS: 4.9, ELAP: 4, ETA: 57 - loss: 9.1`.
        """
        now = self._clock()
        since, begin = self._rate_from
        if step <= since:
            since, begin = self._start_step, self._start
        per_step = max(now - begin, 1e-9) / max(step - since, 1)
        head = (
            f"{step}/{self._total} = {100.0 * step / max(self._total, 1):.1f}%,"
            f" SPS: {1 / per_step:.1f},"
            f" ELAP: {seconds_text(now - self._start)},"
            f" ETA: {seconds_text(max(self._total - step, 0) * per_step)}"
        )
        return head + "".join(f" - {k}: {v}" for k, v in shown.items())


def seconds_text(seconds: float) -> str:
    """Formats a duration as the original does: 7, 1:05, 2:00:00.

    Leading zeros and empty fields are dropped; from a day on it reads like
    `1 day, 1:00:00`.

    Source: google-research/electra, util/training_utils.py, secs_to_str.
    """
    whole = round(seconds)
    if whole >= 86400:
        return str(datetime.timedelta(seconds=whole))
    hours, rest = divmod(whole, 3600)
    minutes, last = divmod(rest, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{last:02d}"
    if minutes:
        return f"{minutes}:{last:02d}"
    return str(last)
