# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Texts of exceptions that messages quote."""

import pytest

from configure.errors import last_line


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("what\n\n  why  \n"), "  why"),
        (KeyError("name"), "'name'"),
        (AssertionError(), "AssertionError"),
        (MemoryError(" \n"), "MemoryError"),
    ],
)
def test_the_last_line_or_the_class_names_the_cause(error, expected):
    assert last_line(error) == expected
