# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The columns of a table, resolved by the names in its header or by numbers."""

from collections.abc import Callable, Collection, Mapping, Sequence

from configure.errors import UserError

# The names and numbers (from 0, or from the end if negative) that a column may
# have, in order of preference.
Options = Sequence[int | str]
# Header cells of a column that numbers the rows, as pandas writes it.
_UNNAMED = ("", "Unnamed: 0")


def column_indices(
    columns: Mapping[str, Options],
    header: Sequence[str],
    path: str,
    remedy: Callable[[str], str],
    optional: Collection[str] = (),
) -> dict[str, int]:
    """Return the index of each column.

    It is that of the first name that the header has, or the first number.

    Args:
      columns: options by the purpose of the column, such as "text_a".
      header: the names in the header; empty for a table without one.
      path: the file, for messages.
      remedy: returns the remedy for a purpose without a column.
      optional: the purposes that need no column. The numbers of such a purpose
        count only if it has no names.

    Raises:
      UserError: no column fits a purpose, or several have the name.
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


def _no_column(
    problem: str,
    purpose: str,
    header: Sequence[str],
    path: str,
    remedy: Callable[[str], str],
) -> UserError:
    """Return the error of a purpose that no single column fits."""
    names = f"the header names: {', '.join(header)[:200]}"
    if not header:
        names = "the table has no header"
    return UserError(
        f"{path}:1: {problem} for {purpose}; {names}. {remedy(purpose)}"
    )


def refuse_unnamed(
    indices: Mapping[str, int], header: Sequence[str], path: str
) -> None:
    """Raise a UserError for a column that has no name in a header."""
    for purpose, index in indices.items():
        is_inside = -len(header) <= index < len(header)
        if is_inside and len(header) > 1 and header[index] in _UNNAMED:
            raise UserError(
                f"{path}:1: column {index}, for {purpose}, has no name, as the"
                " row numbers that pandas writes; the header names:"
                f" {', '.join(header)}. Pass the name of another column, or"
                " name this column in the header"
            )
