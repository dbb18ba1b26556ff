# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Links of documents to files and headings of the project."""

import re
import subprocess

import pytest

from tests.conftest import ROOT

TRACKED = subprocess.check_output(
    ["git", "-C", str(ROOT), "ls-files", "*.md"], text=True
).splitlines()
WIDTH = 100  # columns of text; tables and links may be longer


def headings(path):
    """Return the anchors of a document's headings, as GitHub makes them."""
    text = re.sub(r"(?ms)^```.*?^```", "", path.read_text(encoding="utf-8"))
    anchors = set()
    for heading in re.findall(r"(?m)^#+ (.+)$", text):
        words = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
        anchors.add(words.replace(" ", "-"))
    return anchors


def links_of(path):
    text = re.sub(r"(?ms)^```.*?^```", "", path.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    links += re.findall(r'(?:src|srcset)="([^"]+)"', text)
    return [link for link in links if ":" not in link]


@pytest.mark.parametrize("document", TRACKED)
def test_links_lead_to_files_and_headings(document):
    path = ROOT / document
    dead = []
    for link in links_of(path):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            dead.append(link)
        elif anchor and anchor not in headings(target):
            dead.append(link)
    assert dead == []
