# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checksums of files: values, memory, and detected damage."""

import hashlib
import tracemalloc

import pytest

from electra_tf.files.digests import check_digest, file_sha256, write_digests
from tests.conftest import refused


def test_a_digest_needs_the_memory_of_one_block(tmp_path):
    path = tmp_path / "large"
    content = b"0123456789abcdef" * 2**20
    path.write_bytes(content)
    expected = hashlib.sha256(content).hexdigest()
    tracemalloc.start()
    assert file_sha256(str(path)) == expected
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(content) / 4
    refused("no such file", file_sha256, str(tmp_path / "absent"))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    (tmp_path / "config.json").write_text("{}")
    write_digests(str(tmp_path))
    return tmp_path


def test_a_changed_file_is_refused(folder):
    vocab = folder / "vocab.txt"
    check_digest(str(vocab))
    vocab.write_text("[UNK]\n")
    refused("vocab.txt: checksum differs from", check_digest, str(vocab))


def test_a_missing_file_is_refused(folder):
    (folder / "vocab.txt").unlink()
    config = str(folder / "config.json")
    refused("vocab.txt: the file is missing, but", check_digest, config)


def test_settings_may_change(folder):
    (folder / "config.json").write_text("[]")
    check_digest(str(folder / "config.json"))
