# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""`python -m electra_tf`: its help page, its commands, wrong command lines."""

import importlib
import pathlib

import pytest

import electra_tf
from electra_tf import commands
from electra_tf.__main__ import COMMANDS, PROGRAMS
from tests.conftest import ROOT


def command(name):
    return importlib.import_module(f"electra_tf.commands.{name}")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_a_module_with_flags_and_main(name):
    folder = pathlib.Path(commands.__file__).parent
    assert (folder / f"{name}.py").is_file()
    module = command(name)
    assert callable(module.main) and callable(module.parse_flags)


def test_the_help_page_names_every_command(run_python):
    page = run_python("-m", "electra_tf", "--help").stdout
    assert [name for name in COMMANDS if f"  {name} " not in page] == []


def test_the_help_page_has_eighty_columns(run_python):
    page = run_python("-m", "electra_tf", "--help").stdout
    assert max(map(len, page.splitlines())) <= 80


def test_the_help_page_begins_with_pre_training_and_fine_tuning(run_python):
    page = run_python("-m", "electra_tf").stdout
    places = [page.index(f"  {name} ") for name in PROGRAMS]
    assert set(PROGRAMS) == {path.name for path in ROOT.glob("*_*.py")} - {
        "build_backend.py"
    }
    assert places == sorted(places) and places[-1] < page.index("\nTrain:\n")
    assert all((ROOT / name).is_file() for name in PROGRAMS)


@pytest.mark.parametrize(
    ("argv", "start"),
    [
        ("help", "usage: python -m electra_tf COMMAND"),
        ("help score", "usage: python -m electra_tf score"),
        ("--version", f"electra_tf {electra_tf.__version__}\n"),
    ],
)
def test_help_and_version_are_printed(run_python, argv, start):
    page = run_python("-m", "electra_tf", *argv.split())
    assert page.stdout.startswith(start)


def test_a_command_may_have_dashes_and_a_wrong_one_names_the_nearest(
    run_python,
):
    wrong = run_python("-m", "electra_tf", "scor", status=2)
    assert wrong.stderr == "error: no command 'scor'. Did you mean score?\n"
    usage = run_python("-m", "electra_tf", "fill-mask", "--help")
    assert usage.stdout.startswith("usage: python -m electra_tf fill_mask")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ask texts --model=m", "expected exactly one"),
        ("compare_checkpoints A", "expected two checkpoints"),
        ("compare_checkpoints A --expect=x.npz --text=t", "uses its own"),
        ("export_model --head=nonsense", "invalid choice: 'nonsense'"),
        ("plan --mask_probe=0.2", "Nearest names: mask_prob"),
        ("serve x --max_wait_ms=nan", "--max_wait_ms"),
        ("serve x --max_body_mb=inf", "--max_body_mb"),
        (
            "plan --model-name=n --data-dir=d --memory_gib=inf",
            "expected a finite",
        ),
    ],
)
def test_an_impossible_command_line_has_status_two(line, message, capsys):
    name, *argv = line.split()
    with pytest.raises(SystemExit) as stopped:
        command(name).parse_flags([name, *argv])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
