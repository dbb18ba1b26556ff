# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Versions are whole or absent, and none is lost by accident."""

import os

import pytest

from configure.errors import UserError
from electra_tf.export import saved_model


def _write(folder, text):
    for name in ("saved_model.pb", "other"):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)


def _add(place, *arguments, text="x"):
    with saved_model.writing(str(place), *arguments) as (folder, final):
        assert not os.path.exists(os.path.join(final, "other")) or text
        _write(folder, text)
    return final


def _contents(folder):
    with open(os.path.join(folder, "other")) as file:
        return file.read()


def test_versions_count_up_and_nothing_else_is_left(tmp_path):
    place = tmp_path / "new" / "served"
    assert _add(place, None, False) == str(place / "1")
    assert _add(place, None, False) == str(place / "2")
    assert _add(place, 7, False) == str(place / "7")
    assert _add(place, None, False) == str(place / "8")
    assert sorted(os.listdir(place)) == ["1", "2", "7", "8"]


def test_a_version_that_is_there_stays_unless_overwriting(tmp_path):
    _add(tmp_path / "m", 3, False, text="old")
    with pytest.raises(UserError, match=r"m/3 is there already.*is 4.*--over"):
        _add(tmp_path / "m", 3, False, text="new")
    assert _contents(tmp_path / "m" / "3") == "old"
    _add(tmp_path / "m", 3, True, text="new")
    assert _contents(tmp_path / "m" / "3") == "new"


def test_overwriting_without_a_number_replaces_the_highest(tmp_path):
    _add(tmp_path / "m", 1, False, text="one")
    _add(tmp_path / "m", 2, False, text="two")
    assert _add(tmp_path / "m", None, True, text="new").endswith("/2")
    assert _contents(tmp_path / "m" / "1") == "one"


def test_a_failed_export_leaves_the_old_version(tmp_path):
    _add(tmp_path / "m", 1, False, text="old")
    with pytest.raises(RuntimeError):
        with saved_model.writing(str(tmp_path / "m"), 1, True) as (folder, _):
            _write(folder, "half")
            raise RuntimeError
    assert os.listdir(tmp_path / "m") == ["1"]
    assert _contents(tmp_path / "m" / "1") == "old"


def test_leftovers_of_a_killed_export_do_not_matter(tmp_path):
    os.makedirs(tmp_path / "m" / "1.part" / "variables")
    _add(tmp_path / "m", None, False)
    assert os.listdir(tmp_path / "m") == ["1"]


def test_folders_of_others_are_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("ten years")
    with pytest.raises(UserError, match=r"holds other files \(thesis.txt\)"):
        _add(tmp_path, None, True)
    os.makedirs(tmp_path / "m" / "1")
    (tmp_path / "m" / "1" / "photo").write_text("mine")
    with pytest.raises(UserError, match="no saved_model.pb, so it is no exp"):
        _add(tmp_path / "m", 1, True)
    with pytest.raises(UserError, match="is a file; name a folder"):
        _add(tmp_path / "thesis.txt", None, False)
    with pytest.raises(UserError, match="--version: expected 1 or more"):
        _add(tmp_path / "m", 0, False)
