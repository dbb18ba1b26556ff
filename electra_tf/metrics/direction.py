# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Direction in which a metric improves."""

import re


def lower_is_better(metric: str) -> bool:
    """Return whether a lower value of a metric is better.

    The metric belongs to pre-training or to a task. The name of the metric may
    begin with the name of a task. The name of a label follows `f1_`: `f1_loss`
    is the F1 of a label named `loss`, so a higher value is better.
    """
    is_loss = re.search(r"(^|_)(loss|loss_per_word|mse)$", metric)
    return bool(is_loss) and not re.search(r"(^|_)f1_", metric)
