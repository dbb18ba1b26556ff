# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics of labels per text equal the original's; others are exact."""

import json
import math

import numpy as np
import pytest

from electra_tf.metrics import classification, tagging


class OriginalF1(classification.F1Scorer):
    """The original's scorer, which reports precision three times."""

    def _get_results(self):
        precision, *_, loss = super()._get_results()
        names = ("precision", "recall", "f1")
        return [(name, precision[1]) for name in names] + [loss]


RECORDED = {
    "classification_AccuracyScorer": classification.AccuracyScorer,
    "classification_F1Scorer(buggy recall)": OriginalF1,
    "classification_MCCScorer": classification.MCCScorer,
    "classification_MCCScorer_all_one_class": classification.MCCScorer,
    "classification_RegressionScorer": classification.RegressionScorer,
    "tagging_AccuracyScorer": tagging.WordAccuracyScorer,
    "tagging_EntityLevelF1Scorer": tagging.EntityLevelF1Scorer,
}


@pytest.fixture(params=RECORDED)
def recorded(request, golden_dir):
    """Return a scorer filled with recorded rows, and the original's metrics."""
    path = golden_dir / "finetune_features" / "qa_metrics.json"
    recordings = json.loads(path.read_text())["classification_and_tagging"]
    recording = recordings[request.param]
    if "label_mapping" in recording:
        scorer = RECORDED[request.param](recording["label_mapping"])
    else:
        scorer = RECORDED[request.param]()
    for row in recording["inputs"]:
        scorer.update(row)
    return scorer, recording


def test_results_equal_the_recorded_ones(recorded):
    scorer, recording = recorded
    results, expected = dict(scorer.get_results()), dict(recording["results"])
    assert list(results) == list(expected)
    # Processors round sums of single precision differently.
    assert results.pop("pearson", 0.0) == pytest.approx(
        expected.pop("pearson", 0.0), rel=1e-6
    )
    assert results == pytest.approx(expected, rel=1e-12)
    assert scorer.results_str() == recording["results_str"]


def test_losses_equal_the_recorded_ones(recorded):
    scorer, recording = recorded
    assert scorer.get_loss() == pytest.approx(recording["loss"], rel=1e-12)
    details = dict(scorer.get_details())
    if "loss_per_word" in details:
        assert 2 * details["loss_per_word"] == pytest.approx(recording["loss"])


def test_every_metric_has_a_declared_name(recorded):
    scorer, _ = recorded
    metrics = dict(scorer.get_results() + scorer.get_details())
    assert {*metrics} <= {*scorer.metric_names}


def filled(scorer, labels, predictions, key="label_ids"):
    for label, prediction in zip(labels, predictions, strict=True):
        row = {key: np.asarray(label), "predictions": np.asarray(prediction)}
        scorer.update({**row, "loss": np.float32(0.5)})
    return scorer


@pytest.mark.parametrize(
    ("scorer", "method"),
    [
        (classification.F1Scorer(), "get_results"),
        # With two classes, the details of accuracy include F1.
        (classification.AccuracyScorer(), "get_details"),
    ],
)
def test_f1_counts_true_positives_for_recall(scorer, method):
    filled(scorer, [1, 1, 1, 0, 0], [1, 0, 0, 1, 0])
    metrics = dict(getattr(scorer, method)())
    expected = {"precision": 50.0, "recall": 100 / 3, "f1": 40.0}
    assert {n: metrics[n] for n in expected} == pytest.approx(expected)


def test_a_collapsed_classifier_is_recognized_until_its_predictions_differ():
    scorer = filled(classification.AccuracyScorer(), [1, 2], [1, 1])
    assert scorer.single_prediction() == 1
    assert dict(scorer.get_results())["accuracy"] == 50.0
    filled(scorer, [0, 0], [0, 0])
    assert scorer.single_prediction() is None
    assert dict(scorer.get_results())["accuracy"] == 75.0


def test_a_collapsed_regression_has_no_correlation():
    scorer = classification.RegressionScorer()
    filled(scorer, [0.0, 0.5, 1.0], [0.25] * 3, "targets")
    assert math.isnan(dict(scorer.get_results())["pearson"])
    assert scorer.single_prediction() == 0.25


def test_metrics_of_several_labels_are_exact():
    labels = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    predictions = [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    scorer = classification.MultiLabelScorer(["a", "b", "c"])
    results = dict(filled(scorer, labels, predictions).get_results())
    expected = {"exact_match": 200 / 3, "micro_f1": 80.0, "macro_f1": 200 / 3}
    assert {n: results[n] for n in expected} == pytest.approx(expected)
    assert dict(scorer.get_details())["f1_c"] == 0.0


def test_a_single_label_per_text_is_not_read_as_two_classes():
    scorer = classification.MultiLabelScorer(["a"])
    filled(scorer, [[1], [0]], [[1], [1]])
    assert dict(scorer.get_results())["micro_f1"] == pytest.approx(200 / 3)
    assert dict(scorer.get_details()) == {"f1_a": pytest.approx(200 / 3)}


@pytest.mark.parametrize(
    ("scorer", "labels", "expected"),
    [
        (
            classification.AccuracyScorer(3),
            [0, 0, 0, 1],
            {"chance": {"accuracy": 100 / 3}, "majority": {"accuracy": 75.0}},
        ),
        (
            classification.MCCScorer(2),
            [1, 1, 0],
            {
                "chance": {"mcc": 0.0, "accuracy": 50.0},
                "majority": {"mcc": 0.0, "accuracy": 200 / 3},
            },
        ),
        (
            # By chance half of the positives is predicted.
            classification.F1Scorer(2),
            [1, 1, 0],
            {"chance": {"f1": 400 / 7}, "majority": {"f1": 80.0}},
        ),
    ],
    ids=["accuracy", "mcc", "f1"],
)
def test_baselines_of_classes_are_exact(scorer, labels, expected):
    filled(scorer, labels, [0] * len(labels))
    chance, majority = (
        scorer.baselines()[kind] for kind in ("chance", "majority")
    )
    assert {n: chance[n] for n in expected["chance"]} == pytest.approx(
        expected["chance"], abs=1e-9
    )
    assert {n: majority[n] for n in expected["majority"]} == pytest.approx(
        expected["majority"], abs=1e-9
    )


def test_baselines_leave_out_the_loss_and_keep_the_scorers_own():
    scorer = filled(classification.AccuracyScorer(), [1, 1, 0], [0, 0, 0])
    assert "loss" not in scorer.baselines()["majority"]
    assert dict(scorer.get_results())["loss"] == pytest.approx(0.5)


def test_the_majority_of_several_labels_is_the_most_frequent_set():
    labels = [[1, 0], [1, 0], [0, 1]]
    scorer = classification.MultiLabelScorer(["a", "b"])
    baselines = filled(scorer, labels, labels).baselines()
    assert baselines["majority"]["exact_match"] == pytest.approx(200 / 3)
    assert 0.0 <= baselines["chance"]["exact_match"] < 100.0


def test_correlations_are_zero_by_chance():
    scorer = filled(classification.RegressionScorer(), [0.0, 1.0], [0.0, 1.0])
    chance = {"pearson": 0.0, "spearman": 0.0}
    assert scorer.baselines() == {"chance": chance}
