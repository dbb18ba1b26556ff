# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The house rules that a machine can check."""

import ast
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = (
    "# Copyright 2026 The electra_tf Authors.\n"
    "# SPDX-License-Identifier: Apache-2.0\n"
)
UNTELLING = {"utils", "util", "helpers", "common", "misc", "tools", "lib"}
LONGEST = 600  # Lines of a file; a file is one concept.
TEXT_ENDINGS = {".py", ".md", ".toml", ".txt", ".json", ".yml", ".yaml", ""}


LISTED = subprocess.run(
    ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True
)
TRACKED = [ROOT / name for name in LISTED.stdout.splitlines()]
TRACKED = [path for path in TRACKED if path.is_file()]
PYTHON = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in TRACKED
    if path.suffix == ".py"
}
TREES = {name: ast.parse(text) for name, text in PYTHON.items()}
LIBRARY = [n for n in PYTHON if n.startswith(("configure/", "electra_tf/"))]


def test_every_python_file_starts_with_the_licence_header():
    script = "#!/usr/bin/env python3\n"
    for name, text in PYTHON.items():
        assert text.removeprefix(script).startswith(HEADER), name


def test_there_is_one_keras():
    others = re.compile(r"keras\b|tf\.keras|tensorflow\.keras")
    for path, tree in TREES.items():
        assert not list(filter(others.match, _imported(tree))), path


def _imported(tree):
    """Yields the names of what is imported, and `a.b` of attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{a.name}" for a in node.names)
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name):
                yield f"{node.value.id}.{node.attr}"


def test_names_say_what_is_inside():
    wrong = [n for n in PYTHON if set(n[:-3].split("/")) & UNTELLING]
    assert not wrong


def test_files_stay_readable():
    lengths = {name: len(text.splitlines()) for name, text in PYTHON.items()}
    assert not {name: n for name, n in lengths.items() if n > LONGEST}


def test_public_functions_have_type_hints():
    wrong = [
        f"{name}:{function.lineno} {function.name}"
        for name in LIBRARY
        for function in _public_functions(TREES[name])
        if not _is_annotated(function)
    ]
    assert not wrong


def _public_functions(tree):
    """Yields every public function and method."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name[0] != "_":
            yield node
        elif isinstance(node, ast.ClassDef) and node.name[0] != "_":
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    if member.name[0] != "_":
                        yield member


def _is_annotated(function) -> bool:
    # What a subclass of the library's classes overrides is typed up there.
    if function.name in ("call", "build", "get_config", "parse_args"):
        return True
    spec = function.args
    named = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    stars = [a for a in (spec.vararg, spec.kwarg) if a is not None]
    return function.returns is not None and all(
        p.annotation is not None
        for p in [*named, *stars]
        if p.arg not in ("self", "cls")
    )


def test_every_package_says_what_it_is():
    for directory in {name.rpartition("/")[0] for name in LIBRARY}:
        tree = TREES.get(f"{directory}/__init__.py")
        assert tree and ast.get_docstring(tree), directory


def test_the_documents_are_there():
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"):
        assert (ROOT / name).read_text(encoding="utf-8").strip(), name


def test_the_project_speaks_only_of_itself():
    # Spelt apart, so that this file passes its own test.
    machine_paths = ["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/"]
    pattern = re.compile("|".join(re.escape(text) for text in machine_paths))
    for path in TRACKED:
        if path.suffix not in TEXT_ENDINGS or "fixtures" in path.parts:
            continue
        found = pattern.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path}: {found[0]}"


def test_the_tests_run_with_the_extras_of_the_package():
    extras = re.findall(
        r'"(\w+)==([\d.]+)"',
        re.search(r"(?m)^serve = .*$", (ROOT / "pyproject.toml").read_text())[
            0
        ],
    )
    wanted = (ROOT / "requirements-dev.txt").read_text().splitlines()
    assert extras
    assert all("==".join(pin) in wanted for pin in extras)
