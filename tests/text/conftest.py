# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import pytest


@pytest.fixture
def write_vocab(tmp_path):
    """Return a function that writes a vocabulary, and returns its path."""

    def write(*tokens, text=None):
        path = tmp_path / "vocab.txt"
        content = "".join(f"{token}\n" for token in tokens)
        path.write_bytes((content if text is None else text).encode())
        return str(path)

    return write
