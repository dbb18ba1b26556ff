# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (texts of many scripts)
"""ROUGE equals rouge-score's; oracles, baselines, sentences from windows."""

import json
import types

import numpy as np
import pytest

from electra_tf.metrics import summaries
from electra_tf.text.sentences import split_sentences

rouge_scorer = pytest.importorskip(
    "rouge_score.rouge_scorer", reason="no extra rouge"
)
SENTENCES = (
    "By the editor.",
    "The king opened the new bridge in the north on Monday.",
    "It rained.",
    "Thousands watched him cross the river on foot.",
    "He wore a hat.",
)
REFERENCE = "King opened new bridge on Monday .\nThousands watched him cross ."
CHOSEN = f"{SENTENCES[1]}\n{SENTENCES[3]}"
PACKAGE = rouge_scorer.RougeScorer([*summaries.ROUGE], use_stemmer=True)


@pytest.fixture
def score():
    """Return a function that scores documents (sentences, reference)."""

    def make(documents, windows, most=2):
        made = [
            types.SimpleNamespace(eid=eid, sentences=s, summary=reference)
            for eid, (s, reference) in enumerate(documents)
        ]
        scorer = summaries.SummaryScorer(made, most)
        for eid, numbers, logits in windows:
            row = {
                "numbers": [*numbers, 0],
                "logits": [[1.0, 1.0 + x] for x in [*logits, 99]],
                "labels_mask": [1.0] * len(numbers) + [0.0],
            }
            row = {name: np.array(value) for name, value in row.items()}
            scorer.update({**row, "eid": eid, "loss": 0.5})
        return scorer

    return make


@pytest.mark.parametrize(
    ("reference", "summary"),
    [
        (REFERENCE, "\n".join(SENTENCES)),
        (REFERENCE, REFERENCE),
        (REFERENCE, ""),
        ("The cats were running.", "a cat runs"),
        ("one two\nthree", "three\none two"),
        ("cats were running", "a cat runs: 3.5 x_y"),  # not known as English
        # English that is not in ASCII.
        ("The fiancée and the man’s dog", "Fiancee, fiancée; the man's"),
    ],
)
def test_rouge_equals_that_of_the_package(reference, summary):
    scores = PACKAGE.score(reference, summary).items()
    expected = {name: 100 * score.fmeasure for name, score in scores}
    assert summaries.rouge(reference, summary) == expected


def test_the_oracle_stops_when_rouge_does_not_rise_and_prefers_the_first():
    assert summaries.find_oracle(SENTENCES, REFERENCE, 3) == (1, 3)
    assert summaries.find_oracle(SENTENCES, REFERENCE, 1) in ((1,), (3,))
    assert summaries.find_oracle(SENTENCES, "nothing similar", 3) == ()
    # The first of equal sentences is chosen; the second would not raise ROUGE.
    assert summaries.find_oracle(("a b", "a b", "c"), "a b", 3) == (0,)
    assert summaries.choose([0.1, 3.0, -1.0, 4.0], 2) == [1, 3]
    assert summaries.choose([1.0, 1.0, 1.0, 1.0], 3) == [0, 1, 2]
    assert summaries.choose([2.0], 3) == [0]


def test_windows_in_any_order_give_the_documents_metrics(score):
    other = ("the city .", "the north .", "of it .")
    scorer = score(
        [(SENTENCES, REFERENCE), (other, "the north")],
        [
            (0, [4, 5], [5.0, 0.0]),
            (1, [1, 2, 3], [0.0, -1.0, -2.0]),
            (0, [1, 2, 3], [1.0, 6.0, 2.0]),
        ],
    )
    assert scorer.answer() == {0: [1, 3], 1: [0, 1]}
    scores = [
        PACKAGE.score(REFERENCE, CHOSEN),
        PACKAGE.score("the north", "the city .\nthe north ."),
    ]
    results = dict(scorer.get_results())
    expected = {"loss": 0.5}
    for name in summaries.ROUGE:
        expected[name] = 100 * np.mean([s[name].fmeasure for s in scores])
    assert results == pytest.approx(expected)
    details = dict(scorer.get_details())
    assert {*results, *details} == {*scorer.metric_names}
    assert results["rouge1"] <= details["oracle_rouge1"]
    assert details["lead_rouge1"] < details["oracle_rouge1"]
    first, _ = json.loads(json.dumps(scorer.files()["summaries"]))
    scores = summaries.rouge(REFERENCE, CHOSEN)
    assert first["model"] == {"sentences": [1, 3], "rouge": scores}
    assert first["lead"]["sentences"] == [0, 1]
    assert len(first["random"]["sentences"]) == 2


def test_texts_without_a_reference_are_summarized(score):
    scorer = score([(SENTENCES, None)], [(0, [1, 2, 3, 4, 5], [0, 1, 0, 2, 0])])
    assert scorer.final_answers() == {"0": CHOSEN}


