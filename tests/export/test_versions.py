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


def _add(place, version=None, overwrite=False, text="x"):
    with saved_model.writing(str(place), version, overwrite) as (folder, final):
        _write(folder, text)
    return final


def _contents(place):
    """What each version holds, by its name."""
    return {
        name: (place / name / "other").read_text() for name in os.listdir(place)
    }


def test_versions_count_up_and_nothing_else_is_left(tmp_path):
    place = tmp_path / "new" / "served"
    os.makedirs(place / "1.part" / "variables")  # of an export that was killed
    found = [_add(place, version) for version in (None, None, 7, None)]
    assert found == [str(place / name) for name in "1278"]
    assert sorted(os.listdir(place)) == ["1", "2", "7", "8"]


def test_versions_are_replaced_only_if_asked_and_only_by_whole_ones(tmp_path):
    place = tmp_path / "m"
    _add(place, 2, text="one")
    _add(place, 3, text="old")
    with pytest.raises(UserError, match=r"m/3 is there already.*is 4.*--over"):
        _add(place, 3, text="new")
    with pytest.raises(RuntimeError):
        with saved_model.writing(str(place), 3, True) as (folder, _):
            _write(folder, "half")
            raise RuntimeError
    assert _contents(place) == {"2": "one", "3": "old"}
    # Without a number it is the highest.
    assert _add(place, None, True, text="new").endswith("/3")
    assert _contents(place) == {"2": "one", "3": "new"}
    _add(place, 2, True, text="newer")
    assert _contents(place) == {"2": "newer", "3": "new"}


def test_folders_of_others_are_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("ten years")
    with pytest.raises(UserError, match=r"holds other files \(thesis.txt\)"):
        _add(tmp_path, None, True)
    os.makedirs(tmp_path / "m" / "1")
    (tmp_path / "m" / "1" / "photo").write_text("mine")
    with pytest.raises(UserError, match="no saved_model.pb, so it is no exp"):
        _add(tmp_path / "m", 1, True)
    with pytest.raises(UserError, match="is a file; name a folder"):
        _add(tmp_path / "thesis.txt")
    with pytest.raises(UserError, match="--version: expected 1 or more"):
        _add(tmp_path / "m", 0)
