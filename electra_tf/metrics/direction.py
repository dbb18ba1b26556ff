# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Direction in which a metric improves."""

import re


def lower_is_better(metric: str) -> bool:
    """Return whether a lower value of a metric is better.

    The metric is one of pre-training or of a task. The names of labels follow
    `f1_`, and the names of tasks precede the names of metrics, so that a label
    named `loss` still has an F1.
    """
    is_loss = re.search(r"(^|_)(loss|loss_per_word|mse)$", metric)
    return bool(is_loss) and not re.search(r"(^|_)f1_", metric)
