# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Spans have the scores of the original and of conlleval."""

import numpy as np
import pytest

from electra_tf.metrics import tagging

TAGS = "B-A I-A E-A S-A B-x-y I-x-y E-x-y B-z-y O".split()
MAPPING = {tag: i for i, tag in enumerate(TAGS)}


def tagged(labels, predictions, length=6):
    def padded(numbers):
        return np.array(list(numbers) + [0] * (length - len(numbers)))

    scorer = tagging.EntityLevelF1Scorer(MAPPING)
    scorer.update(
        {
            "labels": padded([MAPPING[tag] for tag in labels]),
            "predictions": padded([MAPPING[tag] for tag in predictions]),
            "labels_mask": padded([1.0] * len(labels)),
            "loss": np.float32(1.0),
        }
    )
    return scorer


@pytest.mark.parametrize(
    ("labels", "predictions", "f1", "conlleval_f1"),
    [
        # In the original, an I of a different type continues the span, which
        # gets the type of the I.
        ("B-A I-x-y", "B-A B-x-y", 0.0, 100.0),
        ("B-A E-A", "B-x-y E-A", 100.0, 0.0),
        ("B-A E-A O S-A", "B-x-y E-A O S-A", 100.0, 200 / 5),
        # After O or an end, a span also begins without a B.
        ("S-A O B-A E-A", "I-A O E-A I-A", 100.0, 100.0),
        # conlleval knows only B and I, no ends (E) and no singles (S).
        ("B-A I-A E-A", "S-A E-A I-A", 100.0, 100.0),
        ("B-A E-A S-A", "B-A I-A I-A", 0.0, 0.0),
        # Types with a dash are not confused.
        ("B-x-y O", "B-z-y O", 0.0, 0.0),
        # A sentence without words is no error.
        ("", "", 0.0, 0.0),
    ],
)
def test_spans_as_two_programs_read_them(labels, predictions, f1, conlleval_f1):
    scorer = tagged(labels.split(), predictions.split())
    assert dict(scorer.get_results())["f1"] == f1
    details = dict(scorer.get_details())
    assert details["conlleval_f1"] == pytest.approx(conlleval_f1)


def test_a_collapsed_tagger_is_recognized():
    scorer = tagged(["B-A", "O"], ["O", "O"])
    assert scorer.single_prediction() == MAPPING["O"]


def test_the_majority_of_words_finds_no_span():
    scorer = tagged(["B-A", "O", "O"], ["B-A", "O", "O"])
    majority = scorer.baselines()["majority"]
    assert majority["word_accuracy"] == pytest.approx(200 / 3)
    assert majority["f1"] == 0.0
