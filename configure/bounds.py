# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Types of hparams, which include the bounds of the hparams' values.

`Annotated[int, at_least(1)]` declares an integer of at least 1. `check_bounds`
enforces the bound, and `--help` prints it.
"""

import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from configure.errors import UserError

# Names of declared types in messages.
TYPE_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    dict: "a JSON object",
    list: "a list",
}


class Bound(NamedTuple):
    """A condition on a value, stored as metadata of `Annotated`."""

    holds: Callable[[Any], bool]
    requirement: str  # text that follows "must be" in messages


def at_least(low: float) -> Bound:
    """Return a bound that rejects values below `low`."""
    return Bound(lambda value: value >= low, f"at least {low}")


def at_most(high: float) -> Bound:
    """Return a bound that rejects values above `high`."""
    return Bound(lambda value: value <= high, f"at most {high:,}")


def one_of(*choices: str) -> Bound:
    """Return a bound that accepts only the texts in `choices`."""
    return Bound(lambda value: value in choices, f"one of {', '.join(choices)}")


def list_bounds(declared: Any) -> list[Bound]:
    """Return a declared type's bounds, without those of a container's items."""
    bounds = list(getattr(declared, "__metadata__", ()))
    if typing.get_origin(declared) in (list, dict):
        return bounds
    for part in typing.get_args(declared):
        bounds += list_bounds(part)
    return bounds


def check_bounds(name: str, value: Any, declared: Any) -> None:
    """Raise a UserError if a value violates a bound of its declared type.

    The value None is always accepted.
    """
    if value is None:
        return
    for bound in list_bounds(declared):
        if not bound.holds(value):
            raise UserError(
                f"{name}: must be {bound.requirement}, got {value!r}. Correct"
                " the value."
            )


def plain_types(declared: Any) -> tuple[Any, ...]:
    """Return the types that a declared type allows, without bounds."""
    if isinstance(getattr(declared, "__metadata__", None), tuple):
        return plain_types(declared.__origin__)
    if typing.get_origin(declared) in (typing.Union, types.UnionType):
        parts = typing.get_args(declared)
        return tuple(plain_types(part)[0] for part in parts)
    return (typing.get_origin(declared) or declared,)


NonEmpty = Annotated[str, Bound(bool, "a text that is not empty")]
Positive = Annotated[int, at_least(1)]
Natural = Annotated[int, at_least(0)]
# Larger sizes are typos, because no machine can hold such a model.
Size = Annotated[Positive, at_most(2**24)]
Width = Annotated[Positive, at_most(2**17)]
NonNegative = Annotated[float, at_least(0)]
Ratio = Annotated[float, Bound(lambda value: value > 0, "above 0")]
Share = Annotated[
    float, Bound(lambda value: 0 <= value <= 1, "a fraction from 0 to 1")
]
BelowOne = Annotated[
    float, Bound(lambda value: 0 <= value < 1, "at least 0 and below 1")
]
Seed = Annotated[
    Natural, Bound(lambda value: value < 2**31, "below 2147483648")
]
