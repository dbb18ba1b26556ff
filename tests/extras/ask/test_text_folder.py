# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A walk of a folder of texts ends, and names the entries it skips."""

import os

import pytest

from electra_tf.extras.ask.text_folder import find_texts
from tests.conftest import refused


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    (folder / "b.txt").write_text("b")
    (folder / "deep" / "a.txt").write_text("a")
    return folder


def linked(target, name="link"):
    return lambda root: (root / name).symlink_to(target)


FILES = ["b.txt", "deep/a.txt"]


@pytest.mark.parametrize(
    ("add", "names", "reason", "skipped"),
    [
        (lambda root: None, FILES, None, None),
        (linked("."), FILES, "repeated files and folders", ["link"]),
        (linked("deep"), FILES, "repeated files and folders", ["link"]),
        (linked("../b.txt", "deep/link"), FILES, "repeated", ["deep/link"]),
        (linked("b.txt", "a-link"), FILES, "repeated", ["a-link"]),
        (linked("nothing"), FILES, "broken links", ["link"]),
        (linked("link"), FILES, "broken links", ["link"]),
        (linked("/dev/zero"), FILES, "pipes, devices and sockets", ["link"]),
        (
            lambda root: os.mkfifo(root / "pipe"),
            FILES,
            "pipes, devices and sockets",
            ["pipe"],
        ),
        (
            lambda root: (root / ".git").mkdir(),
            FILES,
            "hidden",
            [".git"],
        ),
        (
            lambda root: (root / "empty.txt").touch(),
            FILES,
            "empty files",
            ["empty.txt"],
        ),
    ],
)
def test_a_walk_reads_each_text_once(root, add, names, reason, skipped):
    add(root)
    folder = find_texts(str(root))
    assert list(folder.paths) == names
    matching = [
        names
        for name, names in folder.skipped.items()
        if reason and name.startswith(reason)
    ]
    assert matching == ([skipped] if reason else [])
    assert len(folder.skipped) == len(matching)


def test_links_within_a_linked_folder_are_not_followed(root):
    linked("/proc/self")(root)
    folder = find_texts(str(root))
    assert [n for n in folder.paths if not n.startswith("link/")] == FILES
    assert "link/root" in folder.skipped["links within linked folders"]


def test_two_links_to_the_folder_itself_end(root):
    linked(".", "one")(root)
    linked(".", "two")(root)
    folder = find_texts(str(root))
    assert list(folder.paths) == FILES
    assert list(folder.report()) == [
        "Skipped repeated files and folders: 2 (one, two)"
    ]


def test_a_linked_folder_is_read_under_its_link(root, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.txt").write_text("c")
    (other / "back").symlink_to(root)
    linked("../other")(root)
    folder = find_texts(str(root))
    assert list(folder.paths) == [*FILES, "link/c.txt"]
    assert folder.skipped == {"links within linked folders": ["link/back"]}


@pytest.mark.parametrize(
    ("path", "message"),
    [("/dev/zero", "neither a folder nor a"), ("none", "none: cannot be")],
)
def test_a_device_and_a_missing_path_are_refused(path, message):
    refused(message, find_texts, path)
