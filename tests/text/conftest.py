# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the text room's tests."""

import importlib.util
import json
import pathlib

import pytest

HERE = pathlib.Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures" / "golden"


@pytest.fixture(scope="session")
def reference_tokenizer():
    """The plain tokenizer of `reference_tokenizer.py`."""
    spec = importlib.util.spec_from_file_location(
        "reference_tokenizer", HERE / "reference_tokenizer.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def golden_sample():
    """Every eighth golden string with what the original made of it."""
    return json.loads((FIXTURES / "tokenization_sample.json").read_text())


@pytest.fixture
def write_vocab(tmp_path):
    """Writes a vocabulary of the given lines and returns its path."""

    def write(*tokens, text=None):
        path = tmp_path / "vocab.txt"
        content = "".join(f"{token}\n" for token in tokens)
        path.write_bytes((content if text is None else text).encode())
        return str(path)

    return write
