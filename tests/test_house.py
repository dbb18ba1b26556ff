# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules for files and documents that ruff does not check."""

import importlib
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = (
    "# Copyright 2026 The electra_tf Authors.\n"
    "# SPDX-License-Identifier: Apache-2.0\n"
)
UNTELLING = {"utils", "util", "helpers", "common", "misc", "tools", "lib"}
LONGEST = 600  # Lines of a file; a file is one concept.
TEXT_ENDINGS = {".py", ".md", ".toml", ".txt", ".json", ".yml", ".yaml", ""}

LISTED = subprocess.check_output(
    ["git", "-C", str(ROOT), "ls-files"], text=True
)
TRACKED = [p for p in map(ROOT.joinpath, LISTED.splitlines()) if p.is_file()]
PYTHON = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in TRACKED
    if path.suffix == ".py"
}


def test_python_files_begin_with_the_license():
    script = "#!/usr/bin/env python3\n"
    texts = {name: t.removeprefix(script) for name, t in PYTHON.items()}
    assert not [n for n, text in texts.items() if not text.startswith(HEADER)]


def test_modules_have_telling_names():
    assert not [n for n in PYTHON if set(n[:-3].split("/")) & UNTELLING]


def test_python_files_are_short():
    lengths = {name: len(text.splitlines()) for name, text in PYTHON.items()}
    assert not {name: n for name, n in lengths.items() if n > LONGEST}


@pytest.mark.parametrize(
    "name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"]
)
def test_a_document_exists(name):
    assert (ROOT / name).read_text(encoding="utf-8").strip()


DOCUMENTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in TRACKED
    if path.suffix == ".md"
}


def test_code_in_documents_ends_without_a_blank_line():
    blocks = [
        (name, block)
        for name, text in DOCUMENTS.items()
        for block in re.findall(r"(?ms)^```\w*\n(.*?)^```", text)
    ]
    assert not [block for block in blocks if block[1].endswith("\n\n")]


def test_imports_in_documents_exist():
    pattern = r"(?m)^from ((?:electra_tf|configure)[\w.]*) import (.+)$"
    missing = []
    for document, text in DOCUMENTS.items():
        for module, names in re.findall(pattern, text):
            imported = importlib.import_module(module)
            missing += [
                f"{document}: {module}.{name}"
                for name in names.split(", ")
                if not hasattr(imported, name)
            ]
    assert not missing


def test_the_project_names_no_folder_of_a_machine():
    # The names are split, so that this file passes its own test.
    machine_paths = ["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/"]
    pattern = re.compile("|".join(re.escape(text) for text in machine_paths))
    matches = []
    for path in TRACKED:
        if path.suffix in TEXT_ENDINGS and "fixtures" not in path.parts:
            text = path.read_text(encoding="utf-8")
            matches += [(path, match) for match in pattern.findall(text)]
    assert not matches


def test_the_tests_run_with_the_extras_of_the_package():
    text = (ROOT / "pyproject.toml").read_text()
    extras = re.findall(r"(?m)^(?:serve|bpe|rouge|ask) = (.*)$", text)
    extras = re.findall(r'"([^"]+)"', "".join(extras))
    requirements = (ROOT / "requirements-dev.txt").read_text().splitlines()
    assert len(extras) > 4 and not {*extras} - {*requirements}
