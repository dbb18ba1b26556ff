# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Conversion of users' values to their declared types."""

import json
import math
import os
import re
from collections.abc import Callable
from typing import Any

from configure.bounds import TYPE_WORDS, plain_types
from configure.errors import UserError
from configure.json_text import parse_json

TRUE_WORDS = frozenset({"true", "t", "yes", "y", "on", "1"})
FALSE_WORDS = frozenset({"false", "f", "no", "n", "off", "0"})
NONE_WORDS = frozenset({"none", "null"})
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")


def coerce(name: str, value: Any, declared: Any) -> Any:
    """Convert a value to its declared type, or raise a UserError.

    Types are `bool`, `int`, `float`, `str`, `dict`, `list[str]`, or one of
    these `| None`. Unambiguous texts ("False", "1e-4", "4") are converted; a
    list may be JSON or comma-separated names.

    Differs: the original keeps such texts, and thus reads "False" as true.
    """
    options = plain_types(declared)
    is_optional = type(None) in options
    target = next(o for o in options if o is not type(None))
    is_none = value is None or (
        isinstance(value, str) and value.strip().lower() in NONE_WORDS
    )
    if is_none and is_optional:
        return None
    try:
        if value is None or (is_none and target is not str):
            raise TypeError
        if isinstance(value, bool) and target is not bool:
            raise TypeError
        return _CONVERTERS[target](value)
    except UserError as error:
        raise UserError(f"hparam {name}: {error}") from None
    except (TypeError, ValueError, OverflowError, RecursionError):
        expected = TYPE_WORDS[target]
        if is_optional:
            expected += " or null"
        raise UserError(
            f"hparam {name}: expected {expected}, got {value!r}"
            f" ({type(value).__name__}). Correct the value."
        ) from None


def _to_bool(value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise ValueError
    return word in TRUE_WORDS


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        text = value.strip()
        if _THOUSANDS.fullmatch(text):
            text = text.replace(",", "")
        try:
            value = int(text)
        except ValueError:
            value = float(text)  # int() rejects "1e6"
    if value != int(value) or abs(value) >= 2**63:
        raise ValueError
    return int(value)


def _to_float(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _to_text(value: Any) -> str:
    if not isinstance(value, str | os.PathLike):
        raise TypeError
    return os.fspath(value)


def _to_dict(value: Any) -> dict:
    return parse_json(value, "value") if isinstance(value, str) else dict(value)


def _to_list(value: Any) -> list[str]:
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            value = json.loads(text)
        else:
            value = [name.strip() for name in text.split(",") if name.strip()]
    is_list = isinstance(value, list | tuple)
    if not is_list or not all(isinstance(name, str) for name in value):
        raise TypeError
    return list(value)


_CONVERTERS: dict[type, Callable[[Any], Any]] = {
    bool: _to_bool,
    int: _to_int,
    float: _to_float,
    str: _to_text,
    dict: _to_dict,
    list: _to_list,
}
