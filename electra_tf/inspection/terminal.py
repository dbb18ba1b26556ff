# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Colour in a terminal, where it is wanted, and text that is safe to print."""

import os
import unicodedata
from collections.abc import Mapping
from typing import TextIO

AUTO, ALWAYS, NEVER = COLOUR_CHOICES = ("auto", "always", "never")

# Backgrounds of the 256-colour palette, from agreement to alarm; each is light
# enough for black letters.
_SCALE = (157, 193, 229, 222, 216, 210, 203)
_BLACK_LETTERS = "38;5;16"
_RESET = "\x1b[0m"


def wants_colour(
    choice: str, stream: TextIO, environment: Mapping[str, str] | None = None
) -> bool:
    """Decides whether to write colours.

    Args:
      environment: variables; None for the process's.
    """
    if choice != AUTO:
        return choice == ALWAYS
    environment = os.environ if environment is None else environment
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return stream.isatty()


class Paint:
    """Puts escape codes around text, or leaves it alone."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    def bold(self, text: str) -> str:
        """Bold text."""
        return self._code("1", text)

    def faint(self, text: str) -> str:
        """Text that stands back."""
        return self._code("2", text)

    def share(self, text: str, share: float) -> str:
        """Text on a background from green (0) to red (1)."""
        step = min(int(share * len(_SCALE)), len(_SCALE) - 1)
        return self._code(f"{_BLACK_LETTERS};48;5;{_SCALE[step]}", text)

    def _code(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}{_RESET}" if self.enabled else text


def printable(text: str) -> str:
    """Replaces what could move the cursor or recolour the screen."""
    return "".join(
        "\ufffd" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c
        for c in text
    )


def display_width(text: str) -> int:
    """Columns that a text takes: wide characters two, combining ones none."""
    return sum(
        0
        if unicodedata.combining(c)
        else 2
        if unicodedata.east_asian_width(c) in "WF"
        else 1
        for c in text
    )


def filled(text: str, width: int, right: bool = False) -> str:
    """Pads a text to a number of columns."""
    blanks = " " * max(0, width - display_width(text))
    return blanks + text if right else text + blanks
