# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading, checking and hashing vocabularies."""

import hashlib
import pathlib

import pytest

from configure.errors import UserError
from electra_tf.text import tokenization

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb", {"a": 0, "b": 1}),
        (" a\t\r\nb \r\n", {"a": 0, "b": 1}),
        ("a\nb\na\n", {"a": 2, "b": 1}),
        ("a\n\nb\n", {"a": 0, "": 1, "b": 2}),
        (
            "a\u2028b\nc\x0bd\ne\x85f\n",
            {"a\u2028b": 0, "c\x0bd": 1, "e\x85f": 2},
        ),
    ],
)
def test_loading_takes_any_file_as_the_original_does(
    write_vocab, text, expected
):
    assert tokenization.load_vocab(write_vocab(text=text)) == expected


def test_real_vocabulary_passes(golden_dir):
    path = str(golden_dir / "vocab.txt")
    table = tokenization.check_vocab(path)
    assert len(table) == 30522
    assert (table["[PAD]"], table["[UNK]"], table["[MASK]"]) == (0, 100, 103)
    assert tokenization.load_vocab(path) == table
    content = pathlib.Path(path).read_bytes()
    assert tokenization.vocab_hash(path) == hashlib.sha256(content).hexdigest()


def fails_with(path, *words):
    with pytest.raises(UserError) as caught:
        tokenization.check_vocab(str(path))
    message = str(caught.value)
    assert str(path) in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], ["is empty", "one token per line"]),
        ([" ", "\t"], ["is empty"]),
        (
            [*SPECIALS, *["a", "b"] * 5],
            ["8 duplicate", "line 8 repeats 'a' of line 6", "and 5 more"],
        ),
        ([*SPECIALS, "", "a", ""], ["2 blank", "6, 8"]),
        (SPECIALS[2:], ["lacks [PAD], [UNK]"]),
        (["\ufeff[PAD]", *SPECIALS[1:]], ["lacks [PAD]", "byte order mark"]),
        (
            ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"],
            ["line 2", "[PAD]", "id 0", "'[UNK]'"],
        ),
    ],
)
def test_what_is_wrong_is_located(write_vocab, lines, words):
    fails_with(write_vocab(*lines), *words)


def test_files_that_hold_no_text_are_named(tmp_path):
    path = tmp_path / "nowhere.txt"
    fails_with(path, "no such file", "one token per line")
    for read in (tokenization.load_vocab, tokenization.vocab_hash):
        with pytest.raises(UserError, match=r"nowhere\.txt"):
            read(str(path))
    fails_with(tmp_path, "is a directory", "vocab.txt")
    path.write_bytes(b"[PAD]\n[UNK]\n\xff\xfe\n")
    fails_with(path, ":3:", "byte 12", "UTF-8")


def test_remote_path_is_read_through_tensorflow():
    pytest.importorskip("tensorflow")
    with pytest.raises(UserError, match=r"ram://.*no such file"):
        tokenization.load_vocab("ram://nowhere/vocab.txt")
    import tensorflow as tf

    with tf.io.gfile.GFile("ram://here/vocab.txt", "w") as file:
        file.write("a\nb\n")
    assert tokenization.load_vocab("ram://here/vocab.txt") == {"a": 0, "b": 1}
