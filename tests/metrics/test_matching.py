# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0

"""Exact match and F1 by words of any script, by characters, by the scripts."""

import types

import pytest

from electra_tf.metrics import matching
from electra_tf.metrics import question_answering as qa

ENGLISH = "The house of the king is in the city, and the dog is with him."
SHORT = "Paris is the capital."
RUSSIAN = "Дом короля стоит в городе."
ASKED = {SHORT: "What is the capital of France?", RUSSIAN: "Где дом?"}


def _question(passage, *answers):
    words, asked = passage.split(), ASKED.get(passage, "?")
    return types.SimpleNamespace(
        key="q", question_text=asked, answers=answers, doc_tokens=words
    )


def _scores(match, passage, prediction, *answers, version="mrqa"):
    questions, predictions = matching.encode_answers(
        match, [_question(passage, *answers)], {"q": prediction}
    )
    if version == "squad2":
        odds = (predictions, {"q": 0.0}, 1.0)
        scores = qa.evaluate_squad2(questions, *odds)
        return scores["exact"], scores["f1"]
    evaluate = {"mrqa": qa.evaluate_mrqa, "squad1": qa.evaluate_squad1}
    scores = evaluate[version](questions, predictions)
    return scores["exact_match"], scores["f1"]


@pytest.mark.parametrize("version", ["squad1", "squad2", "mrqa"])
@pytest.mark.parametrize(
    ("match", "prediction", "answer", "exact", "f1"),
    [
        ("words", "北京大学", "北京", 0, 200 / 3),
        ("words", "東京タワー。", "東京タワー", 100, 100),
        ("words", "กี่บาท", "บาท", 0, 600 / 7),
        ("words", "नई दिल्ली।", "नई दिल्ली", 100, 100),
        ("words", "má", "mà", 0, 0),
        ("words", "ma\u0301", "má", 100, 100),
        ("words", "«Москва»", "Москва", 100, 100),
        ("words", "in An Giang", "Giang", 0, 50),  # not the English article
        ("words", "서울은", "서울", 0, 0),
        ("characters", "서울은", "서울", 0, 80),
        ("characters", "北京大学", "北京", 0, 200 / 3),
        ("characters", "abc", "abd", 0, 200 / 3),
        ("words", "++", "--", 0, 0),
        ("words", "😀", "😀", 100, 100),
    ],
)
def test_answers_match_by_units_of_their_script(
    match, prediction, answer, exact, f1, version
):
    actual = _scores(match, RUSSIAN, prediction, answer, version=version)
    assert actual == pytest.approx((exact, f1))


@pytest.mark.parametrize(
    ("match", "passage", "exact", "f1"),
    [
        (None, RUSSIAN, 100, 100),
        (None, ENGLISH, 100, 100),
        ("words", ENGLISH, 100, 100),
        ("words", SHORT, 100, 100),
        ("words", RUSSIAN, 0, 80),
        ("characters", ENGLISH, 0, 100 * 18 / (9 + 12)),
    ],
)
def test_english_passages_keep_the_official_scripts_words(
    match, passage, exact, f1
):
    actual = _scores(match, passage, "the well known", "well known")
    assert actual == pytest.approx((exact, f1))


def test_the_best_of_several_answers_counts_and_an_empty_answer_can_match():
    assert _scores("words", RUSSIAN, "北京", "東京", "北京大") == (0, 80)
    assert _scores("words", RUSSIAN, "", version="squad2") == (100, 100)
    assert _scores("words", RUSSIAN, "北", version="squad2") == (0, 0)
    # A Chinese answer in English is not one word.
    assert _scores("words", ENGLISH, "北京大", "北京") == (0, pytest.approx(80))
