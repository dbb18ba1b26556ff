# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files and folders are complete or absent; errors name the file."""

import os
import subprocess
import sys
import threading

import pytest

from configure.errors import UserError
from electra_tf.files.atomic import (
    atomic_file,
    part_folder,
    part_path,
    write_atomically,
)
from tests.conftest import ROOT, refused


def test_a_file_appears_once_it_is_complete(tmp_path):
    path = tmp_path / "new" / "a.json"
    with atomic_file(str(path)) as file:
        file.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"
    write_atomically(str(path), "whole ä")
    assert path.read_text(encoding="utf-8") == "whole ä"
    assert os.listdir(path.parent) == ["a.json"]


def test_errors_that_name_other_files_are_unchanged(tmp_path):
    with (
        pytest.raises(FileNotFoundError),
        atomic_file(str(tmp_path / "a")),
    ):
        open(tmp_path / "none")


@pytest.mark.parametrize("keep", [False, True])
def test_an_error_leaves_the_earlier_file(tmp_path, keep):
    path = tmp_path / "a"
    path.write_text("before")
    with pytest.raises(KeyError), atomic_file(str(path), keep=keep):
        raise KeyError
    assert path.read_text() == "before"
    assert (tmp_path / "a.tmp").exists() == keep


def test_a_second_writer_of_a_file_waits_for_the_first(tmp_path):
    path = str(tmp_path / "a")
    second = threading.Thread(target=write_atomically, args=(path, "2"))
    with atomic_file(path) as file:
        file.write(b"fir")
        second.start()
        second.join(0.1)
        assert second.is_alive() and not os.path.exists(path)
        file.write(b"st")
    second.join()
    assert (tmp_path / "a").read_text() == "2"
    assert os.listdir(tmp_path) == ["a"]


def test_the_unfinished_folder_of_a_killed_process_is_removed(tmp_path):
    code = (
        "import os, sys; from electra_tf.files import atomic\n"
        "with atomic.part_folder(*sys.argv[1:]): os.kill(os.getpid(), 9)"
    )
    model, parent = str(tmp_path / "model"), str(tmp_path)
    subprocess.run([sys.executable, "-c", code, model, parent], cwd=ROOT)
    (unfinished,) = os.listdir(tmp_path)
    assert unfinished.startswith("model.")
    with part_folder(model, parent) as folder:
        names = os.listdir(tmp_path)
        assert names == [os.path.basename(folder)] != [unfinished]
        refused("is writing this file", part_path, model)
    assert not os.listdir(tmp_path)


def test_a_file_that_cannot_be_written_is_named_with_a_remedy(tmp_path):
    (tmp_path / "file").touch()
    path = str(tmp_path / "file" / "a")
    with pytest.raises(UserError, match="file/a: cannot be written.*Make room"):
        write_atomically(path, "", hint="Make room.")
    refused("is a directory", write_atomically, str(tmp_path), "")
