# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001
"""Effects of lower-casing and accent stripping on scripts."""

import unicodedata

import pytest

from electra_tf.text.basic_tokenizer import BasicTokenizer
from electra_tf.text.changed_letters import (
    ScriptCounter,
    normalized,
    script_of,
    stripping_warnings,
    sum_of_scripts,
)

REMEDIES = {"do_lower_case": "<no lower>", "strip_accents": "<no strip>"}
TEXTS = {
    "Japanese kana": "がっこうで ガラスの テープを つかう",
    "Devanagari": "किताब की दुकान में गया था और हिन्दी पढ़ी",
    "Hangul": "한국어를 배우는 학생들이 많습니다",
    "Arabic": "ذَهَبَ أحمد إلى المدرسة",
    "Thai": "ภาษาไทยเป็นภาษาที่มีระดับเสียงของคำแน่นอน",
    "Hebrew": "בְּרֵאשִׁית בָּרָא אֱלֹהִים",
    "Tamil": "தமிழ் ஒரு செம்மொழி ஆகும்",
    "Greek": "Η ελληνική γλώσσα είναι αρχαία",
    "Cyrillic": "Мой ёжик и йогурт",
    "Latin": "Tiếng Việt là ngôn ngữ của người Việt",
}


def warnings_for(*texts, casing=(True, True)):
    counter = ScriptCounter(*casing)
    for text in texts:
        counter.add(text)
    return stripping_warnings(counter.scripts(), casing, REMEDIES)


@pytest.mark.parametrize("script", TEXTS)
def test_a_script_that_loses_letters_is_named_with_the_switch(script):
    (warning,) = warnings_for(TEXTS[script])
    assert f"of the letters of {script} (" in warning
    assert "<no strip>" in warning


@pytest.mark.parametrize("script", TEXTS)
@pytest.mark.parametrize("casing", [(True, False), (False, True)])
def test_a_casing_that_keeps_accents_gives_no_warning(script, casing):
    assert warnings_for(TEXTS[script], casing=casing) == []


@pytest.mark.parametrize("script", TEXTS)
def test_decomposed_text_counts_like_composed_text(script):
    text = unicodedata.normalize("NFD", TEXTS[script])
    assert warnings_for(text) == warnings_for(TEXTS[script])


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox jumps over the lazy dog.",
        "L'été dernier, à la forêt, où êtes-vous allés ?",
        "Größere Äpfel hängen höher, weiß Österreich.",
        "¿Dónde está el niño? Mañana será otro día.",
        "我们在学习中文。",
        "Příliš žluťoučký kůň úpěl ďábelské ódy",
        "",
        "2026: 12 % + 3",
    ],
)
def test_latin_and_chinese_text_gives_no_warning(text):
    assert warnings_for(text) == []


@pytest.mark.parametrize("casing", [(True, True), (True, False)])
def test_the_turkish_i_needs_its_case(casing):
    text = "Isparta'da kırmızı ışık, İstanbul'da ısı"
    (warning,) = warnings_for(text, casing=casing)
    assert warning.startswith("Lower-casing changes the Turkish i (1 of 8 ")
    assert "I becomes i, not ı). <no lower>" in warning


def test_a_few_foreign_letters_in_english_give_no_warning():
    english = "The word for school is simply written like that. " * 60
    assert warnings_for(english, "がっこう") == []
    assert len(warnings_for(english, "がっこう" * 60)) == 1


def test_a_warning_counts_and_shows_the_changed_letters():
    assert warnings_for("गगे", "한") == [
        "Stripping accents changes 33.3% of the letters of Devanagari (1 of 3"
        " counted: \u25ccे is lost). <no strip> See docs/own_language.md.",
        "Stripping accents changes 100.0% of the letters of Hangul (1 of 1"
        " counted: 한 becomes 3 jamo). <no strip> See docs/own_language.md.",
    ]


@pytest.mark.parametrize("casing", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("script", TEXTS)
def test_the_counts_follow_the_tokenizer(script, casing):
    tokenizer = BasicTokenizer(*casing)
    letters = [
        char
        for char in set(TEXTS[script])
        if unicodedata.category(char)[0] in "LM"
    ]
    expected = ["".join(tokenizer.tokenize(char)) for char in letters]
    assert [normalized(char, *casing) for char in letters] == expected


def test_counts_of_parts_add_up_to_those_of_the_whole():
    parts = []
    whole = ScriptCounter(True, True)
    for text in TEXTS.values():
        part = ScriptCounter(True, True)
        part.add(text, count=2)
        parts.append(part.scripts())
        whole.add(text)
        whole.add(text)
    assert sum_of_scripts(parts) == whole.scripts()
    assert sum_of_scripts(reversed(parts)) == whole.scripts()


@pytest.mark.parametrize(
    ("char", "script"),
    [
        ("a", "Latin"),
        ("ａ", "Latin"),
        ("ｶ", "Japanese kana"),
        ("ー", "Japanese kana"),
        ("中", "Chinese characters"),
        ("ա", "Armenian"),
        ("\u0301", ""),
    ],
)
def test_a_letter_has_a_script(char, script):
    assert script_of(char) == script
