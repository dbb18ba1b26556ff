# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report of bad rows in users' files: each row is printed once."""

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
    """A row of a file that differs from the expected format."""

    path: str  # the file
    line: int  # from 1; 0: the file as a whole
    found: str  # the content of the row, shortened
    expected: str  # the expected content
    skipped: bool = True  # False: the row is still used

    def __str__(self) -> str:
        location = f"{self.path}:{self.line}" if self.line else self.path
        use = "skipped" if self.skipped else "kept"
        return (
            f"{location}: found {self.found}; expected {self.expected} ({use})"
        )


class RowReport:
    """The bad rows of a task; each counts once even if it is read again.

    Attributes:
      strict: whether a bad row raises an error.
      losses: the counts of other losses, such as words cut off, by description.
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
        content: object,
        expected: str,
        skipped: bool = True,
    ) -> None:
        """Add a row; if `strict`, raise a UserError instead.

        Args:
          path: the file.
          line: the line number, from 1; 0: the file as a whole.
          content: the content of the row.
          expected: the content that was expected.
          skipped: whether the row makes no example.
        """
        row = BadRow(path, line, shorten(content), expected, skipped)
        if self.strict:
            location = f"{path}:{line}" if line else path
            raise UserError(
                f"{location}: found {row.found}; expected {expected}."
                " Correct the row, or set strict_rows to false (the row is"
                f" then {'skipped' if skipped else 'kept'} and counted)."
            )
        self._rows.setdefault(row)

    def summary(
        self,
        title: str,
        rows: Iterable[BadRow] | None = None,
        losses: Mapping[str, int] | None = None,
    ) -> list[str]:
        """Return lines for the console: each file's bad rows, then losses.

        `rows` and `losses` select a part of the report; None: all of it.
        """
        lines = _row_lines(self.rows if rows is None else rows)
        losses = self.losses if losses is None else losses
        lines += [f"{kind}: {n}" for kind, n in losses.items() if n]
        return [f"{title}: {line}" for line in lines]

    def mark_printed(self, rows: Iterable[BadRow] | None = None) -> None:
        """Mark rows (None: all) as printed, so that none is printed twice."""
        self._printed.update(self._rows if rows is None else rows)

    def unprinted(self, rows: Iterable[BadRow]) -> list[BadRow]:
        """Return the rows that are not marked as printed."""
        return [row for row in rows if row not in self._printed]

    def unprinted_lines(self, title: str) -> list[str]:
        """Return lines for the first bad rows that were not printed."""
        lines = _row_lines(self.unprinted(self.rows))
        return [f"{title}: {line}" for line in lines]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for a JSON file."""
        return {
            "rows": [dataclasses.asdict(row) for row in self._rows],
            "losses": {k: v for k, v in self.losses.items() if v},
        }

    def absorb(self, rows: Iterable[dict], losses: Mapping[str, int]) -> None:
        """Add the rows and losses of another report."""
        self._rows.update(dict.fromkeys(BadRow(**row) for row in rows))
        self.losses.update(losses)


def _row_lines(rows: Iterable[BadRow]) -> list[str]:
    """Return lines for each file: the count of bad rows, and the first rows."""
    by_path: dict[str, list[BadRow]] = {}
    for row in rows:
        by_path.setdefault(row.path, []).append(row)
    lines = []
    for path, bad in by_path.items():
        count, skipped = len(bad), sum(row.skipped for row in bad)
        noun = "bad row" if count == 1 else "bad rows"
        lines.append(
            f"{path}: {count} {noun}, {skipped} skipped, {count - skipped} kept"
        )
        lines += limit_lines([str(row) for row in bad])
    return lines


def bad_rows_in_errors(
    reports: Mapping[str, RowReport],
) -> contextlib.AbstractContextManager[None]:
    """Add unprinted bad rows to the errors that a `with` block raises.

    Bad rows explain errors such as "no usable example".

    Args:
      reports: reports by the titles of their lines, such as tasks' names.
    """

    def lines() -> list[str]:
        all_lines = []
        for title, report in reports.items():
            all_lines += report.unprinted_lines(title)
        return all_lines

    return append_to_errors(lines)


def explains_bad_rows(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a task's method: its errors then list the task's bad rows."""

    @functools.wraps(method)
    def reading(self: Any, *args: Any, **named: Any) -> Any:
        with bad_rows_in_errors({self.name: self.row_report}):
            return method(self, *args, **named)

    return reading
