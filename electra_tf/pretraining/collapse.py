# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether the discriminator learns anything: by evaluations, and by its loss.

Source: ELECTRA paper, section 3.2, smaller generators; Mercier, Efficient
transfer learning for NLP with ELECTRA (2021): a large one may make it collapse.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from configure.pretraining import GeneratorKind, generator_kind

# A discriminator that calls fewer than one token in 10,000 the other class.
ONE_CLASS_SHARE = 1e-4


def predicts_one_class(result: dict[str, float]) -> bool:
    """Whether the discriminator called (nearly) every token the same."""
    share = result.get("disc_predicted_replaced_share")
    return share is not None and min(share, 1.0 - share) < ONE_CLASS_SHARE


class CollapseWatch:
    """Counts evaluations in a row in which one class was predicted."""

    def __init__(self, patience: int, earlier: Iterable[dict] = ()) -> None:
        """Starts from the rows of `earlier` evaluations of the same run."""
        self._patience = patience
        self._row = 0
        for result in earlier:
            self.update(result)

    def update(self, result: dict[str, float]) -> int:
        """Takes one evaluation; returns how many in a row showed one class."""
        self._row = self._row + 1 if predicts_one_class(result) else 0
        return self._row

    @property
    def message(self) -> str | None:
        if not self._patience or self._row < self._patience:
            return None
        return (
            f"the discriminator has called every token the same in {self._row}"
            " evaluations in a row (the majority class). Early in training this"
            " is normal; if it stays, lower learning_rate, train longer, or"
            " check that the generator learns (masked_lm_accuracy_at_mask"
            " against masked_lm_most_frequent_accuracy)."
        )


# A loss from this share of guessing's on is no better: an AUC of 0.55 is worth
# some 0.5%. On a healthy plateau, with one of 0.6, it is about two percent.
_NO_BETTER = 0.995


class LossWatch:
    """Compares the discriminator's loss with what guessing gives, in windows.

    Guessing gives every token the share of replaced ones in a log row. A window
    has `collapse_window` steps; the first begins after the warm-up.
    """

    def __init__(
        self, config: Any, earlier: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        """Starts from the log rows of an `earlier` part of the run."""
        self._config = config
        self._step = 0  # of the last row
        self._sums = np.zeros(3)  # of steps, of losses, of guessing's losses
        for row in earlier:
            self.update(row)

    def update(self, row: Mapping[str, Any]) -> str | None:
        """Takes a row of the training log; what to report, where it is time."""
        config = self._config
        warm = (config.two_stage_steps or 0) + config.num_warmup_steps
        steps = row["step"] - max(self._step, warm)
        self._step = row["step"]
        loss, share = row.get("disc_loss"), row.get("replaced_share")
        # Elsewhere the loss is over other tokens, or its logits have an offset.
        watched = config.objective == "electra" and config.collapse_window > 0
        if not watched or steps <= 0 or loss is None or share is None:
            return None
        self._sums += steps * np.array([1.0, loss, _entropy(share)])
        steps, loss, guessing = self._sums
        if steps < config.collapse_window:
            return None
        self._sums = np.zeros(3)
        if loss < _NO_BETTER * guessing:
            return None
        kind, width, hint = generator_kind(config), 1.0, ""
        if kind is not GeneratorKind.FULL:
            width = config.generator_hidden_size * (not kind.is_fixed)
        if width >= 0.5 and not config.two_stage_steps:  # they are equal there
            hint = (
                f" The generator has {width:g} of its width, and may be too"
                " good for it: lower generator_hidden_size to 0.25 (with"
                " untied_generator true)."
            )
        return (
            f"over the last {steps:,.0f} steps the discriminator's loss was"
            f" {loss / steps:.4f}, no better than guessing by the share"
            f" of replaced tokens alone ({guessing / steps:.4f}).{hint}"
            " If this comes again, lower learning_rate, raise num_warmup_steps,"
            " or train on shorter texts (collapse_window 0 silences this)."
        )


def _entropy(share: float) -> float:
    """In nats, of a yes or no: the loss of always giving its share."""
    if not 0.0 < share < 1.0:
        return 0.0
    return -share * math.log(share) - (1.0 - share) * math.log1p(-share)
