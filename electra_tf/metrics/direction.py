# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The direction in which a metric improves."""

import re


def lower_is_better(metric: str) -> bool:
    """Return whether a metric, of pre-training or of a task, is an error.

    The names of labels follow `f1_`, and the names of tasks precede the
    metric's, so the loss of a label named `loss` is an F1.
    """
    is_loss = re.search(r"(^|_)(loss|loss_per_word|mse)$", metric)
    return bool(is_loss) and not re.search(r"(^|_)f1_", metric)
