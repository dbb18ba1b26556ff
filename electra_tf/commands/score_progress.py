# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How far scoring has come, on standard error."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from electra_tf.commands.inspection_flags import Reading

if TYPE_CHECKING:
    from electra_tf.inspection.reranking import NBest

# Seconds between two lines, on a terminal and in a log.
_ON_TERMINAL, _IN_LOG = 0.5, 30.0


class ScoreProgress:
    """Counts texts and tokens as they go by.

    Args:
      stream: where lines go.
      method: name of the score.
      reading: knows which share of the file was read.
      clock: seconds, increasing.
    """

    def __init__(
        self,
        stream: TextIO,
        method: str,
        reading: Reading,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream, self._method, self._reading = stream, method, reading
        self._clock = clock
        self._begin = self._last = clock()
        self._texts = self._tokens = self._unknown = self._divided = 0
        self._total = 0.0

    def watch(self, lists: "Iterable[NBest]") -> "Iterator[NBest]":
        """Passes lists on, counting; says now and then how far it is."""
        pause = _ON_TERMINAL if self._stream.isatty() else _IN_LOG
        for scored in lists:
            for one in scored:
                result = one.text_score
                self._texts += 1
                self._tokens += len(result.tokens)
                self._unknown += result.unknown
                self._divided += result.windows > 1
                self._total += result.score
            yield scored
            if self._clock() - self._last > pause:
                self._last = self._clock()
                self._say(self._line())

    def close(self) -> None:
        """Says what there was in all."""
        line = self._line(at_end=True)
        if self._tokens:
            per_token = -self._total / self._tokens
            line += f", {per_token:.3f} nats a token"
            # Electric's are not normalized: their mean is no entropy.
            if self._method != "electric" and per_token < 50:
                line += f" (pseudo-perplexity {math.exp(per_token):.1f})"
        self._say(line, end="\n")
        if self._unknown:
            self._stream.write(
                f"{self._unknown:,} tokens are [UNK]: the vocabulary lacks"
                " them, and their scores say little.\n"
            )
        if self._divided:
            self._stream.write(
                f"{self._divided:,} texts are longer than the model's position"
                " table and were scored in overlapping windows.\n"
            )
        self._stream.flush()

    def _line(self, at_end: bool = False) -> str:
        seconds = max(self._clock() - self._begin, 1e-9)
        share = self._reading.share
        head = "" if share is None or at_end else f"{100 * share:.0f}% read: "
        return (
            f"{head}{self._texts:,} texts, {self._tokens:,} tokens scored by"
            f" {self._method}, {self._texts / seconds:.1f} texts/s"
        )

    def _say(self, line: str, end: str = "") -> None:
        terminal = self._stream.isatty()
        lead = "\r\x1b[K" if terminal else ""
        self._stream.write(f"{lead}{line}{end if terminal else chr(10)}")
        self._stream.flush()
