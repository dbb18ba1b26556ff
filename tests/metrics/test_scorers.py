# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figures equal the original's; others, and statistics, stand beside."""

import functools
import json
import math

import numpy as np
import pytest

from electra_tf.metrics import scorers

TAGS = "B-A I-A E-A S-A B-x-y I-x-y E-x-y B-z-y O".split()
MAPPING = {tag: i for i, tag in enumerate(TAGS)}


class OriginalF1(scorers.F1Scorer):
    def _get_results(self):
        first, *_, loss = super()._get_results()
        return [(n, first[1]) for n in ("precision", "recall", "f1")] + [loss]


RECORDED = {
    "classification_AccuracyScorer": scorers.AccuracyScorer,
    "classification_F1Scorer(buggy recall)": OriginalF1,
    "classification_MCCScorer": scorers.MCCScorer,
    "classification_MCCScorer_all_one_class": scorers.MCCScorer,
    "classification_RegressionScorer": scorers.RegressionScorer,
    "tagging_AccuracyScorer": scorers.WordAccuracyScorer,
    "tagging_EntityLevelF1Scorer": scorers.EntityLevelF1Scorer,
}


@pytest.mark.parametrize("name", RECORDED)
def test_figures_equal_the_recorded_ones(name, golden_dir):
    path = golden_dir / "finetune_features" / "qa_metrics.json"
    recorded = json.loads(path.read_text())["classification_and_tagging"][name]
    mapping = recorded.get("label_mapping")
    scorer = RECORDED[name](*[mapping] * (mapping is not None))
    for row in recorded["inputs"]:
        scorer.update(row)
    pairs = zip(scorer.get_results(), recorded["results"], strict=True)
    for (name, value), (expected_name, expected) in pairs:
        assert name == expected_name
        # Processors round sums of single precision apart.
        bound = 1e-6 if name == "pearson" else 1e-12
        assert value == pytest.approx(expected, rel=bound)
    assert scorer.results_str() == recorded["results_str"]
    assert scorer.get_loss() == pytest.approx(recorded["loss"], rel=1e-12)
    details = dict(scorer.get_details())
    assert {*details, *dict(scorer.get_results())} <= set(scorer.figures)
    if "loss_per_word" in details:
        assert 2 * details["loss_per_word"] == pytest.approx(recorded["loss"])


def _filled(scorer, true, predicted, key="label_ids"):
    for label, prediction in zip(true, predicted, strict=True):
        row = {key: np.asarray(label), "predictions": np.asarray(prediction)}
        scorer.update({**row, "loss": np.float32(0.5)})
    return scorer


def test_f1_counts_true_positives_for_recall():
    expected = {"precision": 50.0, "recall": 100 / 3, "f1": 40.0}
    labels, predictions = [1, 1, 1, 0, 0], [1, 0, 0, 1, 0]
    found = dict(_filled(scorers.F1Scorer(), labels, predictions).get_results())
    # Of two classes accuracy has them among its details.
    details = _filled(scorers.AccuracyScorer(), labels, predictions)
    for figures in (found, dict(details.get_details())):
        wanted = {name: figures[name] for name in expected}
        assert wanted == pytest.approx(expected)


def test_a_model_that_always_says_the_same_is_named():
    scorer = _filled(scorers.AccuracyScorer(), [1, 2], [1, 1])
    assert scorer.single_prediction() == 1
    assert dict(scorer.get_results())["accuracy"] == 50.0
    _filled(scorer, [0, 0], [0, 0])  # an update changes all of it
    assert scorer.single_prediction() is None
    assert dict(scorer.get_results())["accuracy"] == 75.0
    scorer, values = scorers.RegressionScorer(), [0.0, 0.5, 1.0]
    _filled(scorer, values, [0.25] * 3, "targets")
    assert math.isnan(dict(scorer.get_results())["pearson"])
    assert scorer.single_prediction() == 0.25
    scorer = _tagged(["B-A", "O"], ["O", "O"])
    assert scorer.single_prediction() == MAPPING["O"]


