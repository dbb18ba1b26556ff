# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Readers of JSON values in the notations of other programs.

Other programs write a number instead of a text, a text instead of a number, or
`"true"` for true. Each function returns the value, or None if its meaning is
uncertain. `describe` formats such a value for a message.
"""

import re
from typing import Any

from configure.formatting import shorten

# Upper bound of the floats that are read as whole numbers. A larger float may
# have been rounded to a whole number.
_MAX_EXACT_FLOAT = 2**53
_INTEGER_TEXT = re.compile(r"([+-]?[0-9]{1,18})(\.0*)?")
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def as_text(value: Any) -> str | None:
    """Return a text, or an integer as decimal text; None for other values.

    For a number with a fraction the result is None, because a parser may have
    changed its digits.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None


def as_id(value: Any) -> str | None:
    """Return an id as text: a text unchanged, and 5 or 5.0 as `5`."""
    if isinstance(value, float):
        value = as_integer(value)
    return as_text(value)


def as_integer(value: Any) -> int | None:
    """Return a whole number, or the text of a whole number, as an integer."""
    if isinstance(value, str):
        match = _INTEGER_TEXT.fullmatch(value.strip())
        return int(match[1]) if match else None
    if isinstance(value, float):
        is_exact = value.is_integer() and abs(value) < _MAX_EXACT_FLOAT
        return int(value) if is_exact else None
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return value if is_integer else None


def as_flag(value: Any) -> bool | None:
    """Return a boolean for true, false, 1, 0 or the text of such a value."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _FLAGS.get(value.strip().lower())
    number = as_integer(value)
    return bool(number) if number in (0, 1) else None


def describe(value: Any) -> str:
    """Return a description of a value with its type, such as `the text '5'`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {shorten(value)}"
    if isinstance(value, str):
        return f"the text {shorten(repr(value))}"
    kind = "object" if isinstance(value, dict) else "list"
    article = "an" if kind == "object" else "a"
    return f"{article} {kind} {shorten(value)}"
