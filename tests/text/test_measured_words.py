# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (similar letters are intended)
"""Words, characters and search terms of texts in any script."""

import re
import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from electra_tf.text.measured_words import (
    is_english,
    split_into_characters,
    split_into_terms,
    split_into_words,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't x_y 3.5!", ["don", "t", "x", "y", "3", "5"]),
        ("Москва — столица.", ["москва", "столица"]),
        ("Ёж МЁД", ["ёж", "мёд"]),
        ("Peñaflorida’s fiancée", ["peñaflorida", "s", "fiancée"]),
        ("năm e\u0323\u0302", ["năm", "ệ"]),  # NFC
        ("タワーは1963年ABC", ["タ", "ワ", "ー", "は", "1963", "年", "abc"]),
        ("〇々𠮷", ["〇", "々", "𠮷"]),
        ("ที่นี่กี่บาท", ["ที่", "นี่", "กี่", "บ", "า", "ท"]),
        ("๒๕๖๗ บ", ["๒๕๖๗", "บ"]),
        ("ຂ້ອຍ", ["ຂ້", "ອ", "ຍ"]),
        ("ស្រី។", ["ស្", "រី"]),
        ("မြန်မာ", ["မြ", "န်", "မာ"]),
        ("ᦟᦲᧉ", ["ᦟ", "ᦲ", "ᧉ"]),  # New Tai Lue: its vowels are letters
        ("ꦗꦮ", ["ꦗ", "ꦮ"]),
        ("भारत की हिन्दी।", ["भारत", "की", "हिन्दी"]),
        ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
        ("서울은 크다", ["서울은", "크다"]),
        ("می‌خواهم كِتاب", ["میخواهم", "كِتاب"]),
        ("ሰላም፡ዓለም", ["ሰላም", "ዓለም"]),
        ("İstanbul IŞIK", ["istanbul", "işik"]),
        ("ΟΔΟΣ", ["οδος"]),
        ("co\u00adop a\u200bb", ["coop", "a", "b"]),
        ("❤️ ++ € 😀 ́", []),
        ("½ Ⅷ", ["½", "ⅷ"]),
    ],
)  # fmt: skip
def test_words_are_letters_with_their_marks_and_digits(text, words):
    assert split_into_words(text) == words


@given(st.text(st.sampled_from(string.printable)))
def test_words_of_ascii_are_runs_of_letters_and_digits(text):
    assert split_into_words(text) == re.findall("[a-z0-9]+", text.lower())
    # The pattern for other scripts gives the same words.
    assert split_into_words(f"{text}\u2026") == split_into_words(text)


@given(st.text(st.characters(codec="utf-8")))
def test_words_begin_with_letters_or_digits_and_contain_only_marks(text):
    joined = "".join(split_into_words(text))
    assert all(word[0].isalnum() for word in split_into_words(text))
    assert {unicodedata.category(char)[0] for char in joined} <= set("LMN")
    assert "".join(split_into_characters(text)) == joined


@given(st.text(st.characters(codec="utf-8")))
def test_words_do_not_depend_on_the_normalization_form(text):
    decomposed = unicodedata.normalize("NFD", text)
    assert split_into_words(decomposed) == split_into_words(text)


@pytest.mark.parametrize(
    ("text", "characters"),
    [
        ("서울은 ab1", ["서", "울", "은", "a", "b", "1"]),
        ("กี่ हि", ["กี่", "हि"]),
        ("??", []),
    ],
)
def test_characters_have_their_marks(text, characters):
    assert split_into_characters(text) == characters


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("the cat", ["the", "cat"]),
        ("東京, 都a", ["東", "京", "東京", "都", "a"]),
        ("กี่บ", ["กี่", "บ", "กี่บ"]),
        ("인구는 a", ["인구는", "인구", "구는", "a"]),
    ],
)
def test_search_has_pairs_of_letters_too(text, terms):
    assert [term for term, _ in split_into_terms(text)] == terms


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("He met the fiancée and the £5 man’s dog.", True),
        ("The letter α and the word 中 are used with care.", True),
        ("Die Straße nach Köln war für alle offen.", False),
        ("Die Beatles (The White Album) spielten in Köln.", False),
        ("Ngôi nhà và con mèo của tôi.", False),
        ("kota itu besar dan indah", False),
        ("the 这本书的名字叫做 and 没有人知道", False),
        ("Beyoncé", False),
        ("", False),
    ],
)
def test_english_is_recognized_by_its_frequent_words(text, english):
    assert is_english(text) == english
