# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Problems are raised, returned or collected, as the caller chooses."""

import pytest

from configure.errors import UserError
from configure.problems import Level, Problem, collect_error, raise_errors
from tests.conftest import refused

WARNING = Problem(Level.WARNING, "slow")
DOUBTS = [Problem(Level.DOUBT, "odd", field="seed"), Problem(Level.DOUBT, "?")]
ERROR = Problem(Level.ERROR, "is empty; copy it again", "a.tsv:3", "label")


def test_a_problem_names_file_and_field_first():
    assert str(ERROR) == "a.tsv:3: label: is empty; copy it again"
    assert str(WARNING) == "slow"


def test_problems_without_an_error_are_returned():
    assert raise_errors(iter([WARNING, *DOUBTS])) == [WARNING, *DOUBTS]


def test_the_first_error_is_raised_before_later_checks_run():
    def problems():
        yield WARNING
        yield ERROR
        raise AssertionError("a check after the error ran")

    refused("^a.tsv:3: label: is empty", raise_errors, problems())


def test_strict_raises_all_doubts_but_no_warnings():
    message = r"^seed: odd\n\?\n\(Stopped by --strict\.\)$"
    refused(message, raise_errors, [WARNING, *DOUBTS], strict=True)
    assert raise_errors([WARNING], strict=True) == [WARNING]


def test_a_collected_error_leaves_the_result_out():
    problems = []

    def fail():
        raise UserError("no such file")

    assert collect_error(problems, fail) is None
    assert collect_error(problems, lambda: 3) == 3
    assert problems == [Problem(Level.ERROR, "no such file")]


def test_bugs_are_not_collected():
    with pytest.raises(ZeroDivisionError):
        collect_error([], lambda: 1 / 0)


@pytest.mark.parametrize(
    ("problem", "strict", "expected"),
    [
        (ERROR, False, True),
        (DOUBTS[0], False, False),
        (DOUBTS[0], True, True),
        (WARNING, True, False),
    ],
)
def test_errors_and_strict_doubts_are_fatal(problem, strict, expected):
    assert problem.is_fatal(strict) == expected
