# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Packages of an installation: constraints.txt against the requirements."""

import importlib.metadata
import pathlib
import sys

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.conftest import ROOT

tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no tomllib")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = ("3.10", "3.11", "3.12")


def environment(python):
    changes = {"python_version": python, "python_full_version": f"{python}.1"}
    return {**default_environment(), "extra": "", **changes}


def read_lines(name):
    lines = (ROOT / name).read_text().splitlines()
    lines = [line.split(" #")[0].split("# ")[0].strip() for line in lines]
    return [line for line in lines if line and not line.startswith(("#", "-"))]


def pins(python):
    """Return versions by name; fail if a package has two."""
    versions = {}
    for requirement in map(Requirement, read_lines("constraints.txt")):
        if requirement.marker is None or requirement.marker.evaluate(
            environment(python)
        ):
            (exact,) = requirement.specifier
            assert exact.operator == "==", str(requirement)
            assert requirement.name not in versions, requirement.name
            versions[canonicalize_name(requirement.name)] = exact.version
    return versions


def required(python):
    """Return the requirements of the project and of all its extras."""
    lines = read_lines("requirements.txt") + read_lines("requirements-dev.txt")
    for extra in PROJECT["optional-dependencies"].values():
        lines += extra
    return list(map(Requirement, lines))


@pytest.mark.parametrize("python", PYTHONS)
def test_each_requirement_has_a_suitable_version(python):
    versions = pins(python)
    assert not [
        str(requirement)
        for requirement in required(python)
        if not requirement.specifier.contains(
            versions[canonicalize_name(requirement.name)]
        )
    ]


def test_every_required_package_is_pinned():
    """Check with the requirements in the metadata of installed packages."""
    python = "{}.{}".format(*sys.version_info)
    versions, seen = pins(python), set()
    queue = [(r.name, frozenset(r.extras)) for r in required(python)]
    while queue:
        name, extras = queue.pop()
        key = canonicalize_name(name)
        if (key, extras) in seen:
            continue
        seen.add((key, extras))
        assert key in versions, f"{name} is not in constraints.txt"
        try:
            requires = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for requirement in map(Requirement, requires):
            environments = [
                {**environment(python), "extra": e} for e in ("", *extras)
            ]
            marker = requirement.marker
            if marker is None or any(map(marker.evaluate, environments)):
                version = versions.get(canonicalize_name(requirement.name))
                assert version, f"{name} needs {requirement}: not pinned"
                suits = requirement.specifier.contains(
                    version, prereleases=True
                )
                assert suits, f"{name} needs {requirement}: pinned {version}"
                queue.append((requirement.name, frozenset(requirement.extras)))
    assert len(seen) > 100


@pytest.mark.parametrize("python", PYTHONS)
def test_the_supported_pythons_are_classified(python):
    assert SpecifierSet(PROJECT["requires-python"]).contains(f"{python}.1")
    name = f"Programming Language :: Python :: {python}"
    assert name in PROJECT["classifiers"]


@pytest.mark.parametrize("python", ["3.9.18", "3.13.0"])
def test_other_pythons_are_refused(python):
    assert not SpecifierSet(PROJECT["requires-python"]).contains(python)


def test_make_and_the_readme_install_what_is_pinned():
    makefile = (ROOT / "Makefile").read_text()
    assert (
        "pip install -qq --use-pep517 --constraint constraints.txt" in makefile
    )
    assert (
        "pip install -c constraints.txt ." in (ROOT / "README.md").read_text()
    )


def test_uninstalling_leaves_no_folder():
    """Check the top folder for files, because pip removes no other folder."""
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders = whole["tool"]["setuptools"]["data-files"]
    below = {folder for folder in folders if folder != "share/electra_tf"}
    assert folders["share/electra_tf"]
    assert below and all(f.startswith("share/electra_tf/") for f in below)


@pytest.mark.parametrize("package", ["configure", "electra_tf"])
def test_type_hints_are_shipped(package):
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())
    shipped = whole["tool"]["setuptools"]["package-data"][package]
    assert "py.typed" in shipped
    assert pathlib.Path(ROOT, package, "py.typed").is_file()
