# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Early stopping when the last evaluations did not improve a metric."""

import math
from collections.abc import Mapping, Sequence

from electra_tf.metrics.direction import lower_is_better
from electra_tf.metrics.trial_statistics import from_json, main_metric


def watched_metric(
    rows: Sequence[Mapping[str, float]], preferred: str | None = None
) -> str:
    """Return the metric that decides when training stops.

    The first choice is the preferred metric, the second is F1, and the last is
    the first metric that is not a loss.

    Args:
      rows: rows of an evaluation log, at least one.
      preferred: the metric that the user or the task names.
    """
    # A damaged log may have rows without metrics.
    names = [name for name in max(rows, key=len) if name != "step"]
    if preferred in names:
        return preferred
    # The metrics after the loss are details, which are not watched.
    results = names[: [*names, "loss"].index("loss")]
    scores = [name for name in results if not lower_is_better(name)]
    return main_metric(scores or names)


def patience_is_over(
    rows: Sequence[Mapping[str, float]],
    patience: int,
    preferred: str | None = None,
) -> bool:
    """Return whether the last `patience` evaluations brought no improvement.

    An undefined metric (None in a log, or a row without the metric) is worse
    than any number.

    Args:
      rows: rows of an evaluation log.
      patience: the number of evaluations; 0: never stop.
      preferred: the metric that the user or the task names.
    """
    if not patience or not any(len(row) > 1 for row in rows):
        return False
    name = watched_metric(rows, preferred)
    sign = -1 if lower_is_better(name) else 1
    values = [
        sign * value if math.isfinite(value) else -math.inf
        for value in from_json(row.get(name) for row in rows)
    ]
    return len(values) - 1 - values.index(max(values)) >= patience
