# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a run is built from, under names that stay; it lives in `runner`."""

from electra_tf.pretraining.runner import (
    build_model,
    build_optimizer,
    build_train_loop,
    step_values,
)

__all__ = ["build_model", "build_optimizer", "build_train_loop", "step_values"]
