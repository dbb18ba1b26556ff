# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The weight of retrieval is fitted to the answers of a reader."""

import types

import pytest

from electra_tf.extras.ask.asker import Asker
from electra_tf.extras.ask.passages import SourcePassage
from electra_tf.extras.ask.weight import fit
from electra_tf.finetuning.question_answering import QATask


class Reader:
    """Scores the answer of a gold passage higher by 4."""

    task = QATask.__new__(QATask)

    def __call__(self, pairs):
        right = {"answer": "yes", "score": 2.0, "n_best": [1]}
        wrong = {"answer": "no way", "score": -2.0, "n_best": [1]}
        return [dict(right if "gold" in text else wrong) for _, text in pairs]


def search(question, count):
    """Rank the other passage before the gold passage, by 1."""
    return [(2 * int(question) + 1, 9.0), (2 * int(question), 8.0)]


@pytest.fixture(scope="module")
def report():
    """Return the fit to ten questions, each with a gold and another passage."""
    index = types.SimpleNamespace(passages=[], search=search)
    examples = []
    for number in range(10):
        for kind in ("gold", "other"):
            text = f"{kind} {number}"
            index.passages.append(SourcePassage("f", number, "", text))
        examples.append(
            types.SimpleNamespace(
                question_text=str(number),
                doc_tokens=["gold", str(number)],
                answers=("yes",),
            )
        )
    return fit(Asker(index, Reader(), 2), examples, 10)


def test_the_first_of_the_best_weights_is_taken(report):
    # The right answer is first for all weights w with (1 - w) * 4 > w.
    assert report["weight"] == 0.0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("retrieved", 100.0),
        ("gold", 100.0),
        ("reader_alone", 100.0),
        ("retrieval_alone", 0.0),
        ("lost", 0.0),
    ],
)
def test_scores_are_of_the_right_answers(report, key, value):
    assert report[key] == {"exact_match": value, "f1": value}


@pytest.mark.parametrize(("rank", "share"), [(1, 0.0), (5, 1.0), (20, 1.0)])
def test_gold_passages_are_counted_by_rank(report, rank, share):
    assert report[f"gold_in_first_{rank}"] == share
