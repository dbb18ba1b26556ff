# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of `electra_tf.text`."""

import unicodedata

import pytest


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
        path, kinds = str(vocab_file), (GraphTokenizer, FullTokenizer)
        return {
            setting: [tokenizer(path, *setting) for tokenizer in kinds]
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
