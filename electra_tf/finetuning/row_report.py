# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bad rows of users' files: collected, printed once, added to errors."""

import collections
import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from configure.errors import UserError, append_to_errors
from configure.formatting import limit_lines, shorten


@dataclasses.dataclass(frozen=True)
class BadRow:
    """One row of a file that is not what it should be."""

    path: str  # the file
    line: int  # its line number, from 1 (0: the file as a whole)
    found: str  # the row's content, shortened
    expected: str  # the content that was expected
    skipped: bool = True  # makes no example; False: it is used as it is

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        end = " (skipped)" if self.skipped else " (kept)"
        return f"{place}: found {self.found}; expected {self.expected}{end}"


class RowReport:
    """Collects bad rows, each once however often its file is read.

    Attributes:
      losses: other lost parts (words cut off, comment lines), and their counts.
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.losses: collections.Counter[str] = collections.Counter()
        self._rows: dict[BadRow, None] = {}
        self._printed: set[BadRow] = set()

    @property
    def rows(self) -> list[BadRow]:
        return list(self._rows)

    def add(
        self,
        path: str,
        line: int,
        found: object,
        expected: str,
        skipped: bool = True,
    ) -> None:
        """Collect a row; if `strict`, raise a UserError of it instead."""
        row = BadRow(path, line, shorten(found), expected, skipped)
        if self.strict:
            place = f"{path}:{line}" if line else path
            raise UserError(
                f"{place}: found {row.found}; expected {expected}. (Stopped"
                " by strict_rows; without it the row is"
                f" {'skipped' if skipped else 'kept'} and counted.)"
            )
        self._rows.setdefault(row)

    def summary(
        self,
        title: str,
        rows: Iterable[BadRow] | None = None,
        losses: Mapping[str, int] | None = None,
    ) -> list[str]:
        """Return lines for the console: first rows in full, then counts.

        `rows` and `losses` select a part of the report; None: all of it.
        """
        lines = _row_lines(self.rows if rows is None else rows)
        losses = self.losses if losses is None else losses
        lines += [f"{what}: {n}" for what, n in losses.items() if n]
        return [f"{title}: {line}" for line in lines]

    def mark_printed(self, rows: Iterable[BadRow] | None = None) -> None:
        """Keep rows (None: all) out of later printing and of errors."""
        self._printed.update(self._rows if rows is None else rows)

    def unprinted(self, rows: Iterable[BadRow]) -> list[BadRow]:
        """Return those of the rows that are not marked as printed."""
        return [row for row in rows if row not in self._printed]

    def unprinted_lines(self, title: str) -> list[str]:
        """Return lines of the first bad rows that were not printed."""
        lines = _row_lines(self.unprinted(self.rows))
        return [f"{title}: {line}" for line in lines]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for a JSON file."""
        return {
            "rows": [dataclasses.asdict(row) for row in self._rows],
            "losses": {k: v for k, v in self.losses.items() if v},
        }

    def absorb(self, rows: Iterable[dict], losses: Mapping[str, int]) -> None:
        """Take over the values of another report's `as_dict`."""
        self._rows.update(dict.fromkeys(BadRow(**row) for row in rows))
        self.losses.update(losses)


def _row_lines(rows: Iterable[BadRow]) -> list[str]:
    """Return the count of each file's rows, and its first rows."""
    by_path: dict[str, list[BadRow]] = {}
    for row in rows:
        by_path.setdefault(row.path, []).append(row)
    lines = []
    for path, bad in by_path.items():
        count, skipped = len(bad), sum(row.skipped for row in bad)
        lines.append(
            f"{path}: {count} bad row{'' if count == 1 else 's'},"
            f" {skipped} skipped, {count - skipped} kept"
        )
        lines += limit_lines([str(row) for row in bad])
    return lines


def bad_rows_in_errors(
    reports: Mapping[str, RowReport],
) -> contextlib.AbstractContextManager[None]:
    """Add the unprinted bad rows to whatever error is raised inside.

    An error such as "no usable example" has its reasons in the report.

    Args:
      reports: reports by the titles of their lines, such as tasks' names.
    """
    return append_to_errors(
        lambda: [
            line
            for title, report in reports.items()
            for line in report.unprinted_lines(title)
        ]
    )


def explains_bad_rows(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a task's method that reads its files: see above."""

    @functools.wraps(method)
    def reading(self: Any, *args: Any, **named: Any) -> Any:
        with bad_rows_in_errors({self.name: self.row_report}):
            return method(self, *args, **named)

    return reading
