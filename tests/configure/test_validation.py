# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Objects of users' files: unknown keys, wrong types, values out of bounds."""

from typing import Annotated, Any

import pytest

from configure.bounds import NonEmpty, Ratio, at_most, one_of
from configure.validation import check_object, check_value
from tests.conftest import refused

FIELDS = {
    "kind": Annotated[str, one_of("a", "b")],
    "budget": Annotated[Ratio, at_most(1e30)],
    "files": dict[str, NonEmpty],
    "seeds": list[int],
    "note": str | None,
    "settings": dict[str, Any],
}


def test_a_valid_object_passes():
    value = {
        "kind": "a",
        "budget": 3,
        "files": {"train": "t.tsv"},
        "seeds": [1, 2],
        "note": None,
        "settings": {"any": [1, "x"]},
    }
    check_object(value, FIELDS, "study.json: ")
    check_object({}, FIELDS, "study.json: ")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], r"study\.json: expected a JSON object, got \[\]"),
        ({"kinds": "a"}, "kinds: unknown key. Nearest names: kind, "),
        ({"kind": 1}, "study.json: kind: expected text, got 1"),
        ({"kind": "c"}, "study.json: kind: must be one of a, b, got 'c'"),
        ({"budget": True}, "budget: expected a number, got True"),
        ({"budget": float("nan")}, "budget: expected a number, got nan"),
        ({"budget": 0}, "budget: must be above 0, got 0"),
        ({"budget": 10**40}, "budget: must be at most 1e"),
        ({"files": {"dev": ""}}, "files.dev: must be a text that is not empty"),
        ({"files": {"dev": 3}}, "files.dev: expected text, got 3"),
        ({"seeds": 3}, "seeds: expected a list, got 3"),
        ({"seeds": [1, 2.0]}, r"seeds\[1\]: expected a whole number, got 2.0"),
        ({"note": 3}, "note: expected text or null, got 3"),
        (
            {"settings": "x" * 200},
            r"expected a JSON object, got 'xxx.*\.\.\.\. Correct",
        ),
    ],
)
def test_an_invalid_object_is_refused_with_its_key(value, message):
    refused(message, check_object, value, FIELDS, "study.json: ")


@pytest.mark.parametrize(
    ("value", "declared"),
    [(1, int), (1, float), (1.5, float), (None, int | None), ([1], list[Any])],
)
def test_a_value_of_its_type_passes(value, declared):
    check_value(value, declared, "x")
