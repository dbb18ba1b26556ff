# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Problems with users' input, which a caller raises, logs or collects.

A check yields problems instead of raising the first one:

    def check_shards(paths) -> Iterator[Problem]:
        for path in paths:
            if not os.path.getsize(path):
                yield Problem(Level.ERROR, "is empty; copy it again", path)

A program that needs the data passes them to `raise_errors` and logs what it
returns; a program that reports everything reads them into a list.
"""

import dataclasses
import enum
from collections.abc import Callable, Iterable
from typing import TypeVar

from configure.errors import UserError

Result = TypeVar("Result")


class Level(enum.Enum):
    """The effect of a problem on a program."""

    WARNING = "warning"  # it is logged
    DOUBT = "doubt"  # it is logged; with --strict it is an error
    ERROR = "error"  # the program stops


@dataclasses.dataclass(frozen=True)
class Problem:
    """One problem: its place, and what a user can do about it."""

    level: Level
    message: str  # failure with the value, expectation, one remedy
    file: str = ""  # with the line, "path:12"; "": the message names it
    field: str = ""  # hparam, flag or key; "": the message names it

    def __str__(self) -> str:
        parts = (self.file, self.field, self.message)
        return ": ".join(part for part in parts if part)


def raise_errors(
    problems: Iterable[Problem], strict: bool = False
) -> list[Problem]:
    """Raise the first error, or return the other problems.

    Args:
      problems: they are read until the first error.
      strict: whether doubts are raised, too: in one error, after all problems
        are read.
    """
    others = []
    for problem in problems:
        if problem.level is Level.ERROR:
            raise UserError(str(problem))
        others.append(problem)
    doubts = [str(p) for p in others if p.level is Level.DOUBT]
    if doubts and strict:
        raise UserError("\n".join([*doubts, "(Stopped by --strict.)"]))
    return others


def collect_error(
    problems: list[Problem], check: Callable[[], Result]
) -> Result | None:
    """Return the result of a check; append its UserError to `problems`."""
    try:
        return check()
    except UserError as error:
        problems.append(Problem(Level.ERROR, str(error)))
        return None
