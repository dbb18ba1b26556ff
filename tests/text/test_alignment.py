# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Words one by one to wordpieces."""

import pytest

from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.words import WordAligner

TOKENS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] cafe café Cafe Café 東 ##京 東京 . a ##b"
).split()


@pytest.fixture
def pieces(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(TOKENS) + "\n", encoding="utf-8")

    def split(word, as_elsewhere=False, **settings):
        tokenizer = FullTokenizer(str(path), **settings)
        aligner = WordAligner(tokenizer, as_elsewhere)
        ids = aligner.encode_word(word)
        assert aligner.encode_word(word) == ids  # remembered
        return tokenizer.convert_ids_to_tokens(ids)

    return split


def test_the_original_lower_cases_and_strips_whatever_the_model(pieces):
    assert pieces("Café") == ["cafe"]
    assert pieces("Café", do_lower_case=False) == ["cafe"]
    assert pieces("Café", strip_accents=False) == ["cafe"]


def test_the_correction_follows_the_model(pieces):
    cased = {"as_elsewhere": True, "do_lower_case": False}
    assert pieces("Café", **cased) == ["Café"]
    accents = {"as_elsewhere": True, "strip_accents": False}
    assert pieces("Café", **accents) == ["café"]
    assert pieces("Café", as_elsewhere=True) == ["cafe"]


def test_chinese_is_set_apart_only_by_the_correction(pieces):
    assert pieces("東京") == ["東京"]
    assert pieces("東京", as_elsewhere=True) == ["東", "[UNK]"]


def test_punctuation_is_set_apart_and_controls_vanish(pieces):
    assert pieces("a.a\u200bb") == ["a", ".", "a", "##b"]
    assert pieces("\u200b") == []