def test_several_labels_per_text():
    true = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    predicted = [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    scorer = _filled(scorers.MultiLabelScorer(["a", "b", "c"]), true, predicted)
    results = dict(scorer.get_results())
    wanted = {"exact_match": 200 / 3, "micro_f1": 80.0, "macro_f1": 200 / 3}
    assert {name: results[name] for name in wanted} == pytest.approx(wanted)
    assert dict(scorer.get_details())["f1_c"] == 0.0
    alone = _filled(scorers.MultiLabelScorer(["a"]), [[1], [0]], [[1], [1]])
    assert dict(alone.get_results())["micro_f1"] == pytest.approx(200 / 3)
    assert dict(alone.get_details()) == {"f1_a": pytest.approx(200 / 3)}


def _tagged(labels, predictions, length=6):
    def padded(numbers):
        return np.array([*numbers, *[0] * (length - len(numbers))])

    scorer = scorers.EntityLevelF1Scorer(MAPPING)
    row = {"labels": labels, "predictions": predictions}
    row = {name: padded([MAPPING[t] for t in row[name]]) for name in row}
    mask = padded([1.0] * len(labels))
    scorer.update({**row, "labels_mask": mask, "loss": np.float32(1.0)})
    return scorer


@pytest.mark.parametrize(
    ("labels", "predictions", "f1", "conlleval_f1"),
    [
        # An I of another type goes on in the original, and gives the type.
        ("B-A I-x-y", "B-A B-x-y", 0.0, 100.0),
        ("B-A E-A", "B-x-y E-A", 100.0, 0.0),
        ("B-A E-A O S-A", "B-x-y E-A O S-A", 100.0, 200 / 5),
        # What begins without a B begins all the same, after O or an end.
        ("S-A O B-A E-A", "I-A O E-A I-A", 100.0, 100.0),
        # Ends and singles are not conlleval's: B and I alone decide.
        ("B-A I-A E-A", "S-A E-A I-A", 100.0, 100.0),
        ("B-A E-A S-A", "B-A I-A I-A", 0.0, 0.0),
        # Types with a dash are not confused.
        ("B-x-y O", "B-z-y O", 0.0, 0.0),
        # A sentence without words is no error.
        ("", "", 0.0, 0.0),
    ],
)
def test_spans_as_two_programs_read_them(labels, predictions, f1, conlleval_f1):
    scorer = _tagged(labels.split(), predictions.split())
    assert dict(scorer.get_results())["f1"] == f1
    found = dict(scorer.get_details())["conlleval_f1"]
    assert found == pytest.approx(conlleval_f1)


RESULTS = [
    {"cola": {"mcc": 10.0, "loss": 0.5}, "sst": {"accuracy": 90.0}},
    {"cola": {"mcc": 20.0, "loss": 0.7}, "sst": {"accuracy": 92.0}},
    {"cola": {"mcc": 60.0, "loss": 0.4}, "sst": {"accuracy": 91.0}},
]
SPANS = functools.partial(scorers.EntityLevelF1Scorer, MAPPING)


@pytest.mark.parametrize(
    "make", [scorers.F1Scorer, scorers.RegressionScorer, SPANS]
)
def test_rows_drawn_from_a_scorer_count_as_if_they_had_been_given(make):
    random = np.random.default_rng(0)
    size = 3 if make is SPANS else None
    given = [
        {
            "loss": 0.0,
            "predictions": random.integers(0, 2, size),
            "label_ids": random.integers(0, 2),
            "labels": random.integers(0, 2, 3),
            "labels_mask": np.ones(3),
        }
        for _ in range(20)
    ]
    whole, part = make(), make()
    rows = random.integers(20, size=20).tolist()
    for row in given:
        whole.update(row)
    for number in rows:
        part.update(given[number])
    before = whole.get_results()
    found = dict(whole.of_rows(rows).get_results())
    assert np.isnan(found.pop("loss"))
    assert found.items() <= dict(part.get_results()).items()
    assert whole.get_results() == before


@pytest.mark.parametrize(
    ("figure", "is_lower"),
    [
        ("loss", True),
        ("sts_mse", True),
        ("f1_job_loss", False),  # of a label
        ("gloss_accuracy", False),  # of a task
        ("accuracy", False),
    ],
)
def test_a_figure_is_a_loss_by_its_own_name(figure, is_lower):
    assert scorers.lower_is_better(figure) == is_lower


def test_trials_are_summed_up_and_what_is_undefined_is_counted():
    mcc = scorers.summarize(RESULTS)["cola"]["mcc"]
    assert (mcc.mean, mcc.median, mcc.best, mcc.best_index) == (30, 20, 60, 2)
    assert mcc.std == pytest.approx(math.sqrt(700))
    assert mcc.values == (10.0, 20.0, 60.0)
    assert scorers.summarize(RESULTS)["cola"]["loss"].best == 0.4
    assert scorers.best_trial(RESULTS, {}) == 2
    # By the figure that a task names, where it does.
    own = [{"t": {"pearson": p, "mse": m}} for p, m in ((9.0, 2.0), (8.0, 1.0))]
    assert scorers.best_trial(own, {"t": None}) == 0
    assert scorers.best_trial(own, {"t": "mse"}) == 1
    assert scorers.main_figure(["precision", "recall", "f1", "loss"]) == "f1"
    assert scorers.main_figure(["mcc", "loss"]) == "mcc"
    found = scorers.describe([math.nan, 1.0, 3.0])
    assert (found.mean, found.undefined, found.best_index) == (2.0, 1, 2)
    assert json.dumps(found.as_dict(), allow_nan=False)
    assert scorers.describe([5.0]).std == 0.0
    nothing = scorers.describe([math.nan])
    assert nothing.best_index is None and math.isnan(nothing.mean)


@pytest.mark.parametrize(
    ("scorer", "labels", "expected"),
    [
        (
            scorers.AccuracyScorer(3),
            [0, 0, 0, 1],
            {"chance": {"accuracy": 100 / 3}, "majority": {"accuracy": 75.0}},
        ),
        (
            scorers.MCCScorer(2),
            [1, 1, 0],
            {
                "chance": {"mcc": 0.0, "accuracy": 50.0},
                "majority": {"mcc": 0.0, "accuracy": 200 / 3},
            },
        ),
        (
            # By chance half of the two of three is found.
            scorers.F1Scorer(2),
            [1, 1, 0],
            {"chance": {"f1": 400 / 7}, "majority": {"f1": 80.0}},
        ),
    ],
    ids=["accuracy", "mcc", "f1"],
)
def test_baselines_of_classes_are_exact(scorer, labels, expected):
    _filled(scorer, labels, [0] * len(labels))
    found = scorer.baselines()
    for kind, figures in expected.items():
        shown = {name: found[kind][name] for name in figures}
        assert shown == pytest.approx(figures, abs=1e-9)
    assert "loss" not in found["majority"]
    # The scorer's own figures stay.
    assert dict(scorer.get_results())["loss"] == pytest.approx(0.5)


def test_baselines_of_words_and_of_several_labels():
    scorer = _tagged(["B-A", "O", "O"], ["B-A", "O", "O"])
    majority = scorer.baselines()["majority"]
    assert majority["word_accuracy"] == pytest.approx(200 / 3)
    assert majority["f1"] == 0.0
    true = [[1, 0], [1, 0], [0, 1]]
    scorer = _filled(scorers.MultiLabelScorer(["a", "b"]), true, true)
    found = scorer.baselines()
    assert found["majority"]["exact_match"] == pytest.approx(200 / 3)
    assert 0.0 <= found["chance"]["exact_match"] < 100.0


def test_correlations_are_zero_by_chance():
    scorer = _filled(scorers.RegressionScorer(), [0.0, 1.0], [0.0, 1.0])
    chance = {"pearson": 0.0, "spearman": 0.0}
    assert scorer.baselines() == {"chance": chance}
