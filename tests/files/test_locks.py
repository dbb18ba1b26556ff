# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A lock admits one process to a folder."""

import errno
import fcntl
import os

from electra_tf.files.locks import LOCK_FILE, folder_lock
from tests.conftest import refused


def test_a_locked_folder_names_its_process(tmp_path):
    def lock_again():
        with folder_lock(str(tmp_path)):
            pass

    with folder_lock(str(tmp_path)):
        refused(f"in use by process {os.getpid()} on .*run.lock", lock_again)
    lock_again()
    assert not (tmp_path / LOCK_FILE).exists()


def test_a_file_system_without_locks_gets_a_warning(
    tmp_path, monkeypatch, capsys
):
    def without_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without_locks)
    with folder_lock(str(tmp_path)):
        assert (
            f"WARNING: {tmp_path}: the file system" in capsys.readouterr().out
        )
