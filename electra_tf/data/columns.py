# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Columns of a table, found by names in the header or by numbers."""

from collections.abc import Callable, Collection, Mapping, Sequence

from configure.errors import UserError

# Alternative names or numbers of a column, in order of preference. Numbers
# count from 0, or from the end if negative.
Options = Sequence[int | str]
# Header cells of the row-number columns that pandas writes.
_UNNAMED = ("", "Unnamed: 0")


def column_indices(
    columns: Mapping[str, Options],
    header: Sequence[str],
    path: str,
    remedy: Callable[[str], str],
    optional: Collection[str] = (),
) -> dict[str, int]:
    """Return the index of the column for each purpose.

    The first name that the header contains selects the column. If the header
    contains none of the names, the first number selects the column.

    Args:
      columns: options for each purpose of a column, such as "text_a".
      header: names in the header; empty for a table without a header.
      path: path of the file, for messages.
      remedy: function that returns the remedy for a purpose without a column.
      optional: purposes that may have no column. The number of such a column
        counts only if the options contain no names.

    Raises:
      UserError: no column or more than one column fits a purpose.
    """
    indices = {}
    for purpose, options in columns.items():
        names = [option for option in options if isinstance(option, str)]
        numbers = [option for option in options if isinstance(option, int)]
        name = next((name for name in names if name in header), None)
        if name is not None and header.count(name) == 1:
            indices[purpose] = header.index(name)
        elif name is not None:
            problem = f"several columns {name!r}"
            raise _no_column(problem, purpose, header, path, remedy)
        elif names and purpose in optional:
            continue
        elif numbers:
            indices[purpose] = numbers[0]
        else:
            problem = f"no column {' or '.join(map(repr, names))}"
            raise _no_column(problem, purpose, header, path, remedy)
    return indices


def count_from_start(indices: Mapping[str, int], width: int) -> dict[str, int]:
    """Return indices that count from the start of a row.

    In a row that lacks a cell, an index that counts from the end would select
    another column.

    Args:
      indices: indices; a negative index counts from the end.
      width: number of cells in the header or in the first row. A negative
        index beyond the first cell becomes an index beyond the last cell.
    """
    return {
        purpose: index if index >= 0 else _from_start(index, width)
        for purpose, index in indices.items()
    }


def _from_start(index: int, width: int) -> int:
    return index + width if index >= -width else -index - 1


def _no_column(
    problem: str,
    purpose: str,
    header: Sequence[str],
    path: str,
    remedy: Callable[[str], str],
) -> UserError:
    """Return the error for a purpose that no single column fits."""
    names = f"the header contains: {', '.join(header)[:200]}"
    if not header:
        names = "the table has no header"
    return UserError(
        f"{path}:1: {problem} for {purpose}; {names}. {remedy(purpose)}"
    )


def refuse_unnamed(
    indices: Mapping[str, int], header: Sequence[str], path: str
) -> None:
    """Raise a UserError for a selected column without a name in the header."""
    for purpose, index in indices.items():
        is_inside = -len(header) <= index < len(header)
        if is_inside and len(header) > 1 and header[index] in _UNNAMED:
            raise UserError(
                f"{path}:1: column {index}, selected for {purpose}, has no name"
                " in the header, which is typical of row numbers from pandas;"
                f" the header contains: {', '.join(header)}. Pass the name of a"
                " different column, or write a name for this column into the"
                " header."
            )
