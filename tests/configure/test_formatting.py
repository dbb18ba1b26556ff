# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Long lists and values are cut, and the omitted items are counted."""

import pytest

from configure.formatting import join_names, limit_lines, shorten


@pytest.mark.parametrize(
    ("names", "limit", "text"),
    [
        ("abc", 5, "a, b, c"),
        ("abcdefg", 2, "a, b and 5 more"),
        ("abcdefg", 7, "a, b, c, d, e, f, g"),
    ],
)
def test_names_beyond_the_limit_are_counted(names, limit, text):
    assert join_names(names, limit) == text


def test_lines_beyond_the_limit_are_counted():
    assert limit_lines("abc", 2) == ["  a", "  b", "  ... and 1 more"]
    assert limit_lines("ab", 2, "") == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "text"),
    [("abcdefgh", "abcdefgh"), ("abcdefghi", "abcde..."), (12, "12")],
)
def test_a_long_value_is_cut(value, text):
    assert shorten(value, 8) == text
