# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Warnings about a discriminator that collapsed or does not learn.

Source: ELECTRA paper, section 3.2, smaller generators; Mercier, Efficient
transfer learning for NLP with ELECTRA (2021): a large discriminator may
collapse.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from electra_tf.pretraining.metrics import binary_entropy

Row = Mapping[str, float]
# Share of the rarer predicted class, below which the predictions count as a
# single class: one token in 10,000.
ONE_CLASS_SHARE = 1e-4
# Ratio of the discriminator's loss to the loss of guessing. A discriminator
# with at least this ratio counts as no better than guessing. An AUC of 0.55
# lowers the loss by some 0.5%, and an AUC of 0.6, as on a healthy plateau, by
# some 2%.
_NO_BETTER = 0.995


def predicts_one_class(result: Row) -> bool:
    """Return whether the discriminator predicted one class for all tokens.

    Args:
      result: metrics of an evaluation.
    """
    share = result.get("disc_predicted_replaced_share")
    return share is not None and min(share, 1.0 - share) < ONE_CLASS_SHARE


class CollapseWatch:
    """A counter of consecutive evaluations with a single predicted class."""

    def __init__(self, patience: int, earlier: Iterable[Row] = ()) -> None:
        """Count the collapsed evaluations at the end of a run's earlier part.

        Args:
          patience: minimum count for a message; 0: no messages.
          earlier: metrics of the run's evaluations so far.
        """
        self._patience = patience
        self._count = 0
        for result in earlier:
            self.update(result)

    def update(self, result: Row) -> int:
        """Add an evaluation; return the number of consecutive collapses."""
        self._count = self._count + 1 if predicts_one_class(result) else 0
        return self._count

    @property
    def message(self) -> str | None:
        """Warning after too many collapsed evaluations, otherwise None."""
        if not self._patience or self._count < self._patience:
            return None
        return (
            "the discriminator predicted the majority class for every token in"
            f" {self._count} consecutive evaluations, which is normal early in"
            " training. If this warning is repeated later, lower learning_rate,"
            " train longer, or check that the generator learns"
            " (masked_lm_accuracy_at_mask above"
            " masked_lm_most_frequent_accuracy)."
        )


class LossWatch:
    """A comparison of discriminator loss and guessing loss in windows of steps.

    For each token, guessing predicts the share of replaced tokens in a log row.
    """

    def __init__(
        self,
        window: int,
        first_step: int,
        generator_share: float,
        earlier: Iterable[Row] = (),
    ) -> None:
        """Add the earlier rows of a run's training log to the windows.

        Args:
          window: number of steps in a window; 0: no warnings.
          first_step: step at which the first window begins.
          generator_share: width of the generator, which may be too good for the
            discriminator, as a share of the discriminator's; 0: warnings do not
            mention the generator.
          earlier: rows of the log so far.
        """
        self._window, self._first_step = window, first_step
        self._generator_share = generator_share
        self._step = 0.0  # step of the last row
        # Sums over log rows: the number of steps, the discriminator's loss
        # times the row's steps, and the loss of guessing times the row's steps.
        self._sums = np.zeros(3)
        for row in earlier:
            self.update(row)

    def update(self, row: Row) -> str | None:
        """Add a row of the training log; return any warning at a window's end.

        Args:
          row: row with `step` and, if the discriminator was trained,
            `disc_loss` and `replaced_share`.
        """
        steps = row["step"] - max(self._step, self._first_step)
        self._step = row["step"]
        loss, share = row.get("disc_loss"), row.get("replaced_share")
        if not self._window or steps <= 0 or loss is None or share is None:
            return None
        self._sums += steps * np.array([1.0, loss, binary_entropy(share)])
        steps_in_window, loss_sum, guessing_sum = self._sums
        if steps_in_window < self._window:
            return None
        self._sums = np.zeros(3)
        if loss_sum < _NO_BETTER * guessing_sum:
            return None
        return (
            f"over the last {steps_in_window:,.0f} steps the discriminator's"
            f" loss was {loss_sum / steps_in_window:.4f}, which is no better"
            " than guessing by the share of replaced tokens"
            f" ({guessing_sum / steps_in_window:.4f}).{self._generator_hint()}"
            " If this warning is repeated, lower learning_rate, raise"
            " num_warmup_steps, or train on shorter texts (collapse_window 0"
            " disables this warning)."
        )

    def _generator_hint(self) -> str:
        """Return a sentence about a large generator, or ""."""
        if self._generator_share < 0.5:
            return ""
        return (
            f" The generator has {self._generator_share:g} of the"
            " discriminator's width, and may be too good. Lower"
            " generator_hidden_size to 0.25 (with untied_generator true)."
        )
