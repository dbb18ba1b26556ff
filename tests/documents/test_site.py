# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The documentation site: it builds, and gaps in it are errors."""

import os
import runpy
import shutil
import subprocess
import sys

import pytest
from mkdocs.exceptions import PluginError

from tests.conftest import ROOT


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    process = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", tmp_path],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    pages = {path.parent.name for path in tmp_path.rglob("index.html")}
    assert {"reference", "commands", "hyperparameters", "results"} <= pages


@pytest.fixture
def hooks(tmp_path):
    """Return the site's functions, working on a copy of the documents."""
    copy = tmp_path / "project"
    shutil.copytree(ROOT / "docs", copy / "docs")
    shutil.copy(ROOT / "README.md", copy)
    for package in ("electra_tf", "configure"):
        (copy / package).symlink_to(ROOT / package)
    hooks = runpy.run_path(str(copy / "docs" / "site_hooks.py"))
    hooks["project"] = copy
    return hooks


def test_every_public_name_of_the_documents_has_an_entry(hooks):
    hooks["_check_reference"]()


def test_a_public_name_without_an_entry_is_an_error(hooks):
    path = hooks["project"] / "docs" / "keras.md"
    path.write_text(path.read_text() + "\nAlso `electra_tf.keras.Unknown`.\n")
    with pytest.raises(PluginError, match="names electra_tf.keras.Unknown"):
        hooks["_check_reference"]()


def test_an_entry_without_a_docstring_is_an_error(hooks):
    path = hooks["project"] / "docs" / "reference.md"
    path.write_text(path.read_text() + "\n::: electra_tf.text.bio_tags.Span\n")
    with pytest.raises(PluginError, match="bio_tags.Span: no docstring"):
        hooks["_check_reference"]()
