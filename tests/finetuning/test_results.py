# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Results files: written whole, read back, never lost."""

import io
import json
import math
import pickle

import pytest

from configure.errors import UserError
from electra_tf.finetuning.runner import ResultsFiles, TrialRecord
from electra_tf.finetuning.trial import patience_is_over
from electra_tf.training.summaries import Console


def _record(trial=1, value=50.0, collapsed=False):
    return TrialRecord(
        trial=trial,
        seed=trial,
        model_dir="m",
        global_step=3,
        results={"sts": {"pearson": value, "loss": 0.25}},
        details={"sts": {"extra": 1.0}},
        other_splits={},
        collapsed={"sts": "every prediction is 0.5"} if collapsed else {},
    )


@pytest.fixture
def files(finetuning_config):
    def make(**hparams):
        config = finetuning_config("sts", **hparams)
        return ResultsFiles(config, Console(io.StringIO())), config

    return make


@pytest.mark.usefixtures("with_pictures")
def test_undefined_figures_survive_reading_back(files):
    results, config = files()
    records = [_record(1, math.nan, collapsed=True), _record(2)]
    results.write(records)
    found = results.earlier_trials()
    assert math.isnan(found[0].results["sts"]["pearson"])
    assert found[1] == records[1]
    written = json.loads(open(config.results_json).read())
    assert written["collapsed_trials"] == [1] and written["best_trial"] == 2
    assert written["statistics"]["sts"]["extra"]["mean"] == 1.0
    pickled = pickle.loads(open(config.results_pkl, "rb").read())
    assert list(pickled[1]["sts"]) == ["pearson", "loss"]


def test_results_of_other_hparams_are_not_mixed(files):
    files()[0].write([_record()])
    with pytest.raises(UserError, match="learning_rate: 0.0001 -> 0.5"):
        files(learning_rate=0.5)[0].earlier_trials()
    assert files(num_trials=7, log_every_n_steps=1)[0].earlier_trials()


@pytest.mark.parametrize("hparams", [{"overwrite": True}, {"do_train": False}])
def test_results_of_another_kind_of_run_are_put_aside(files, hparams):
    results, config = files()
    results.write([_record()])
    assert files(**hparams)[0].earlier_trials() == []
    for path in (config.results_txt, config.results_pkl, config.results_json):
        assert open(path + ".before", "rb").read()


def test_a_file_that_is_no_results_file_is_named(files):
    results, config = files()
    results.write([_record()])
    with open(config.results_json, "w") as file:
        file.write("[]")
    with pytest.raises(UserError, match="no results file"):
        results.earlier_trials()


@pytest.mark.parametrize(
    ("values", "rising_is_over", "falling_is_over"),
    [
        ([1.0, 2.0, 3.0], False, True),
        ([2.0, 3.0], False, False),
        ([3.0, 3.0, 3.0], True, True),  # As good is not better.
        ([], False, False),
    ],
)
def test_two_evaluations_without_a_better_figure_are_the_end(
    values, rising_is_over, falling_is_over
):
    def rows(values, name):
        return [
            {"step": step, name: value, "other": 0.0}
            for step, value in enumerate(values)
        ]

    assert patience_is_over(rows(values, "accuracy"), 2) == rising_is_over
    assert patience_is_over(rows(values[::-1], "mcc"), 2) == falling_is_over
    # Lower losses are better.
    losses = rows(values, "loss")
    assert patience_is_over(losses, 2, "loss") == falling_is_over
    assert not patience_is_over(losses, 0)
