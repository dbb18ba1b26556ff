# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of the switches for speed and memory that both configs have."""

from typing import Any

from configure.errors import UserError

MIXED_PRECISIONS = ("", "bf16", "fp16")  # "": all in float32


def check_switches(config: Any) -> None:
    """Raises for switches that cannot work.

    Args:
      config: a config with the switches, and `train_batch_size`.

    Raises:
      UserError: names the hparam, its value, and what to change.
    """
    parts = config.gradient_accumulation_steps
    if parts < 1:
        raise UserError(
            "hparam gradient_accumulation_steps: must be at least 1, got"
            f" {parts}"
        )
    if config.train_batch_size % parts:
        raise UserError(
            f"hparam gradient_accumulation_steps: {parts} does not divide"
            f" train_batch_size {config.train_batch_size}"
        )
    if config.threads < 0:
        raise UserError(
            f"hparam threads: must be at least 0, got {config.threads}"
        )
    if config.mixed_precision not in MIXED_PRECISIONS:
        raise UserError(
            "hparam mixed_precision: must be bf16, fp16 or empty (float32),"
            f" got {config.mixed_precision!r}"
        )
