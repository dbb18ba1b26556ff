# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import json
import time

import pytest
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
    board = TensorBoard(str(tmp_path), "train", 0)
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


def shown(directory):
    """What TensorBoard shows of `loss`, as (step, value)."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.plugin_event_accumulator"
    )
    reader = accumulator.EventAccumulator(str(directory)).Reload()
    return [
        (event.step, float(tf.make_ndarray(event.tensor_proto)))
        for event in reader.Tensors("loss")
    ]


def wait_for_the_next_second():
    """Event files are read in the order of the seconds in their names."""
    now = int(time.time())
    while int(time.time()) == now:
        time.sleep(0.02)


@pytest.mark.parametrize("resume_step", [0, 10])
def test_tensorboard_shows_a_continued_run_once(tmp_path, resume_step):
    steps = (5, 10, 15, 20)
    board = TensorBoard(str(tmp_path), "train", 0)
    for step in steps[:3]:
        board.write(step, {"loss": 1.0})
    wait_for_the_next_second()
    board = TensorBoard(str(tmp_path), "train", resume_step)
    for step in steps:
        if step > resume_step:
            board.write(step, {"loss": 2.0})
    assert shown(tmp_path / "tensorboard" / "train") == [
        (step, 2.0 if step > resume_step else 1.0) for step in steps
    ]


def test_runs_begun_by_earlier_versions_are_shown_once(tmp_path):
    path = str(tmp_path / "tensorboard" / "train")
    with tf.summary.create_file_writer(path).as_default():
        for step in (5, 10):
            tf.summary.scalar("loss", 1.0, step=step)
    wait_for_the_next_second()
    TensorBoard(str(tmp_path), "train", 5).write(10, {"loss": 2.0})
    assert shown(path) == [(5, 1.0), (10, 2.0)]
