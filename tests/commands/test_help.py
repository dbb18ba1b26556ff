# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""`python -m electra_tf`: one help page, and every command it names."""

import importlib
import pathlib
import subprocess
import sys

from electra_tf import commands
from electra_tf.__main__ import COMMANDS


def run(*arguments):
    command = [sys.executable, "-m", "electra_tf", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_help_page_names_each_command_there_is():
    folder = pathlib.Path(commands.__file__).parent
    for name in COMMANDS:
        assert (folder / f"{name}.py").is_file(), name
        module = importlib.import_module(f"electra_tf.commands.{name}")
        assert callable(module.main) and callable(module.parse_flags), name
    page = run("--help")
    assert page.returncode == 0
    assert all(f"  {name} " in page.stdout for name in COMMANDS)


def test_an_unknown_command_is_refused_with_the_nearest_name():
    wrong = run("scor")
    assert wrong.returncode == 2
    assert wrong.stderr == "error: no command 'scor'; did you mean score?\n"


def test_a_dash_stands_for_an_underscore():
    usage = run("fill-mask", "--help")
    assert usage.returncode == 0
    assert usage.stdout.startswith("usage: python -m electra_tf fill_mask")
