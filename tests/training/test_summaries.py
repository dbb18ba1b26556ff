# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import json

import tensorflow as tf

from electra_tf.training.summaries import JsonLines, TensorBoard, read_rows


def test_rows_past_the_restored_step_are_removed(tmp_path):
    path = str(tmp_path / "log.jsonl")
    log = JsonLines(path, 0)
    for step in (1, 5, 10, 15):
        log.write(step, {"loss": step / 10})
    resumed = JsonLines(path, 10)
    assert [row["step"] for row in resumed.rows] == [1, 5, 10]
    resumed.write(15, {"loss": 1.5})
    assert read_rows(path) == [
        {"step": step, "loss": step / 10} for step in (1, 5, 10, 15)
    ]


def test_a_line_cut_off_in_writing_is_dropped(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1, "loss": 2.0}\n{"step": 5, "lo')
    assert JsonLines(str(path), 100).rows == [{"step": 1, "loss": 2.0}]
    assert path.read_text() == '{"step": 1, "loss": 2.0}\n'


def test_numbers_that_are_not_finite_become_null(tmp_path):
    path = tmp_path / "log.jsonl"
    JsonLines(str(path), 0).write(1, {"auc": float("nan"), "n": 3})
    assert json.loads(path.read_text()) == {"step": 1, "auc": None, "n": 3}


def test_tensorboard_gets_every_number(tmp_path):
    board = TensorBoard(str(tmp_path), "train")
    board.write(5, {"loss": 2.5, "count": 3, "rate": None})
    (path,) = (tmp_path / "tensorboard" / "train").iterdir()
    found = {}
    for event in tf.compat.v1.train.summary_iterator(str(path)):
        for value in event.summary.value:
            found[value.tag] = (
                event.step,
                float(tf.make_ndarray(value.tensor)),
            )
    assert found == {"loss": (5, 2.5), "count": (5, 3.0)}
