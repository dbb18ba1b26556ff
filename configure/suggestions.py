# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Suggestions for unknown names: the most similar known names."""

import difflib
from collections.abc import Iterable

from configure.errors import UserError


def suggest_names(name: str, known: Iterable[str]) -> str:
    """Return a text with the three names most similar to `name`, best first."""
    name = name.lower().strip("-").replace("-", "_")
    nearest = difflib.get_close_matches(name, list(known), 3, cutoff=0)
    return f"Nearest names: {', '.join(nearest)}"


def check_names(
    names: Iterable[str], known: Iterable[str], kind: str = "hparam"
) -> None:
    """Raise a UserError that lists unknown names with their nearest names."""
    known = list(known)
    problems = []
    for name in names:
        if name not in known:
            nearest = suggest_names(str(name), known)
            problems.append(f"Unknown {kind} {name}. {nearest}")
    if problems:
        raise UserError("\n".join(problems))
