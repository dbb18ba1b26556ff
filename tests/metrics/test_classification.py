# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Classification scores equal the original's."""

import math

import numpy as np
import pytest

from electra_tf.metrics import classification

RECORDED = {
    "classification_AccuracyScorer": classification.AccuracyScorer,
    "classification_F1Scorer(buggy recall)": lambda: classification.F1Scorer(
        original_recall=True
    ),
    "classification_MCCScorer": classification.MCCScorer,
    "classification_MCCScorer_all_one_class": classification.MCCScorer,
    "classification_RegressionScorer": classification.RegressionScorer,
}


@pytest.mark.parametrize("name", RECORDED)
def test_scores_equal_the_recorded_ones(name, recorded_scores):
    recorded = recorded_scores[name]
    scorer = RECORDED[name]()
    for row in recorded["inputs"]:
        scorer.update(row)
    for (name, value), (expected_name, expected) in zip(
        scorer.get_results(), recorded["results"], strict=True
    ):
        assert name == expected_name
        assert value == pytest.approx(expected, rel=1e-12)
    assert scorer.results_str() == recorded["results_str"]
    assert scorer.get_loss() == pytest.approx(recorded["loss"], rel=1e-12)


def _filled(scorer, true, predicted, key="label_ids"):
    for label, prediction in zip(true, predicted, strict=True):
        scorer.update(
            {
                "loss": np.float32(0.5),
                key: np.asarray(label),
                "predictions": np.asarray(prediction),
            }
        )
    return scorer


def test_f1_counts_true_positives_for_recall():
    scorer = _filled(
        classification.F1Scorer(), [1, 1, 1, 0, 0], [1, 0, 0, 1, 0]
    )
    results = dict(scorer.get_results())
    assert results["precision"] == 50.0
    assert results["recall"] == pytest.approx(100 / 3)
    assert results["f1"] == pytest.approx(40.0)


def test_figures_are_computed_again_after_an_update():
    scorer = _filled(classification.AccuracyScorer(), [1], [1])
    assert dict(scorer.get_results("dev_"))["dev_accuracy"] == 100.0
    _filled(scorer, [1], [0])
    assert dict(scorer.get_results())["accuracy"] == 50.0


def test_a_model_that_always_says_the_same_is_named():
    scorer = _filled(classification.AccuracyScorer(), [1, 0, 2], [1, 1, 1])
    assert scorer.single_prediction() == 1
    scorer = _filled(classification.AccuracyScorer(), [1, 0], [0, 1])
    assert scorer.single_prediction() is None


def test_a_constant_regression_is_named_and_its_correlation_undefined():
    scorer = _filled(
        classification.RegressionScorer(),
        [0.0, 0.5, 1.0],
        [0.25, 0.25, 0.25],
        "targets",
    )
    assert math.isnan(dict(scorer.get_results())["pearson"])
    assert scorer.single_prediction() == 0.25


def test_two_classes_have_the_f1_of_class_one_among_the_details():
    scorer = _filled(classification.AccuracyScorer(), [1, 1, 0], [1, 0, 0])
    details = dict(scorer.get_details())
    assert details["precision"] == 100.0 and details["recall"] == 50.0


def test_several_labels_per_text():
    true = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    predicted = [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    scorer = _filled(
        classification.MultiLabelScorer(["a", "b", "c"]), true, predicted
    )
    results = dict(scorer.get_results())
    assert results["exact_match"] == pytest.approx(200 / 3)
    assert results["micro_f1"] == pytest.approx(80.0)
    assert results["macro_f1"] == pytest.approx(200 / 3)
    assert dict(scorer.get_details())["f1_c"] == 0.0