# Documents, and the sentence of each that is its summary.
LANGUAGES = {
    "Russian": (
        "Волга впадает в Каспийское море. Он жил в 1990 г. в Туле."
        " Москва — столица России. Сегодня тепло.",
        "Москва — столица России.",
    ),
    "Chinese": (
        "今天很热。他喜欢读书。1963年建成。北京是首都。",
        "他喜欢读书。",
    ),
    "Japanese": ("今日は暑い。彼は本を読む。「何？」町は古い。", "町は古い。"),
    "Hindi": ("राम घर गया। दिल्ली राजधानी है। आज गर्मी है।", "दिल्ली राजधानी है।"),
    "Vietnamese": ("Mẹ là má. Ông mà đi. Trời má nắng.", "Ông mà đi."),
    "Thai": ("วันนี้ร้อน\nเขาอ่านหนังสือ\nเมืองเก่า", "เขาอ่านหนังสือ"),
    "Korean": ("오늘은 덥다. 그는 책을 읽는다. 서울은 크다.", "서울은 크다."),
    "Urdu": ("آج گرمی ہے۔ وہ کتاب پڑھتا ہے۔ شہر پرانا ہے۔", "شہر پرانا ہے۔"),
    "German": ("Es war kühl. Die Bäume blühen. Er liest.", "Die Bäume blühen."),
    "Burmese": ("မြို့ကြီး။ သူစာဖတ်။ နေပူသည်။", "သူစာဖတ်။"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_equal_to_the_summary_is_selected_in_every_language(
    language,
):
    text, summary = LANGUAGES[language]
    sentences = tuple(text[a:b] for a, b in split_sentences(text))
    assert len(sentences) >= 3
    (index,) = summaries.find_oracle(sentences, summary, 1)
    assert sentences[index] == summary
    scores = summaries.rouge(summary, sentences[index])
    assert scores == dict.fromkeys(summaries.ROUGE, 100.0)
    others = [s for s in sentences if s != summary]
    assert all(summaries.rouge(summary, s)["rouge1"] < 70 for s in others)


@pytest.mark.parametrize(
    ("reference", "summary", "rouge1"),
    [
        ("má", "mà", 0.0),
        ("má", "ma\u0301", 100.0),
        ("дом стоит", "дом горит", 50.0),
        ("北京大学", "北京", 200 / 3),
        ("schön", "schon", 0.0),
        ("il était running", "il runs", 80.0),  # ASCII as in English
    ],
)
def test_letters_beyond_ascii_count(reference, summary, rouge1):
    scores = summaries.rouge(reference, summary)
    assert scores["rouge1"] == pytest.approx(rouge1)


@pytest.fixture(scope="module")
def news(reference_dir):
    """Return 100 news texts, many with letters beyond ASCII."""
    path = reference_dir / "data/summarization/cnndm_train_sample.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == 100
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 3])
def test_scores_of_real_english_equal_the_package_s(news, first):
    different = {}
    for index, row in enumerate(news):
        text, reference = row["article"], row["highlights"]
        spans = split_sentences(text)[first : first + 3]
        summary = "\n".join(text[a:b] for a, b in spans)
        scores = PACKAGE.score(reference, summary)
        expected = {name: 100.0 * s.fmeasure for name, s in scores.items()}
        actual = summaries.rouge(reference, summary)
        if actual != expected:
            different[index] = actual, expected
    assert different == {}


@pytest.mark.slow
def test_labels_of_real_english_equal_the_package_s(news, monkeypatch):
    labels = []
    for choose in (summaries.choose_splitting, lambda _: summaries.ROUGE_SCORE):
        monkeypatch.setattr(summaries, "choose_splitting", choose)
        summaries.find_oracle.cache_clear()
        for row in news:
            text = row["article"]
            sentences = tuple(text[a:b] for a, b in split_sentences(text))
            oracle = summaries.find_oracle(sentences, row["highlights"], 3)
            labels.append(oracle)
    assert labels[:100] == labels[100:]


def test_details_count_what_rouge_score_did_not_split(score):
    russian = ("Дом стоит.", "Река течёт.")
    english = ("The dog and the cat.", "It rained.")
    scorer = score(
        [(russian, "Река течёт."), (english, "The dog and the fox.")],
        [(0, [1, 2], [0.0, 5.0]), (1, [1, 2], [5.0, 0.0])],
        most=1,
    )
    assert dict(scorer.get_details())["any_script"] == 1
    rows = scorer.files()["summaries"]
    assert "any script" in rows[0]["words"]
    assert rows[1]["words"] == "rouge-score"
    assert dict(scorer.get_details())["oracle_rouge1"] > 85
