# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers remembered by the word that they are for."""

from collections.abc import Callable, Iterable, Mapping

# Entries per memo. A full one takes some 25 MB; a process which only encodes
# fills one of them. Twice as many were hardly faster on 36 MB of prose.
MEMO_ENTRIES = 2**17
# Longer words are rare and mostly unique: they would only fill the memo.
MEMO_WORD_LENGTH = 64


class Memo(dict):
    """Remembers what a function returned for each word, within bounds."""

    def __init__(
        self,
        compute: Callable[[str], Iterable],
        known: Mapping[str, Iterable] | None = None,
    ):
        super().__init__(known or {})
        self.compute = compute

    def __missing__(self, word: str) -> Iterable:
        value = self.compute(word)
        if len(word) <= MEMO_WORD_LENGTH:
            # Forgetting everything at once costs nothing on each hit, and the
            # frequent words are back within a few lines.
            if len(self) >= MEMO_ENTRIES:
                self.clear()
            self[word] = value
        return value

    def __reduce__(self) -> tuple:
        # A copy sent to another process starts empty.
        return Memo, (self.compute,)
