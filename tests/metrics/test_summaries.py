# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""ROUGE is rouge-score's; oracles, baselines, and sentences from windows."""

import json
import types

import numpy as np
import pytest

from electra_tf.metrics import summaries

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
THEIRS = rouge_scorer.RougeScorer([*summaries.ROUGE], use_stemmer=True)


@pytest.fixture
def score():
    """Scores documents (sentences, reference) with windows of logits."""

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
    ],
)
def test_figures_are_those_of_the_package(reference, summary):
    wanted = THEIRS.score(reference, summary).items()
    found = summaries.rouge(reference, summary)
    assert found == {name: 100 * score.fmeasure for name, score in wanted}


def test_the_oracle_stops_where_nothing_raises_rouge_and_ties_go_to_the_first():
    assert summaries.find_oracle(SENTENCES, REFERENCE, 3) == (1, 3)
    assert summaries.find_oracle(SENTENCES, REFERENCE, 1) in ((1,), (3,))
    assert summaries.find_oracle(SENTENCES, "nothing alike", 3) == ()
    # Of equal sentences the first; a second time it would raise nothing.
    assert summaries.find_oracle(("a b", "a b", "c"), "a b", 3) == (0,)
    assert summaries.choose([0.1, 3.0, -1.0, 4.0], 2) == [1, 3]
    assert summaries.choose([1.0, 1.0, 1.0, 1.0], 3) == [0, 1, 2]
    assert summaries.choose([2.0], 3) == [0]


def test_windows_in_any_order_make_the_documents_figures(score):
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
        THEIRS.score(REFERENCE, CHOSEN),
        THEIRS.score("the north", "the city .\nthe north ."),
    ]
    results = dict(scorer.get_results())
    for name in summaries.ROUGE:
        wanted = 100 * np.mean([s[name].fmeasure for s in scores])
        assert results[name] == pytest.approx(wanted)
    assert results["loss"] == 0.5
    details = dict(scorer.get_details())
    assert {*results, *details} == {*scorer.figures}
    assert results["rouge1"] <= details["oracle_rouge1"]
    assert details["lead_rouge1"] < details["oracle_rouge1"]
    first, _ = json.loads(json.dumps(scorer.files()["summaries"]))
    figures = summaries.rouge(REFERENCE, CHOSEN)
    assert first["model"] == {"sentences": [1, 3], "rouge": figures}
    assert first["lead"]["sentences"] == [0, 1]
    assert len(first["random"]["sentences"]) == 2


def test_without_a_reference_there_are_summaries_all_the_same(score):
    scorer = score([(SENTENCES, None)], [(0, [1, 2, 3, 4, 5], [0, 1, 0, 2, 0])])
    assert scorer.final_answers() == {"0": CHOSEN}
