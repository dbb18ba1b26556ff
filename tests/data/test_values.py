# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values are read by their meaning if it is certain."""

import math

import pytest

from electra_tf.data import values

UNCERTAIN = [None, [], {}, [1], {"a": 1}]


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (values.as_text, "5", "5"),
        (values.as_text, 5, "5"),
        (values.as_text, 5.0, None),
        (values.as_text, True, None),
        (values.as_id, "5.0", "5.0"),
        (values.as_id, -5, "-5"),
        (values.as_id, 5.0, "5"),
        (values.as_id, 2.0**53, None),
        (values.as_id, math.nan, None),
        (values.as_id, math.inf, None),
        (values.as_id, False, None),
        (values.as_integer, 4, 4),
        (values.as_integer, 4.0, 4),
        (values.as_integer, " -4 ", -4),
        (values.as_integer, "4.0", 4),
        (values.as_integer, "4.5", None),
        (values.as_integer, "\uff14", None),
        (values.as_integer, "9" * 5000, None),
        (values.as_integer, 4.5, None),
        (values.as_integer, True, None),
        (values.as_flag, True, True),
        (values.as_flag, "False", False),
        (values.as_flag, " true ", True),
        (values.as_flag, "0", False),
        (values.as_flag, 1.0, True),
        (values.as_flag, 2, None),
        (values.as_flag, "no", None),
    ],
)
def test_a_value_is_read_or_uncertain(read, value, expected):
    result = read(value)
    assert result == expected and type(result) is type(expected)


@pytest.mark.parametrize("value", UNCERTAIN)
@pytest.mark.parametrize(
    "read", [values.as_text, values.as_id, values.as_integer, values.as_flag]
)
def test_lists_objects_and_null_are_neither_values_nor_uncertain(read, value):
    assert read(value) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "the text 'x'"),
        (4.5, "the number 4.5"),
        (True, "true"),
        (None, "null"),
        ([1], "a list [1]"),
        ({"a": 1}, "an object {'a': 1}"),
    ],
)
def test_a_value_is_described_with_its_type(value, text):
    assert values.describe(value) == text
