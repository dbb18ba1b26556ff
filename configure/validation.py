# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of keys, types and bounds in objects that users write."""

import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from configure.bounds import TYPE_WORDS, check_bounds, plain_types
from configure.errors import UserError
from configure.formatting import shorten
from configure.suggestions import suggest_names


def check_object(value: Any, fields: Mapping[str, Any], prefix: str) -> None:
    """Raise a UserError if a JSON object has invalid keys or values.

    Args:
      value: value in the file.
      fields: the declared type of each key; see `check_value`. Keys may be
        absent.
      prefix: text before the keys in messages, such as "task.json: files.".
    """
    check_value(value, dict, prefix.rstrip(" .:") or "file")
    for key in value:
        if key not in fields:
            nearest = suggest_names(str(key), fields)
            raise UserError(f"{prefix}{key}: unknown key. {nearest}")
        check_value(value[key], fields[key], f"{prefix}{key}")


def check_value(value: Any, declared: Any, name: str) -> None:
    """Raise a UserError if a JSON value violates its declared type.

    Unlike in `configure.values`, no value is converted: true is not a number,
    and "1" is a text.

    Args:
      value: value in the file.
      declared: bool, int, float (any finite number), str, dict, list, list[T]
        or dict[str, T]; any of them with bounds (`Annotated`) or `| None`.
        Any: everything.
      name: name of the value in messages.
    """
    if declared is Any:
        return
    options = plain_types(declared)
    if not any(_has_type(value, option) for option in options):
        expected = [TYPE_WORDS[o] for o in options if o in TYPE_WORDS]
        if type(None) in options:
            expected.append("null")
        raise UserError(
            f"{name}: expected {' or '.join(expected)}, got"
            f" {shorten(repr(value))}. Correct the value."
        )
    check_bounds(name, value, declared)
    item_type = _item_type(declared)
    if item_type is None or value is None:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            check_value(item, item_type, f"{name}.{key}")
    else:
        for index, item in enumerate(value):
            check_value(item, item_type, f"{name}[{index}]")


def _has_type(value: Any, expected: Any) -> bool:
    """Return whether a JSON value has a type; integers are also numbers."""
    if expected is float:
        return type(value) is int or _is_finite(value)
    return type(value) is expected


def _is_finite(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


def _item_type(declared: Any) -> Any:
    """Return the declared type of a container's items, or None."""
    if isinstance(getattr(declared, "__metadata__", None), tuple):
        return _item_type(declared.__origin__)
    origin, parts = typing.get_origin(declared), typing.get_args(declared)
    if origin in (typing.Union, types.UnionType):
        return next(filter(None, map(_item_type, parts)), None)
    return parts[-1] if origin in (list, dict) else None
