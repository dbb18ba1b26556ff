# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading and converting hyperparameters."""

import pathlib

import pytest

from configure import config, json_text
from configure.errors import UserError


@pytest.mark.parametrize(
    ("declared", "given", "expected"),
    [
        (bool, "False", False),
        (bool, "true", True),
        (bool, 0, False),
        (int, 4.0, 4),
        (int, "1e6", 1000000),
        (int, "-3", -3),
        (float, "1e-4", 1e-4),
        (float, 1, 1.0),
        (int | None, None, None),
        (int | None, "none", None),
        (int | None, "7", 7),
        (str, pathlib.PurePosixPath("a/b"), "a/b"),
        (str, "none", "none"),
        (str | None, "null", None),
        (dict, '{"hidden_size": 3}', {"hidden_size": 3}),
        (list[str], "rte", ["rte"]),
        (list[str], "rte, sts", ["rte", "sts"]),
        (list[str], '["rte", "sts"]', ["rte", "sts"]),
    ],
)
def test_values_that_plainly_mean_the_type_are_converted(
    declared, given, expected
):
    value = config.coerce("x", given, declared)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        (bool, "maybe"),
        (bool, 2),
        (int, 4.5),
        (int, True),
        (int, "four"),
        (int, None),
        (int, "inf"),
        (float, "fast"),
        (float, True),
        (float, float("nan")),
        (float, {}),
        (str, 3),
        (str, None),
        (dict, "[1]"),
        (list[str], [1]),
    ],
)
def test_other_values_name_the_hparam_and_what_was_expected(declared, given):
    with pytest.raises(UserError, match="hparam the_name: .*expected"):
        config.coerce("the_name", given, declared)


def test_text_and_file_are_read_alike(tmp_path):
    path = tmp_path / "hparams.json"
    assert json_text.read_hparams('{"seed": 4}') == {"seed": 4}
    for mark in ("", "\ufeff"):
        path.write_text(mark + '{"seed": 4}', encoding="utf-8")
        assert json_text.read_hparams(str(path)) == {"seed": 4}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'a': 1}", "double quotes"),
        ("config/my.jsn", "ends in .json"),
        ("[1]", "expected a JSON object"),
        ('{"a": 1, "a": 2}', "a given more than once"),
        (
            "python.json",
            r"python.json: not valid JSON at line 2, column 14"
            r" \(character 25\).*true, false and null",
        ),
        ("missing.json", "missing.json: .*cannot be read: No such"),
        ("directory.json", "cannot be read"),
        ("binary.json", r"not UTF-8 text \(byte 0\)"),
    ],
)
def test_bad_input_says_where_and_what_to_do(
    tmp_path, monkeypatch, text, expected
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "directory.json").mkdir()
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    (tmp_path / "python.json").write_text('{"seed": 4,\n "do_train": False}')
    with pytest.raises(UserError, match=expected):
        json_text.read_hparams(text)


def test_unknown_names_come_with_the_three_nearest():
    known = ["learning_rate", "lr_decay_power", "mask_prob", "seed"]
    nearest = "Unknown hparam learning_rates. Nearest names: learning_rate"
    with pytest.raises(UserError, match=nearest + ", .*, "):
        config.check_names(["learning_rates"], known)
