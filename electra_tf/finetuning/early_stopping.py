# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""When evaluations no longer get better."""

from collections.abc import Mapping, Sequence

from electra_tf.evaluation.trials import lower_is_better


class Patience:
    """Watches one figure of the evaluations while training.

    It knows nothing but the rows of the log, so a continued run decides as one
    that never stopped.

    Args:
      evaluations: so many without a better figure are borne; 0 means any
        number.
      figure: what is watched; None means the main one, F1 or else the first
        that is no loss.
    """

    def __init__(self, evaluations: int, figure: str | None = None) -> None:
        self._evaluations = evaluations
        self._figure = figure

    def figure(self, rows: Sequence[Mapping[str, float]]) -> str:
        """Returns the name of what is watched.

        Args:
          rows: of the log of evaluations, at least one.
        """
        if self._figure:
            return self._figure
        names = [name for name in rows[0] if name != "step"]
        scores = [name for name in names if not lower_is_better(name)]
        return "f1" if "f1" in scores else (scores or names)[0]

    def is_over(self, rows: Sequence[Mapping[str, float]]) -> bool:
        """Returns whether training should stop.

        Args:
          rows: of the log of evaluations, in order.
        """
        if not self._evaluations or not rows:
            return False
        name = self.figure(rows)
        sign = -1 if lower_is_better(name) else 1
        values = [sign * row[name] for row in rows]
        since_best = len(values) - 1 - values.index(max(values))
        return since_best >= self._evaluations
