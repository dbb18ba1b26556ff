# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Plain-text tables for terminals, pipes and result files."""

from collections.abc import Sequence

_UNLIMITED = 1 << 16  # columns


def render_rows(
    rows: Sequence[Sequence[str]], left: int = 2, width: int = _UNLIMITED
) -> list[str]:
    """Return the lines of a table, drawn by rich without borders or colors.

    Args:
      rows: cells, all rows of one length; headings are a row like any other.
      left: number of left-aligned columns; later columns are right-aligned.
      width: columns at which cells are wrapped; no text is cut.
    """
    # rich is imported here, because its import takes a tenth of a second, which
    # every start of a program would pay.
    import rich.console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    for column in range(len(rows[0])):
        table.add_column(
            justify="left" if column < left else "right",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = rich.console.Console(width=width, color_system=None)
    lines = console.render_lines(table, pad=False)
    return ["".join(part.text for part in line).rstrip() for line in lines]
