# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tagging scores equal the original's; seqeval's stand beside them."""

import numpy as np
import pytest

from electra_tf.metrics import tagging

MAPPING = {"B-A": 0, "I-A": 1, "B-x-y": 2, "B-z-y": 3, "O": 4, "I-x-y": 5}


def _scorer(recorded):
    if "label_mapping" in recorded:
        return tagging.EntityLevelF1Scorer(recorded["label_mapping"])
    return tagging.AccuracyScorer()


@pytest.mark.parametrize("name", ["EntityLevelF1Scorer", "AccuracyScorer"])
def test_scores_equal_the_recorded_ones(name, recorded_scores):
    recorded = recorded_scores[f"tagging_{name}"]
    scorer = _scorer(recorded)
    for row in recorded["inputs"]:
        scorer.update(row)
    for (name, value), (expected_name, expected) in zip(
        scorer.get_results(), recorded["results"], strict=True
    ):
        assert name == expected_name
        assert value == pytest.approx(expected, rel=1e-12)
    assert scorer.results_str() == recorded["results_str"]
    details = dict(scorer.get_details())
    assert 2 * details["loss_per_word"] == pytest.approx(recorded["loss"])


def _sentence(labels, predictions, length=6):
    pad = length - len(labels)
    return {
        "labels": np.array([MAPPING[t] for t in labels] + [0] * pad),
        "predictions": np.array([MAPPING[t] for t in predictions] + [0] * pad),
        "labels_mask": np.array([1.0] * len(labels) + [0.0] * pad),
        "loss": np.float32(1.0),
    }


def test_seqeval_splits_a_span_where_the_original_lets_it_go_on():
    scorer = tagging.EntityLevelF1Scorer(MAPPING)
    scorer.update(_sentence(["B-A", "I-x-y"], ["B-A", "B-x-y"]))
    assert dict(scorer.get_results())["f1"] == pytest.approx(0.0)
    assert dict(scorer.get_details())["seqeval_f1"] == 100.0


def test_types_with_a_dash_are_not_confused():
    scorer = tagging.EntityLevelF1Scorer(MAPPING)
    scorer.update(_sentence(["B-x-y", "O"], ["B-z-y", "O"]))
    assert dict(scorer.get_results())["f1"] == 0.0
    assert dict(scorer.get_details())["seqeval_f1"] == 0.0


def test_a_sentence_without_words_is_no_error():
    scorer = tagging.EntityLevelF1Scorer(MAPPING)
    scorer.update(_sentence([], []))
    assert dict(scorer.get_results())["f1"] == 0.0
    assert dict(scorer.get_details())["seqeval_f1"] == 0.0


def test_a_model_that_only_says_o_is_named():
    scorer = tagging.EntityLevelF1Scorer(MAPPING)
    scorer.update(_sentence(["B-A", "O"], ["O", "O"]))
    assert scorer.single_prediction() == MAPPING["O"]


def test_a_label_can_be_made_to_count_as_wrong():
    scorer = tagging.AccuracyScorer(auto_fail_label=MAPPING["O"])
    scorer.update(_sentence(["B-A", "O"], ["B-A", "O"]))
    assert dict(scorer.get_results())["accuracy"] == 50.0
