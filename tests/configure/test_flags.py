# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Command lines: spellings, precedence, help, mistakes."""

import functools
import re
import sys

import pytest

from configure import flags
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig

NAMES = ["prog", "--data-dir", "D", "--model-name", "M"]


def parse(*arguments):
    return flags.parse_config(PretrainingConfig, [*NAMES, *arguments])[0]


@pytest.mark.parametrize(
    "spelling",
    [
        "--do_lower_case=false",
        "--do-lower-case False",
        "--nodo_lower_case",
        "--no-lower-case",
        "--no_do_lower_case",
    ],
)
def test_false_has_several_spellings(spelling):
    config = parse("--debug", *spelling.split())
    assert (config.debug, config.do_lower_case) == (True, False)


def test_flags_win_over_hparams_and_both_over_presets():
    hparams = '{"seed": 3, "mask_prob": 0.2}'
    config = parse("--hparams", hparams, "--seed=4", "--preset=base")
    assert (config.seed, config.mask_prob) == (4, 0.2)
    assert config.learning_rate == 2e-4 and config.origins["seed"] == "flag"
    assert config.origins["mask_prob"] == "json"
    assert config.origins["model_name"] == "flag"


def test_single_sizes_are_overridden_within_a_preset():
    preset = parse("--preset=demo").model_hparam_overrides
    flag = '--model_hparam_overrides={"hidden_size":8}'
    overrides = parse("--preset=demo", flag).model_hparam_overrides
    assert overrides == preset | {"hidden_size": 8}


DEFAULTS = parse().as_dict()
for name in ("preset", "model_dir", "model_name", "data_dir"):
    del DEFAULTS[name]


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_as_a_flag_changes_nothing(name):
    value = DEFAULTS[name]
    text = "{}" if isinstance(value, dict) else value
    assert parse(f"--{name}={text}") == parse()


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
def test_every_field_has_a_comment_in_the_help(config):
    notes = {}
    for section in flags.read_sections(config).values():
        notes |= section
    assert list(notes) == list(config.field_types())
    assert not [name for name, note in notes.items() if not note]
    text = flags.config_parser(config, "run").format_help()
    assert max(map(len, text.splitlines())) <= 80
    assert "General:" in text and "Extensions of both programs:" in text
    assert "one of small, base, large; default small" in text
    assert not [name for name in notes if f"--{name} " not in text]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 0, ""),
        (["--seed=1"], 1, "error: no data\n"),
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
    monkeypatch, capsys, arguments, status, message
):
    errors = {
        1: UserError("no data"),
        2: RuntimeError("a bug"),
        3: PermissionError(13, "Permission denied", "/some/file"),
    }

    def main(parsed):
        if parsed[0].seed:
            raise errors[parsed[0].seed]

    # run_program sets it; monkeypatch restores it.
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    monkeypatch.setattr(sys, "argv", [*NAMES, *arguments])
    parser = functools.partial(flags.parse_config, PretrainingConfig)
    with pytest.raises(RuntimeError if status is None else SystemExit) as end:
        flags.run_program(main, parser)
    if status is not None:
        assert (end.value.code or 0) == status
        assert re.match(message, capsys.readouterr().err)


def test_only_flags_of_the_original_can_be_abbreviated():
    parser = flags.FlagParser(prog="program", originals=("--num_jobs",))
    flags.add_flags(
        parser,
        "a group",
        ("num_jobs", 1, "N", "the original's"),
        ("num_jobs_at_once", 1, "N", "this project's"),
        ("strict", False, "", "this project's"),
    )
    assert parser.parse_args(["--num-j", "2"]).num_jobs == 2
    with pytest.raises(SystemExit):
        parser.parse_args(["--stri"])


@pytest.fixture
def row_parser():
    parser = flags.FlagParser(prog="program")
    flags.add_flags(
        parser,
        "a group",
        ("path", flags.REQUIRED, "FILE", "input file"),
        ("note", None, "TEXT", "any text"),
        ("size", 3, "N", "number of rows"),
        ("rate", 1e-5, "X", "learning rate"),
        ("most", int, "N", "maximum"),
        ("kind", "a", ("a", "b"), "kind of file"),
        ("quiet", False, "", "print nothing"),
        ("header", bool, "", "the file has a header"),
    )
    return parser


def test_rows_become_flags_of_their_defaults_types(row_parser):
    arguments = ["--path=x", "--most", "7", "--noheader"]
    assert vars(row_parser.parse_args(arguments)) == {
        "path": "x",
        "note": None,
        "size": 3,
        "rate": 1e-5,
        "most": 7,
        "kind": "a",
        "quiet": False,
        "header": False,
    }


@pytest.mark.parametrize(
    "text",
    [
        "number of rows (default: 3)",
        "learning rate (default: 1e-05)",
        "kind of file (a, b; default: a)",
    ],
)
def test_the_help_of_a_row_has_default_and_choices(row_parser, text):
    assert text in " ".join(row_parser.format_help().split())


@pytest.mark.parametrize(
    "arguments", [["--note=x"], ["--path=x", "--kind=c"], ["--size=x"]]
)
def test_rows_refuse_missing_and_invalid_values(row_parser, arguments):
    with pytest.raises(SystemExit):
        row_parser.parse_args(arguments)
