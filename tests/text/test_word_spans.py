# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Words of running text and their places."""

import pytest

from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.words import split_words


def _words(text):
    return [text[first:last] for first, last in split_words(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \t\n", []),
        ("Don't stop.", ["Don", "'", "t", "stop", "."]),
        ("a\u00a0b\u3000c", ["a", "b", "c"]),
        ("\u4e2d\u6587x", ["\u4e2d", "\u6587", "x"]),
        ("caf\u00e9 na\u0308h", ["caf\u00e9", "na\u0308h"]),
        ("a \x00 \ufffd b\x00c", ["a", "b\x00c"]),
        ("$5", ["$", "5"]),
    ],
)
def test_words_are_those_that_tokenization_starts_from(text, words):
    assert _words(text) == words


def test_pieces_of_the_words_are_the_pieces_of_the_text(tiny_vocab):
    tokenizer = FullTokenizer(tiny_vocab)
    text = "The (king's) r\u00e9sum\u00e9, \u4e2d: 3.14!\tthat\n- was\u2014it"
    whole = tokenizer.tokenize(text)
    assert [t for w in _words(text) for t in tokenizer.tokenize(w)] == whole
