# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values of users are converted to their declared types; JSON is read."""

import pathlib

import pytest

from configure.hparams_json import read_hparams
from configure.values import coerce
from tests.conftest import refused


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        (bool, "False", False),
        (int, 4.0, 4),
        (int, "1e6", 1000000),
        (int, "1,000,000", 1000000),
        (float, "1e-4", 1e-4),
        (float, 1, 1.0),
        (int | None, "none", None),
        (str, pathlib.PurePosixPath("a/b"), "a/b"),
        (str, "none", "none"),
        (str | None, "null", None),
        (dict, '{"hidden_size": 3}', {"hidden_size": 3}),
        (list[str], "rte", ["rte"]),
        (list[str], "rte, sts", ["rte", "sts"]),
        (list[str], '["rte", "sts"]', ["rte", "sts"]),
    ],
)
def test_unambiguous_values_are_converted(declared, value, expected):
    converted = coerce("x", value, declared)
    assert converted == expected and type(converted) is type(expected)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (bool, "maybe"),
        (int, 4.5),
        (int, True),
        (int, None),
        (int, "inf"),
        (int, "1,5"),
        (float, True),
        (float, float("nan")),
        (float, {}),
        (str, 3),
        (list[str], [1]),
    ],
)
def test_other_values_are_refused_with_name_and_expectation(declared, value):
    refused("hparam the_name: .*expected", coerce, "the_name", value, declared)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_json_of_a_file_is_read_as_that_of_a_flag(tmp_path, mark):
    path = tmp_path / "hparams.json"
    path.write_text(mark + '{"seed": 4}', encoding="utf-8")
    assert read_hparams(str(path)) == read_hparams('{"seed": 4}') == {"seed": 4}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{'a': 1}", "double quotes"),
        ("config/my.jsn", "ends in .json"),
        ("[" * 90 + "]" * 90, "expected a JSON object"),
        ('{"a": ' + "[" * 100_000, "nested more than 100 levels"),
        (f'{{"a": {"9" * 10_000}}}', "--hparams: cannot be read as JSON.*4300"),
        ('{"a": 1, "a": 2}', "than one value of a; keep one"),
        ("python.json", "python.json: .* line 2, column 14 .*true, false and"),
        ("binary.json", "byte 0 is not UTF-8"),
    ],
)
def test_invalid_json_is_refused_with_a_remedy(
    tmp_path, monkeypatch, text, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    (tmp_path / "python.json").write_text('{"seed": 4,\n "do_train": False}')
    refused(message, read_hparams, text)
