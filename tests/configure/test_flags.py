# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hyperparameters read and converted; command lines of every spelling."""

import functools
import pathlib
import re
import sys

import pytest

from configure import flags, json_text, values
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig


@pytest.mark.parametrize(
    ("declared", "given", "expected"),
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
def test_what_plainly_means_the_type_is_converted(declared, given, expected):
    value = values.coerce("x", given, declared)
    assert value == expected and type(value) is type(expected)


@pytest.mark.parametrize(
    ("declared", "others"),
    [
        (bool, ["maybe"]),
        (int, [4.5, True, None, "inf", "1,5"]),
        (float, [True, float("nan"), {}]),
        (str, [3]),
        (list[str], [[1]]),
    ],
)
def test_other_values_name_the_hparam_and_what_was_expected(declared, others):
    for given in others:
        with pytest.raises(UserError, match="hparam the_name: .*expected"):
            values.coerce("the_name", given, declared)


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
        ("[" * 90 + "]" * 90, "expected a JSON object"),
        ('{"a": ' + "[" * 100_000, "nested more than 100 levels"),
        (f'{{"a": {"9" * 10_000}}}', "--hparams: cannot be read as JSON.*4300"),
        ('{"a": 1, "a": 2}', "a given more than once"),
        ("python.json", "python.json: .* line 2, column 14 .*true, false and"),
        ("binary.json", r"not UTF-8 text \(byte 0\)"),
    ],
)
def test_bad_text_says_what_to_do(tmp_path, monkeypatch, text, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    (tmp_path / "python.json").write_text('{"seed": 4,\n "do_train": False}')
    with pytest.raises(UserError, match=expected):
        json_text.read_hparams(text)


NAMES = ["prog", "--data-dir", "D", "--model-name", "M"]


def parse(*arguments):
    return flags.parse_config(PretrainingConfig, [*NAMES, *arguments])[0]


def test_every_way_to_say_false():
    for form in (
        "--do_lower_case=false",
        "--do-lower-case False",
        "--nodo_lower_case",
        "--no-lower-case",
        "--no_do_lower_case",
    ):
        config = parse("--debug", *form.split())
        assert (config.debug, config.do_lower_case) == (True, False), form


def test_flags_win_over_hparams_and_both_over_presets():
    hparams = '{"seed": 3, "mask_prob": 0.2}'
    config = parse("--hparams", hparams, "--seed=4", "--preset=base")
    assert (config.seed, config.mask_prob) == (4, 0.2)
    assert config.learning_rate == 2e-4 and config.origins["seed"] == "flag"
    assert config.origins["mask_prob"] == "json"
    assert config.origins["model_name"] == "flag"
    sizes = parse("--preset=demo").model_hparam_overrides | {"hidden_size": 8}
    more = '--model_hparam_overrides={"hidden_size":8}'
    assert parse("--preset=demo", more).model_hparam_overrides == sizes


def test_the_default_given_as_a_flag_changes_nothing():
    plain = parse()
    for name, value in plain.as_dict().items():
        if name in ("preset", "model_dir", "model_name", "data_dir"):
            continue
        value = "{}" if isinstance(value, dict) else value
        assert parse(f"--{name}={value}") == plain, name


def test_a_resolved_config_file_is_accepted_back(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(parse("--seed=3").to_json(), encoding="utf-8")
    argv = ["prog", f"--hparams={path}"]
    config, _ = flags.parse_config(PretrainingConfig, argv)
    assert config == parse("--seed=3") and config.origins["seed"] == "file"
    other = parse(f"--hparams={path}", "--model_name=other")
    assert other.model_dir == "D/models/other"


def test_print_config_lists_every_value_and_its_origin(capsys):
    with pytest.raises(SystemExit) as caught:
        parse("--preset=base", "--seed=3", "--print-config")
    assert not caught.value.code
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows["seed"] == ["3", "flag"]
    assert rows["learning_rate"] == ["0.0002", "preset"]
    assert rows["gen_weight"] == ["1.0", "default"]
    assert rows["model_dir"] == ["D/models/M", "derived"]
    assert set(rows) == {"hparam", *PretrainingConfig.field_types()}
    assert len({line.index(line.split()[-1], 60) for line in lines}) == 1


@pytest.mark.parametrize("config", [PretrainingConfig, FinetuningConfig])
def test_every_field_has_a_reason_in_the_help(config):
    sections = flags.read_sections(config)
    notes = {k: v for section in sections.values() for k, v in section.items()}
    assert list(notes) == list(config.field_types())
    assert all(notes.values()), [k for k, v in notes.items() if not v]
    text = flags.config_parser(config, "run").format_help()
    assert max(map(len, text.splitlines())) <= 80
    assert "General:" in text and "Extensions of both programs:" in text
    assert "one of small, base, large; default small" in text
    for name in notes:
        assert f"--{name} " in text


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        ([], 0, ""),
        (["--seed=1"], 1, "error: data is not there\n"),
        (["--seed=3"], 1, "error: /some/file: Permission denied\n"),
        (["--seed=x"], 2, "error: hparam seed: expected a whole number"),
        (["--hparams={"], 2, "error: --hparams: not valid JSON at line 1"),
        (["--hparams=--"], 2, "error: --hparams=--: expected a value"),
        (["--debug", "True", "junk"], 2, "error: unexpected argument: junk"),
        (["--learning=1"], 2, "error: Unknown flag learning.*learning_rate"),
        (["--seed=2"], None, ""),
    ],
)
def test_mistakes_are_messages_and_bugs_keep_their_traceback(
    monkeypatch, capsys, arguments, status, expected
):
    errors = {
        1: UserError("data is not there"),
        2: RuntimeError("a bug"),
        3: PermissionError(13, "Permission denied", "/some/file"),
    }

    def main(parsed):
        if parsed[0].seed:
            raise errors[parsed[0].seed]

    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")  # and taken back
    monkeypatch.setattr(sys, "argv", [*NAMES, *arguments])
    parser = functools.partial(flags.parse_config, PretrainingConfig)
    with pytest.raises(RuntimeError if status is None else SystemExit) as end:
        flags.run_program(main, parser)
    if status is not None:
        assert (end.value.code or 0) == status
        assert re.match(expected, capsys.readouterr().err)


