# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A bar on standard error: how much of the input is done, how long it takes."""

import sys
from collections.abc import Sequence

import tqdm

from electra_tf.prediction.reader import Source


class Progress:
    """Follows what has been read of the sources.

    Bytes tell how far it is where the sizes are known, else rows are counted.
    """

    def __init__(self, sources: Sequence[Source], shown: bool = True) -> None:
        self._sources = sources
        self.rows = 0
        sizes = [source.size() for source in sources]
        known = bool(sizes) and None not in sizes
        self._bar = tqdm.tqdm(
            total=sum(sizes) if known else None,
            unit="B" if known else "row",
            unit_scale=True,
            unit_divisor=1000,
            file=sys.stderr,
            disable=not shown,
            dynamic_ncols=True,
            mininterval=0.5,
        )
        self._by_bytes = known

    def update(self) -> None:
        """One row more is done."""
        self.rows += 1
        if not self._by_bytes:
            self._bar.update(1)
            return
        self._bar.set_postfix_str(f"{self.rows:,} rows", refresh=False)
        self._bar.update(sum(s.done for s in self._sources) - self._bar.n)

    def say(self, text: str) -> None:
        """Prints a line above the bar."""
        self._bar.write(text, file=sys.stderr)

    def close(self) -> None:
        """Ends the bar."""
        if self._by_bytes:
            self._bar.update(sum(s.done for s in self._sources) - self._bar.n)
        self._bar.close()
