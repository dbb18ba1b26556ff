# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE gives the library's ids; other files are refused."""

import json
import pathlib
import pickle
import sys

import hypothesis
import hypothesis.strategies as st
import pytest

from configure.errors import UserError
from electra_tf.text.bpe import BpeTokenizer
from electra_tf.text.tokenization import (
    SPECIAL_TOKENS,
    FullTokenizer,
    check_vocab,
    open_tokenizer,
    refuse_other_vocab,
)


@pytest.fixture(scope="module")
def path(bpe_file):
    return bpe_file()


@pytest.fixture(scope="module")
def pair(path):
    """Ours and the library's own of the same file."""
    import tokenizers

    return open_tokenizer(path), tokenizers.Tokenizer.from_file(path)


def _changed(path, tmp_path, change):
    content = json.loads(pathlib.Path(path).read_text())
    change(content)
    changed = tmp_path / "tokenizer.json"
    changed.write_text(json.dumps(content))
    return str(changed)


@hypothesis.given(st.text())
@hypothesis.example("the king  of\tthe north \u4e2d\u6587 \U0001f600 caf\xe9\n")
def test_ids_are_the_library_s(pair, text):
    ours, theirs = pair
    text = text.encode("utf-8", "ignore").decode()
    ids = ours.encode(text)
    assert ids == theirs.encode(text, add_special_tokens=False).ids
    assert ours.encode(text.encode()) == ids
    assert theirs.decode(ids) == text
    assert ours.convert_tokens_to_ids(ours.convert_ids_to_tokens(ids)) == ids


def test_special_tokens_are_no_text_and_have_one_name(path, bpe_file):
    vocab = check_vocab(path)
    assert [vocab[token] for token in SPECIAL_TOKENS] == [1, 3, 0, 2, 4]
    assert list(vocab.values()) == list(range(290))
    bert = check_vocab(bpe_file(special=SPECIAL_TOKENS))
    assert [bert[token] for token in SPECIAL_TOKENS] == [*range(5)]
    ours = open_tokenizer(path)
    assert min(ours.encode("<s>a<mask>b</s><pad><unk>")) > 4
    assert ours.encode("\ud800a") == ours.encode("a")


def test_settings_of_a_file_count_its_padding_not(path, bpe_file, tmp_path):
    lower = open_tokenizer(bpe_file(lowercase=True))
    assert lower.encode("THE King") == lower.encode("the king")
    import tokenizers

    padded = tokenizers.Tokenizer.from_file(path)
    padded.enable_padding(length=50)
    padded.enable_truncation(3)
    other = tmp_path / "tokenizer.json"
    padded.save(str(other))
    text = "the king of the north is in the city"
    found = open_tokenizer(str(other)).encode(text)
    assert found == open_tokenizer(path).encode(text)


def test_a_copy_in_another_process_is_the_same(path):
    ours = open_tokenizer(path)
    copy = pickle.loads(pickle.dumps(ours))
    assert isinstance(copy, BpeTokenizer)
    assert copy.encode("<mask> the") == ours.encode("<mask> the")


def vocab(content):
    return content["model"]["vocab"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda c: c["model"].update(type="WordPiece"), "give the vocab.txt"),
        (lambda c: c.update(pre_tokenizer=None), "expected 'BPE' and Byte"),
        (
            lambda c: (c["added_tokens"].pop(4), vocab(c).pop("<mask>")),
            r"lacks \[MASK\] \(or <mask>\)",
        ),
        (lambda c: vocab(c).update(new=999), "ids have gaps"),
        (
            lambda c: vocab(c).update({"\u0100x": vocab(c).pop("\u0100")}),
            "lacks 1 of the 256 bytes .*initial_alphabet",
        ),
        (lambda c: c["model"].update(merges=[["x", "none"]]), "tokenizers sa"),
    ],
)
def test_a_file_that_cannot_serve_is_refused(path, tmp_path, change, complaint):
    other = _changed(path, tmp_path, change)
    with pytest.raises(UserError, match=f"tokenizer.json.*{complaint}"):
        open_tokenizer(other)


def test_another_file_is_another_vocabulary(path, bpe_file, tiny_vocab):
    refuse_other_vocab(path, path, "the model")
    for other in (bpe_file(text="other words "), tiny_vocab):
        with pytest.raises(UserError, match="another vocabulary than .*model"):
            refuse_other_vocab(path, other, "the model")
    with pytest.raises(UserError, match="290 tokens but the model has 9"):
        check_vocab(path, 9)
    with pytest.raises(UserError, match="needs a WordPiece vocabulary"):
        FullTokenizer(path)
    with pytest.raises(UserError, match="says itself how text is normalized"):
        open_tokenizer(path, do_lower_case=False)


def test_without_the_library_its_extra_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert check_vocab(path)["[MASK]"] == 4  # Which needs no library.
    with pytest.raises(UserError, match=r'pip install "electra_tf\[bpe\]"'):
        open_tokenizer(path)
