# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The house rules that a machine can check, and ruff does not."""

import importlib
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

LISTED = subprocess.check_output(
    ["git", "-C", str(ROOT), "ls-files"], text=True
)
TRACKED = [p for p in map(ROOT.joinpath, LISTED.splitlines()) if p.is_file()]
PYTHON = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in TRACKED
    if path.suffix == ".py"
}


def test_files_have_headers_names_and_few_lines_and_documents_are_there():
    script = "#!/usr/bin/env python3\n"
    for name, text in PYTHON.items():
        assert text.removeprefix(script).startswith(HEADER), name
    assert not [n for n in PYTHON if set(n[:-3].split("/")) & UNTELLING]
    lengths = {name: len(text.splitlines()) for name, text in PYTHON.items()}
    assert not {name: n for name, n in lengths.items() if n > LONGEST}
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"):
        assert (ROOT / name).read_text(encoding="utf-8").strip(), name


def test_what_documents_import_is_there_and_their_code_ends_in_no_blank():
    imported = r"(?m)^from ((?:electra_tf|configure)[\w.]*) import (.+)$"
    for path in TRACKED:
        if path.suffix == ".md":
            text = path.read_text(encoding="utf-8")
            for block in re.findall(r"(?ms)^```\w*\n(.*?)^```", text):
                assert not block.endswith("\n\n"), f"{path}: {block}"
            for module, names in re.findall(imported, text):
                imported_module = importlib.import_module(module)
                for name in names.split(", "):
                    assert hasattr(imported_module, name), (
                        f"{path}: {module}.{name}"
                    )


def test_the_project_speaks_only_of_itself():
    # Spelt apart, so that this file passes its own test.
    machine_paths = ["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/"]
    pattern = re.compile("|".join(re.escape(text) for text in machine_paths))
    for path in TRACKED:
        if path.suffix not in TEXT_ENDINGS or "fixtures" in path.parts:
            continue
        match = pattern.search(path.read_text(encoding="utf-8"))
        assert match is None, f"{path}: {match[0]}"


def test_the_tests_run_with_the_extras_of_the_package():
    text = (ROOT / "pyproject.toml").read_text()
    extras = re.findall(r"(?m)^(?:serve|bpe|rouge|ask) = (.*)$", text)
    extras = re.findall(r'"([^"]+)"', "".join(extras))
    requirements = (ROOT / "requirements-dev.txt").read_text().splitlines()
    assert len(extras) > 4 and not {*extras} - {*requirements}
