# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Results and predictions: written whole, read back, never lost."""

import io
import json
import math
import pathlib
import pickle
import types

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.files import write_atomically
from electra_tf.finetuning.runner import ResultsFiles, TrialRecord
from electra_tf.finetuning.trial import (
    patience_is_over,
    write_test_outputs,
)
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


def test_a_file_that_is_no_results_file_is_named(files):
    results, config = files()
    results.write([_record()])
    with open(config.results_json, "w") as file:
        file.write("[]")
    with pytest.raises(UserError, match="no results file"):
        results.earlier_trials()


@pytest.mark.parametrize(
    ("values", "is_over"),
    [
        ([1.0, 2.0, 3.0], False),
        ([2.0, 3.0], False),
        ([3.0, 2.0, 1.0], True),
        ([3.0, 3.0, 3.0], True),  # As good is not better.
        ([], False),
    ],
)
def test_two_evaluations_without_a_better_figure_are_the_end(values, is_over):
    rows = [{"step": 1, "accuracy": value, "other": 0.0} for value in values]
    assert patience_is_over(rows, 2) == is_over
    assert not patience_is_over(rows, 0)
    # Lower losses are better.
    losses = [{"step": 1, "loss": -value} for value in values]
    assert patience_is_over(losses, 2, "loss") == is_over


class Task:
    """A task with a test set and a set that is not there."""

    name = "mine"
    get_test_splits = staticmethod(lambda: ["test", "diagnostic"])
    has_split = staticmethod("test".__eq__)
    get_scorer = staticmethod(lambda split: None)


def test_rows_have_what_the_original_wrote_in_order_of_ids(finetuning_config):
    def written(name, *rows):
        stream = io.StringIO()
        evaluator = types.SimpleNamespace(
            predict=lambda task, split, take: [take(row) for row in rows],
            write=write_atomically,
        )
        config = finetuning_config(name)
        write_test_outputs(config, evaluator, Task(), 3, Console(stream))
        path = config.test_predictions("mine", "test", 3)
        assert path.endswith("mine_test_3_predictions.pkl")
        assert "there is no diagnostic split" in stream.getvalue()
        return pickle.loads(pathlib.Path(path).read_bytes())

    rows = [{"eid": i, "logits": np.array([i, 1.0])} for i in (4, 0, 2)]
    found = written("cola", *rows)
    assert list(found) == [0, 2, 4]
    np.testing.assert_array_equal(found[2], [2.0, 1.0])
    # Numbers are as they were trained on, not in the task's own range.
    row = {"eid": 0, "predictions": np.float32(0.5), "targets": 0.0}
    assert written("sts", row) == {0: 0.5}
    # Words have a label each.
    row = {
        "eid": 0,
        "logits": np.zeros([4, 3]),
        "predictions": np.array([2, 1, 0, 0]),
        "labels_mask": np.array([1.0, 1.0, 0.0, 0.0]),
    }
    np.testing.assert_array_equal(written("chunk", row)[0], [2, 1])
