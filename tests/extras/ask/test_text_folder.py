# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A walk of a folder of texts ends, and names what it leaves out."""

import os

import pytest

from electra_tf.extras.ask.text_folder import find_texts
from tests.conftest import refused


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    (folder / "b.txt").write_text("b")
    (folder / "deep" / "a.txt").write_text("a")
    return folder


def linked(target, name="link"):
    return lambda place: (place / name).symlink_to(target)


FILES = ["b.txt", "deep/a.txt"]


@pytest.mark.parametrize(
    ("add", "names", "reason", "skipped"),
    [
        (lambda place: None, FILES, None, None),
        (linked("."), FILES, "files and folders reached a second", ["link"]),
        (linked("deep"), FILES, "files and folders reached a second", ["link"]),
        (linked("../b.txt", "deep/link"), FILES, "files and", ["deep/link"]),
        (linked("b.txt", "a-link"), FILES, "files and", ["a-link"]),
        (linked("nothing"), FILES, "broken links", ["link"]),
        (linked("link"), FILES, "broken links", ["link"]),
        (linked("/dev/zero"), FILES, "pipes, devices and sockets", ["link"]),
        (
            lambda place: os.mkfifo(place / "pipe"),
            FILES,
            "pipes, devices and sockets",
            ["pipe"],
        ),
        (
            lambda place: (place / ".git").mkdir(),
            FILES,
            "hidden",
            [".git"],
        ),
        (
            lambda place: (place / "empty.txt").touch(),
            FILES,
            "empty files",
            ["empty.txt"],
        ),
    ],
)
def test_a_walk_takes_each_text_once(place, add, names, reason, skipped):
    add(place)
    folder = find_texts(str(place))
    assert list(folder.paths) == names
    found = {r: n for r, n in folder.skipped.items() if r.startswith(reason)}
    assert list(found.values()) == [skipped] if reason else not folder.skipped


def test_links_that_lead_to_the_whole_file_system_are_not_followed(place):
    linked("/proc/self")(place)
    folder = find_texts(str(place))
    assert [n for n in folder.paths if not n.startswith("link/")] == FILES
    assert "link/root" in folder.skipped["links within linked folders"]


def test_two_links_to_dot_end(place):
    linked(".", "one")(place)
    linked(".", "two")(place)
    folder = find_texts(str(place))
    assert list(folder.paths) == FILES
    assert list(folder.report()) == [
        "Skipped files and folders reached a second time: 2 (one, two)"
    ]


def test_a_folder_elsewhere_is_read_by_its_link(place, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.txt").write_text("c")
    (other / "back").symlink_to(place)
    linked("../other")(place)
    folder = find_texts(str(place))
    assert list(folder.paths) == [*FILES, "link/c.txt"]
    assert folder.skipped == {"links within linked folders": ["link/back"]}


@pytest.mark.parametrize(
    ("path", "words"),
    [("/dev/zero", "expected a folder or a file"), ("none", "none: cannot be")],
)
def test_what_is_no_folder_and_no_file_is_refused(path, words):
    refused(words, find_texts, path)
