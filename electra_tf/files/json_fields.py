# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of the fields of JSON objects that this project wrote."""

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from configure.errors import UserError

# field -> (function that checks a value, the expected value)
Fields = Mapping[str, tuple[Callable[[Any], bool], str]]


def check_fields(
    values: Mapping[str, Any],
    fields: Fields,
    location: str,
    remedy: str,
    optional: Collection[str] = (),
) -> None:
    """Raise a UserError if a field is missing or has another type of value.

    Args:
      values: the object.
      fields: the checks of its fields; the object may have further fields.
      location: the file and the position of the object, for messages.
      remedy: the last sentence of the message.
      optional: the fields that may be missing.
    """
    for field, (is_right, expected) in fields.items():
        if field in values:
            if is_right(values[field]):
                continue
            text = repr(str(values[field])[:80])
        elif field in optional:
            continue
        else:
            text = "missing"
        raise UserError(
            f"{location}: {field} is {text}; expected {expected}. {remedy}"
        )


def is_text(value: Any) -> bool:
    """Return whether a value is a text that is not empty."""
    return isinstance(value, str) and bool(value)


def is_object(value: Any) -> bool:
    """Return whether a value is a JSON object."""
    return isinstance(value, dict)


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer and not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number or null, which means NaN.

    Integers beyond the range of a double are not accepted.
    """
    if value is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e308 and math.isfinite(value)


def is_groups_of_metrics(value: Any) -> bool:
    """Return whether a value maps names to objects of metrics and numbers."""
    return isinstance(value, dict) and all(
        isinstance(metrics, dict) and all(map(is_number, metrics.values()))
        for metrics in value.values()
    )
