# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of `electra_tf.text`."""

import importlib.util
import json
import pathlib
import unicodedata

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


@pytest.fixture(scope="session")
def tokenizer_pairs():
    """From a vocabulary to both tokenizers by (lower case, strip accents)."""
    from electra_tf.text.graph_tokenization import GraphTokenizer
    from electra_tf.text.tokenization import FullTokenizer

    def make(vocab_file):
        path = str(vocab_file)
        return {
            setting: (
                GraphTokenizer(path, *setting),
                FullTokenizer(path, *setting),
            )
            for setting in ((True, True), (True, False), (False, True))
        }

    return make


@pytest.fixture(scope="session")
def letter_pairs(tmp_path_factory, tokenizer_pairs):
    """`tokenizer_pairs` of a vocabulary of letters, in all their forms.

    With it different words seldom get the same ids.
    """

    def make(letters):
        parts = {
            part
            for char in letters
            for form in (char, char.lower())
            for part in form + unicodedata.normalize("NFD", form)
            if unicodedata.category(part)[0] in "LNSPM"
        }
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ab", "##ab"]
        tokens += [*sorted(parts), *(f"##{part}" for part in sorted(parts))]
        path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
        path.write_bytes("".join(f"{token}\n" for token in tokens).encode())
        return tokenizer_pairs(path)

    return make
