# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Problems of users' input; callers raise, log or collect the problems.

A check yields problems instead of raising the first one:

    def check_shards(paths) -> Iterator[Problem]:
        for path in paths:
            if not os.path.getsize(path):
                yield Problem(Level.ERROR, "is empty; copy it again", path)

A program that needs valid data passes the problems to `raise_errors` and logs
the problems that it returns. A program that reports all problems collects them
in a list.
"""

import dataclasses
import enum
from collections.abc import Callable, Iterable
from typing import TypeVar

from configure.errors import UserError

Result = TypeVar("Result")


class Level(enum.Enum):
    """Effect of a problem on the program."""

    WARNING = "warning"  # logged as a warning
    DOUBT = "doubt"  # Logged as a warning; with --strict, an error.
    ERROR = "error"  # Stops the program.


@dataclasses.dataclass(frozen=True)
class Problem:
    """A problem in the user's input, with its location and remedy."""

    level: Level
    message: str  # failure with the value, expectation, one remedy
    file: str = ""  # "path" or "path:12"; "": the message names the file
    field: str = ""  # hparam, flag or key; "": the message names the field

    def is_fatal(self, strict: bool) -> bool:
        """Return whether the problem stops the program."""
        is_strict_doubt = strict and self.level is Level.DOUBT
        return self.level is Level.ERROR or is_strict_doubt

    def __str__(self) -> str:
        parts = (self.file, self.field, self.message)
        return ": ".join(part for part in parts if part)


def raise_errors(
    problems: Iterable[Problem], strict: bool = False
) -> list[Problem]:
    """Raise the first error; if none exists, return the other problems.

    Args:
      problems: problems, which are read up to the first error.
      strict: whether doubts are raised, too. One error contains all doubts, and
        is raised after all problems were read.
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
    """Return the result of a check, or append its UserError to `problems`."""
    try:
        return check()
    except UserError as error:
        problems.append(Problem(Level.ERROR, str(error)))
        return None
