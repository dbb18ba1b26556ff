# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Plain tables: aligned columns, and nothing lost at a screen's width."""

from hypothesis import given
from hypothesis import strategies as st

from configure.text_tables import render_rows

ROWS = [["name", "mean score"], ["electra", "9.5"], ["bert", "12.25"]]


def test_columns_are_aligned_left_and_right():
    assert render_rows(ROWS, left=1) == [
        "name     mean score",
        "electra         9.5",
        "bert          12.25",
    ]


def test_cells_are_wrapped_at_the_width():
    assert render_rows(ROWS, left=1, width=17) == [
        "name         mean",
        "            score",
        "electra       9.5",
        "bert        12.25",
    ]


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(
            st.lists(st.text("ab[]東, ", max_size=12), min_size=n, max_size=n),
            min_size=1,
            max_size=4,
        )
    ),
    st.integers(30, 60),
)
def test_no_character_is_lost_at_any_width(rows, width):
    lines = render_rows(rows, width=width)
    letters = sorted("".join(map("".join, rows)).replace(" ", ""))
    assert sorted("".join(lines).replace(" ", "")) == letters
