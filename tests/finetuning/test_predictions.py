# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predictions on test sets: what is written, and in which units."""

import io
import json
import pathlib
import pickle
import types

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.finetuning import scoring
from electra_tf.finetuning.scoring import write_test_outputs
from electra_tf.metrics.question_answering import SpanScorer
from electra_tf.training.summaries import Console


class Evaluator:
    """Gives fixed outputs."""

    def __init__(self, rows):
        self._rows = rows

    def predict(self, task, split, take):
        for row in self._rows:
            take(row)


class Task:
    """A task with a test set and a set that is not there."""

    name = "mine"

    def __init__(self, scorer=None):
        self._scorer = scorer

    def get_test_splits(self):
        return ["test", "diagnostic"]

    def has_split(self, split):
        return split == "test"

    def get_scorer(self, split):
        return self._scorer


def _write(config, rows, task):
    stream = io.StringIO()
    paths = write_test_outputs(
        config, Evaluator(rows), task, 3, Console(stream)
    )
    (path,) = map(pathlib.Path, paths)
    assert path.name == "mine_test_3_predictions.pkl"
    assert "there is no diagnostic split" in stream.getvalue()
    return path.read_bytes()


def test_classes_have_their_logits_in_the_order_of_ids(finetuning_config):
    rows = [{"eid": i, "logits": np.array([i, 1.0])} for i in (4, 0, 2)]
    found = pickle.loads(_write(finetuning_config("cola"), rows, Task()))
    assert list(found) == [0, 2, 4]
    np.testing.assert_array_equal(found[2], [2.0, 1.0])


def test_numbers_are_in_the_task_s_own_range(finetuning_config):
    task = Task()
    task.unscale = lambda value: 5 * value
    rows = [{"eid": 0, "predictions": np.float32(0.5), "targets": 0.0}]
    found = pickle.loads(_write(finetuning_config("sts"), rows, task))
    assert found == {0: 2.5}


def test_words_have_a_label_each(finetuning_config):
    row = {
        "eid": 0,
        "logits": np.zeros([4, 3]),
        "predictions": np.array([2, 1, 0, 0]),
        "labels_mask": np.array([1.0, 1.0, 0.0, 0.0]),
    }
    found = pickle.loads(_write(finetuning_config("chunk"), [row], Task()))
    np.testing.assert_array_equal(found[0], [2, 1])


def test_questions_have_their_answers(finetuning_config):
    class Scorer:
        seen = 0

        def update(self, row):
            self.seen += 1

        def answer(self):
            assert self.seen == 2

        def final_answers(self):
            return {"q1": "Paris", "q2": ""}

    found = _write(finetuning_config("cola"), [{}, {}], Task(Scorer()))
    assert json.loads(found) == {"q1": "Paris", "q2": ""}


def test_answers_to_a_test_set_leave_those_of_the_dev_set(finetuning_config):
    config = finetuning_config("mine")
    example = types.SimpleNamespace(key="q", answers=(), doc_tokens=[])
    scorer = SpanScorer(config, "mine", "squad2", [example], lambda _: [])
    for kind in ("preds", "null_odds"):
        path = pathlib.Path(config.qa_file("mine", kind))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("of the dev set")
    before = _files(config)
    assert json.loads(_write(config, [], Task(scorer))) == {"q": ""}
    after = _files(config)
    (new,) = set(after) - set(before)
    assert new.endswith("mine_test_3_predictions.pkl")
    assert {name: after[name] for name in before} == before


def test_an_evaluation_writes_what_its_scorer_leaves(finetuning_config):
    config = finetuning_config("mine")
    example = types.SimpleNamespace(key="q", answers=("a",), doc_tokens=[])
    scorer = SpanScorer(config, "mine", "squad2", [example], lambda _: [])
    scorer.get_loss = lambda: 0.0

    class Fixed(scoring.Evaluator):
        def __init__(self):
            self._config = config

        def score(self, task, split):
            scorer._updated = True
            return scorer

    Fixed().evaluate_task(Task(), "dev")
    written = {pathlib.Path(p).name: v for p, v in _files(config).items()}
    names = ("preds", "nbest", "null_odds", "eval")
    assert set(written) == {f"mine_{name}.json" for name in names}
    assert written["mine_preds.json"] == b'{"q": "empty"}'


def _files(config):
    directory = pathlib.Path(config.data_dir)
    return {
        str(path): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("single", "words"),
    [
        ("", "every prediction is that there is no answer"),
        ("Paris", "every prediction is 'Paris'"),
        (1, "every prediction is 1"),
        (None, None),
    ],
)
def test_a_collapse_is_told_in_words(single, words):
    scorer = types.SimpleNamespace(single_prediction=lambda: single)
    assert scoring._collapse(Task(), scorer) == words


def test_padding_rows_are_left_out_and_tasks_told_apart():
    def compute(features, seed, training):
        return {
            "total_loss": tf.reduce_sum(features["x"]),
            "task_id": features["task_id"],
            "a": {"double": features["x"] * 2},
            "b": {"half": features["x"] / 2},
        }

    loop = scoring.PredictLoop(
        task_names=("a", "b"),
        batch_size=2,
        compute=compute,
        seed=0,
        strategy=tf.distribute.get_strategy(),
    )
    rows = {
        "x": np.array([1, 2, 3, 4, 0, 0], np.float32),
        "task_id": np.array([0, 1, 0, 0, 2, 2], np.int32),
    }
    taken = []
    for _ in range(2):  # Twice: one graph serves all data sets.
        loop.predict(
            tf.data.Dataset.from_tensor_slices(rows).batch(2),
            lambda task, row: taken.append((task, row)),
        )
    expected = [
        ("a", {"double": 2.0}),
        ("b", {"half": 1.0}),
        ("a", {"double": 6.0}),
        ("a", {"double": 8.0}),
    ]
    assert taken == expected * 2