def test_abbreviations_are_those_of_the_originals_flags():
    parser = flags.FlagParser(prog="program", originals=("--num_jobs",))
    flags.add_flags(
        parser,
        "a group",
        ("num_jobs", 1, "N", "the original's"),
        ("num_jobs_at_once", 1, "N", "of ours"),
        ("strict", False, "", "of ours"),
    )
    assert parser.parse_args(["--num-j", "2"]).num_jobs == 2
    with pytest.raises(SystemExit):
        parser.parse_args(["--stri"])


def test_rows_become_flags_of_their_defaults_types():
    parser = flags.FlagParser(prog="program")
    flags.add_flags(
        parser,
        "a group",
        ("path", flags.REQUIRED, "FILE", "what is read"),
        ("note", None, "TEXT", "anything"),
        ("size", 3, "N", "how many"),
        ("rate", 1e-5, "X", "how fast"),
        ("most", int, "N", "at most"),
        ("kind", "a", ("a", "b"), "which"),
        ("quiet", False, "", "say nothing"),
        ("header", bool, "", "whether there is one"),
    )
    args = vars(parser.parse_args(["--path=x", "--most", "7", "--noheader"]))
    assert args == {
        **{"path": "x", "note": None, "size": 3, "rate": 1e-5, "most": 7},
        **{"kind": "a", "quiet": False, "header": False},
    }
    text = " ".join(parser.format_help().split())
    assert "how many (default: 3)" in text and "(default: 1e-05)" in text
    assert "which (a, b; default: a)" in text
    for wrong in (["--note=x"], ["--path=x", "--kind=c"], ["--size=x"]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)
