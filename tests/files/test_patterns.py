# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patterns match files; existing names match themselves."""

import pytest

from electra_tf.files.patterns import find_files
from tests.conftest import refused


@pytest.fixture
def folders(tmp_path):
    for folder in ("d[1]", "d1", "a,b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text(folder)
    return tmp_path


def test_an_existing_folder_matches_itself(folders):
    path = str(folders / "d[1]" / "x.txt")
    assert find_files(f"{folders}/d[1]/x*")[0] == [path]


def test_a_file_that_several_patterns_match_is_listed_once(folders):
    patterns = f"{folders}/d?/*, {folders}/d1/x*"
    assert len(find_files(patterns)[0]) == 1


def test_an_existing_file_matches_itself(tmp_path):
    for name in ("p[1].txt", "p1.txt"):
        (tmp_path / name).write_text(name)
    path = str(tmp_path / "p[1].txt")
    assert find_files(path)[0] == [path]


@pytest.mark.parametrize("folder", ["d[1]", "a,b"])
def test_the_current_folder_matches_itself(folders, monkeypatch, folder):
    monkeypatch.chdir(folders / folder)
    assert find_files("x*")[0] == [str(folders / folder / "x.txt")]


def test_a_folder_is_refused_or_skipped(tmp_path):
    (tmp_path / "records").mkdir()
    message = r"records: the pattern matches a directory.*records/\*"
    refused(message, find_files, f"{tmp_path}/records")
    assert find_files(f"{tmp_path}/*", skip_folders=True) == ([], [])


def test_empty_files_are_separate_and_broken_links_refused(tmp_path):
    (tmp_path / "full").write_text("x")
    (tmp_path / "empty").touch()
    full, empty = str(tmp_path / "full"), str(tmp_path / "empty")
    assert find_files(f"{tmp_path}/*") == ([full], [empty])
    (tmp_path / "link").symlink_to("nothing")
    refused("link: broken symbolic link", find_files, f"{tmp_path}/*")
