# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Formatting of lists and values in messages."""

from collections.abc import Iterable, Sequence


def join_names(names: Iterable[object], limit: int = 5) -> str:
    """Join the first names with commas: "a, b and 7 more"."""
    names = [str(name) for name in names]
    rest = len(names) - limit
    text = ", ".join(names[:limit])
    return f"{text} and {rest} more" if rest > 0 else text


def limit_lines(
    lines: Sequence[str], limit: int = 5, indent: str = "  "
) -> list[str]:
    """Return the first lines, indented, and the count of remaining lines."""
    shown = [indent + line for line in lines[:limit]]
    rest = len(lines) - limit
    if rest > 0:
        shown.append(f"{indent}... and {rest} more")
    return shown


def shorten(value: object, limit: int = 80) -> str:
    """Return a text, or a value's repr, truncated to `limit` characters."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
