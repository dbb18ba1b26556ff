# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The recipes of CONTRIBUTING.md, followed to the letter on a copy."""

import ast
import re
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```", TEXT)
SECTION = r"    # ---- Extensions.* ----\n"
CONFIGS = {
    "configure/pretraining.py": "PretrainingConfig",
    "configure/finetuning.py": "FinetuningConfig",
    "configure/config.py": "PretrainingConfig",
}
# For each list, an hparam that the table assigns to the list.
LISTED = {
    "SETTINGS": "temperature",
    "MODEL_HPARAMS": "generator_layers",
    "DATA_HPARAMS": "shuffle_buffer_size",
    "_DECIDING": "doc_stride",
    "FREE_HPARAMS": "log_every_n_steps",
}


def block_with(text):
    (block,) = [block for block in BLOCKS if text in block]
    return block


@pytest.fixture
def tree(tmp_path):
    """Return a copy of the code, to be changed."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("configure", "electra_tf"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    return tmp_path


def run(tree, *arguments, status=0):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, capture_output=True, text=True
    )
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def add_hparam(tree, path):
    file = tree / path
    code, count = re.subn(
        SECTION,
        lambda heading: heading[0] + block_with("unknown_bonus"),
        file.read_text(),
    )
    assert count == 1, path
    if "    NonNegative,\n" not in code and "\nNonNegative = " not in code:
        pytest.fail(f"{path} knows no NonNegative")
    file.write_text(code)


PRINT_CONFIG = """
import sys
from configure import {module}, flags
argv = ["x", "--print_config", *sys.argv[1:]]
try:
    flags.parse_config({module}.{name}, argv)
except ValueError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize("path", CONFIGS)
def test_the_recipe_for_an_hparam_gives_flag_check_and_table(tree, path):
    add_hparam(tree, path)
    name = CONFIGS[path]
    module = "finetuning" if name == "FinetuningConfig" else "pretraining"
    code = PRINT_CONFIG.format(module=module, name=name)
    output = run(tree, "-c", code, "--unknown_bonus=0.5")
    assert re.search(r"(?m)^unknown_bonus +0\.5 +flag$", output)
    output = run(tree, "-c", code)
    assert re.search(r"(?m)^unknown_bonus +0\.0 +default$", output)
    output = run(tree, "-c", code, "--unknown_bonus=-1")
    assert "refused: hparam unknown_bonus" in output


def names_in(path, variable):
    """Return the words of the strings that a file assigns to a variable."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    for node in tree.body:
        targets = getattr(node, "targets", [])
        if any(getattr(target, "id", "") == variable for target in targets):
            strings = (getattr(n, "value", None) for n in ast.walk(node))
            texts = [text for text in strings if isinstance(text, str)]
            return {word for text in texts for word in text.split()}
    raise AssertionError(f"{path} has no {variable}")


def test_the_table_of_lists_names_the_five_lists():
    rows = re.findall(r"(?m)^\| .* \| `(\w+)` in `([\w/.]+)` \|$", TEXT)
    assert dict(rows).keys() == LISTED.keys()


@pytest.mark.parametrize("variable", LISTED)
def test_the_table_of_lists_is_right(variable):
    (path,) = re.findall(
        rf"(?m)^\| .* \| `{variable}` in `([\w/.]+)` \|$", TEXT
    )
    assert LISTED[variable] in names_in(path, variable)


def test_the_recipe_for_a_preset_makes_one(tree):
    presets = tree / "configure" / "presets"
    shutil.copy(presets / "small.json", presets / "mine.json")
    code = PRINT_CONFIG.format(module="pretraining", name="PretrainingConfig")
    output = run(tree, "-c", code, "--preset=mine")
    assert re.search(r"(?m)^preset +mine +flag$", output)
    assert "refused" not in output


def test_the_recipe_for_a_command_runs(tree):
    module = tree / "electra_tf" / "commands" / "count_tokens.py"
    module.write_text(block_with("def parse_flags"))
    main = tree / "electra_tf" / "__main__.py"
    head, tail = main.read_text().split('    "Use": {\n')
    line = block_with('"count_tokens": "the')
    main.write_text(f'{head}    "Use": {{\n{line}{tail}')
    (tree / "vocab.txt").write_text(
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nfox\n##es\n"
    )
    command = ("-m", "electra_tf", "count_tokens")
    output = run(tree, *command, "--vocab_file=vocab.txt", "--text=The foxes")
    assert output == "3\n"
    assert "count_tokens" in run(tree, "-m", "electra_tf", "help")
    output = run(tree, *command, "--text=x", status=2)
    assert "vocab_file" in output


@pytest.mark.parametrize(
    "path",
    sorted(
        set(
            re.findall(r"`((?:configure|electra_tf|tests|docs)/[\w/.]+)`", TEXT)
        )
    ),
)
def test_files_of_the_recipes_exist(path):
    made = {"electra_tf/commands/count_tokens.py"}
    assert path in made or (ROOT / path).exists(), path
