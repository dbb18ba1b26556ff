# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a task's data: reported, counted, never silent."""

import collections
import dataclasses
import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from configure.errors import UserError
from electra_tf import files

# Rows shown one by one in a summary; the rest is counted.
SHOWN_ROWS = 5
# Characters of a found value that a message shows.
SHOWN_CHARACTERS = 80


@dataclasses.dataclass(frozen=True)
class BadRow:
    """One row of a file that is not what it should be.

    Attributes:
      path: the file.
      line: its line number, from 1 (0: the file as a whole).
      found: what stands there, shortened.
      expected: what should stand there.
      skipped: whether the row makes no example (else it is used as it is).
    """

    path: str
    line: int
    found: str
    expected: str
    skipped: bool = True

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        end = " (skipped)" if self.skipped else " (kept)"
        return f"{place}: found {self.found}; expected {self.expected}{end}"


class RowReport:
    """Collects bad rows, and counts what is lost for other reasons.

    A row is counted once however often its file is read.
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self._rows: dict[BadRow, None] = {}
        self._losses: dict[str, int] = {}

    @property
    def rows(self) -> list[BadRow]:
        """The bad rows, in the order met."""
        return list(self._rows)

    @property
    def losses(self) -> dict[str, int]:
        """What else was lost (words cut off ...), and how often."""
        return dict(self._losses)

    def add(
        self,
        path: str,
        line: int,
        found: object,
        expected: str,
        skipped: bool = True,
    ) -> None:
        """Notes one bad row."""
        row = BadRow(path, line, _shorten(found), expected, skipped)
        if self.strict:
            place = f"{path}:{line}" if line else path
            raise UserError(
                f"{place}: found {row.found}; expected {expected}. (Stopped"
                " by strict_rows; without it the row is"
                f" {'skipped' if skipped else 'kept'} and counted.)"
            )
        self._rows.setdefault(row)

    def set_loss(self, what: str, count: int) -> None:
        """Sets how often something was lost; nothing is shown for 0."""
        self._losses[what] = count

    def count_loss(self, what: str, count: int = 1) -> None:
        """Adds to how often something was lost."""
        self._losses[what] = self._losses.get(what, 0) + count

    def summary(self, title: str = "") -> list[str]:
        """Returns lines for the console: first rows in full, then counts."""
        lines = []
        by_file = collections.Counter(row.path for row in self._rows)
        for path, count in by_file.items():
            rows = [row for row in self._rows if row.path == path]
            skipped = sum(row.skipped for row in rows)
            lines.append(
                f"{path}: {_plural(count, 'bad row')},"
                f" {skipped} skipped, {count - skipped} kept"
            )
            lines += [f"  {row}" for row in rows[:SHOWN_ROWS]]
            if count > SHOWN_ROWS:
                lines.append(f"  ... and {count - SHOWN_ROWS} more")
        lines += [f"{what}: {n}" for what, n in self._losses.items() if n]
        return [f"{title}: {line}" if title else line for line in lines]

    def as_dict(self) -> dict[str, object]:
        """Returns everything as plain values, for a JSON file."""
        return {
            "rows": [dataclasses.asdict(row) for row in self._rows],
            "losses": {k: v for k, v in self._losses.items() if v},
        }

    def absorb(self, rows: Iterable[dict], losses: dict[str, int]) -> None:
        """Takes over what `as_dict` of another report gave."""
        self._rows.update(dict.fromkeys(BadRow(**row) for row in rows))
        for what, count in losses.items():
            self.count_loss(what, count)


def _shorten(found: object) -> str:
    text = found if isinstance(found, str) else repr(found)
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return text[: SHOWN_CHARACTERS - 3] + "..."


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


# Labels found in data, kept beside the records for runs without the data.


def find_or_load(
    path: str, find: Callable[[], Any | None], task_name: str
) -> Any:
    """Finds something in the data, or loads what an earlier run found.

    The data wins, so what is kept cannot be stale while the data is there.

    Args:
      find: looks through the data; None if there is none.
    """
    found = find()
    if found is not None:
        files.make_directory(os.path.dirname(path))
        with files.open_file(path + ".tmp", "wb") as file:
            text = json.dumps(found, indent=1, ensure_ascii=False)
            file.write(f"{text}\n".encode())
        files.rename(path + ".tmp", path)
        return found
    if not files.exists(path):
        raise UserError(
            f"task {task_name}: its labels are not known: there is no labelled"
            f" data to take them from, and no {path} of an earlier run"
        )
    return load(path)


def load(path: str) -> Any:
    """Loads what an earlier run found, whatever the data are now."""
    with files.open_file(path, "rb") as file:
        try:
            return json.loads(file.read())
        except ValueError as error:
            raise UserError(f"{path}: not valid JSON: {error}") from None
