# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bounded cache of a function's results, with words as keys."""

from collections.abc import Callable, Iterable, Mapping

# Maximum number of entries. A full memo needs 25 MB. With twice this limit,
# encoding 36 MB of prose was hardly faster.
MEMO_ENTRIES = 2**17
# Maximum length of a cached word, in characters. Longer words seldom occur
# twice, so a cache would not help.
MEMO_WORD_LENGTH = 64


class Memo(dict):
    """Bounded cache of a function's results, with words as keys."""

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
            # Clearing the whole cache needs no bookkeeping at each hit, unlike
            # eviction of single entries, and frequent words are cached again
            # after a few lines of text.
            if len(self) >= MEMO_ENTRIES:
                self.clear()
            self[word] = value
        return value

    def __reduce__(self) -> tuple:
        # A copy that is sent to a different process starts empty.
        return Memo, (self.compute,)
