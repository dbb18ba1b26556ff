# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The house rules that a machine can check."""

import ast
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = (
    "# Copyright 2026 The electra_tf Authors.\n"
    "# SPDX-License-Identifier: Apache-2.0\n"
)
ATTICS = {"utils", "util", "helpers", "common", "misc", "tools", "lib"}
TEXT_ENDINGS = {".py", ".md", ".toml", ".txt", ".json", ".yml", ".yaml", ""}


def _tracked() -> list[pathlib.Path]:
    """Returns the files of the repository (all files, outside git)."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True)
        names = listed.stdout.decode().split("\0")
        paths = [ROOT / name for name in names if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [
            path
            for path in ROOT.rglob("*")
            if not any(
                part.startswith(".") or part == "__pycache__"
                for part in path.relative_to(ROOT).parts
            )
        ]
    return [path for path in paths if path.is_file()]


TRACKED = _tracked()
PYTHON = [path for path in TRACKED if path.suffix == ".py"]
LIBRARY = [
    path
    for path in PYTHON
    if path.relative_to(ROOT).parts[0] in ("configure", "electra_tf")
]


def _name(path: pathlib.Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PYTHON, ids=_name)
def test_every_python_file_starts_with_the_licence_header(path):
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    assert "".join(lines[:2]) == HEADER


@pytest.mark.parametrize("path", PYTHON, ids=_name)
def test_there_is_one_keras(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        imported = []
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported = [node.module or ""]
            imported += [f"{node.module}.{a.name}" for a in node.names]
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name):
                imported = [f"{node.value.id}.{node.attr}"]
        for name in imported:
            assert name.split(".")[0] != "keras", name
            assert not name.startswith(("tf.keras", "tensorflow.keras")), name


def test_there_are_no_attics():
    for path in PYTHON:
        parts = {*path.relative_to(ROOT).parts[:-1], path.stem}
        assert not parts & ATTICS, path


@pytest.mark.parametrize("path", LIBRARY, ids=_name)
def test_files_stay_readable(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 450


@pytest.mark.parametrize("path", LIBRARY, ids=_name)
def test_documented_arguments_are_the_arguments(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function, owner in _public_functions(tree):
        where = f"{_name(path)}:{function.lineno} {function.name}"
        assert _is_annotated(function), f"{where}: add type hints"
        documented = _documented(ast.get_docstring(function) or "", "Args")
        if function.name == "__init__" and not documented:
            documented = _documented(ast.get_docstring(owner) or "", "Args")
        if documented:
            assert documented == _arguments(function), where


def _public_functions(tree):
    """Yields (function, class or None) for every public function."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name[0] != "_":
            yield node, None
        elif isinstance(node, ast.ClassDef) and node.name[0] != "_":
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and (
                    member.name == "__init__" or member.name[0] != "_"
                ):
                    yield member, node


def _parameters(function):
    spec = function.args
    named = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    stars = [a for a in (spec.vararg, spec.kwarg) if a is not None]
    return [a for a in [*named, *stars] if a.arg not in ("self", "cls")]


def _arguments(function) -> list[str]:
    """Returns parameter names, in the order a docstring lists them."""
    return sorted(p.arg for p in _parameters(function))


def _is_annotated(function) -> bool:
    # What a subclass of the library's classes overrides is typed up there.
    overrides = ("call", "build", "get_config", "parse_args", "__init__")
    if function.name in overrides:
        return True
    return function.returns is not None and all(
        p.annotation is not None for p in _parameters(function)
    )


def _documented(docstring: str, heading: str) -> list[str]:
    """Returns the names under a docstring's heading, sorted."""
    match = re.search(
        rf"^{heading}:\n((?:[ ]+.*\n?|\n)+)", docstring, re.MULTILINE
    )
    if match is None:
        return []
    lines = [line for line in match[1].splitlines() if line.strip()]
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    names = []
    for line in lines:
        entry = re.match(rf"^ {{{indent}}}([\w*, ]+?)(?: \(.*\))?:", line)
        if entry is not None:
            names += re.split(r",\s*", entry[1].replace("*", ""))
    return sorted(names)


@pytest.mark.parametrize("room", ["configure", "electra_tf"])
def test_every_package_has_a_room_card(room):
    for directory in {path.parent for path in LIBRARY}:
        if directory.relative_to(ROOT).parts[0] != room:
            continue
        card = directory / "__init__.py"
        assert card.is_file(), directory
        assert ast.get_docstring(ast.parse(card.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"]
)
def test_the_porch_is_complete(name):
    path = ROOT / name
    if name == "README.md" and not path.exists():
        pytest.skip("README.md is not written yet")
    assert path.read_text(encoding="utf-8").strip()


def test_the_project_speaks_only_of_itself():
    # Spelt apart, so that this file passes its own test.
    machine_paths = ["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/"]
    pattern = re.compile("|".join(re.escape(text) for text in machine_paths))
    for path in TRACKED:
        if path.suffix not in TEXT_ENDINGS or "fixtures" in path.parts:
            continue
        found = pattern.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{_name(path)}: {found[0]}"
