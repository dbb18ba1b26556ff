# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Nested settings of study files: merging, and dotted keys."""

from typing import Any

RANDOM = "random"  # the `start` of an arm with random weights
# The keys of a budget, which sets exactly one of these keys.
BUDGETS = ("steps", "tokens", "flops")
Settings = dict[str, Any]


def merge(base: Settings, overrides: Settings) -> Settings:
    """Merge overrides into settings; objects are merged key by key.

    A budget is replaced as a whole, because only one of its keys may be set.
    """
    merged = {**base, **overrides}
    for key in base.keys() & overrides.keys():
        before, after = base[key], overrides[key]
        if isinstance(before, dict) and isinstance(after, dict):
            if key != "budget" or not after.keys() & set(BUDGETS):
                merged[key] = merge(before, after)
    return merged


def nest(key: str, value: Any) -> Settings:
    """Return `{"a": {"b": value}}` for the dotted key "a.b"."""
    for name in reversed(key.split(".")):
        value = {name: value}
    return value
