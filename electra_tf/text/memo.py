# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bounded cache of function results by word."""

from collections.abc import Callable, Iterable, Mapping

# Maximum number of entries. A full memo needs 25 MB, and a process that only
# encodes fills one memo. A doubled limit was hardly faster on 36 MB of prose.
MEMO_ENTRIES = 2**17
# Longer words are rare and mostly unique, so a memo would not help.
MEMO_WORD_LENGTH = 64


class Memo(dict):
    """Bounded cache of a function's results by word."""

    def __init__(
        self,
        compute: Callable[[str], Iterable],
        known: Mapping[str, Iterable] | None = None,
    ):
        """Set the function, and results that are already known."""
        super().__init__(known or {})
        self.compute = compute

    def __missing__(self, word: str) -> Iterable:
        value = self.compute(word)
        if len(word) <= MEMO_WORD_LENGTH:
            # Clearing all entries at once costs nothing at each hit, and
            # frequent words return within a few lines.
            if len(self) >= MEMO_ENTRIES:
                self.clear()
            self[word] = value
        return value

    def __reduce__(self) -> tuple:
        # A copy that is sent to a different process starts empty.
        return Memo, (self.compute,)
