# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Word error rate: what speech recognition is measured by."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class WordErrors:
    """Counts of one text, or of many.

    Attributes:
      errors: words to insert, delete or substitute, as few as will do.
      words: of the references.
    """

    errors: int = 0
    words: int = 0

    def __add__(self, other: "WordErrors") -> "WordErrors":
        return WordErrors(self.errors + other.errors, self.words + other.words)

    @property
    def rate(self) -> float:
        """Errors a word of the references; infinite for errors in nothing."""
        if not self.words:
            return float("inf") if self.errors else 0.0
        return self.errors / self.words

    def __str__(self) -> str:
        return f"{100 * self.rate:.2f}% ({self.errors:,} of {self.words:,})"


def word_errors(reference: str, hypothesis: str) -> WordErrors:
    """Counts the word errors of a hypothesis."""
    wanted, found = reference.split(), hypothesis.split()
    costs = list(range(len(found) + 1))
    for row, word in enumerate(wanted, 1):
        diagonal, costs[0] = costs[0], row
        for column, other in enumerate(found, 1):
            substituted = diagonal + (word != other)
            diagonal = costs[column]
            costs[column] = min(
                substituted, costs[column] + 1, costs[column - 1] + 1
            )
    return WordErrors(costs[-1], len(wanted))
