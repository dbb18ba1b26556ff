# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is shown and written of a run."""

import io
import json
import pickle
import time

import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.training.summaries import (
    Console,
    JsonLines,
    Panel,
    Progress,
    TensorBoard,
    draw_curves,
    read_rows,
    seconds_text,
    write_results,
)


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


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0"),
        (0.4, "0"),
        (5, "5"),
        (59.6, "1:00"),
        (65, "1:05"),
        (600, "10:00"),
        (3600, "1:00:00"),
        (36005, "10:00:05"),
        (86400, "1 day, 0:00:00"),
        (200000, "2 days, 7:33:20"),
    ],
)
def test_durations_read_as_the_originals_do(seconds, text):
    assert seconds_text(seconds) == text


def test_the_line_has_the_originals_form():
    clock = Clock()
    progress = Progress(0, 200, clock)
    clock.now += 10
    assert progress.line(20, {"loss": "9.1000", "gen": "4"}) == (
        "20/200 = 10.0%, SPS: 2.0, ELAP: 10, ETA: 1:30 - loss: 9.1000 - gen: 4"
    )


def test_the_rate_leaves_the_first_step_out():
    clock = Clock()
    progress = Progress(0, 100, clock)
    clock.now += 60  # Tracing.
    progress.first_step_done(1)
    assert progress.timing(1, 50.0) == {
        "seconds": 60.0,
        "steps_per_second": None,
        "tokens_per_second": None,
    }
    clock.now += 10
    assert progress.timing(21, 50.0) == {
        "seconds": 70.0,
        "steps_per_second": 2.0,
        "tokens_per_second": 100.0,
    }
    assert progress.line(21, {}) == (
        "21/100 = 21.0%, SPS: 2.0, ELAP: 1:10, ETA: 40"
    )


def test_a_continued_run_counts_only_its_own_steps():
    clock = Clock()
    progress = Progress(50, 100, clock)
    clock.now += 5
    assert progress.line(60, {}).startswith("60/100 = 60.0%, SPS: 2.0")


def test_pauses_count_for_the_time_to_go_but_not_for_the_interval():
    clock = Clock()
    progress = Progress(0, 100, clock)
    clock.now += 5
    with progress.pause():
        clock.now += 5
    assert progress.timing(10, 1.0)["steps_per_second"] == 2.0
    assert "SPS: 1.0" in progress.line(10, {})


def test_tables_are_aligned():
    stream = io.StringIO()
    Console(stream).table({"a": 1, "long_name": "x"})
    assert stream.getvalue() == "a:         1\nlong_name: x\n"


PANELS = [
    Panel("Loss", train="loss", evaluation="loss"),
    Panel("AUC", evaluation="auc", baselines=(("rank", "rarity"),), chance=0.5),
    Panel("Never logged", train="missing"),
]


def test_a_picture_is_drawn_whatever_there_is(tmp_path):
    rows = [{"step": s, "loss": 10 / s} for s in range(1, 60)]
    evaluations = [{"step": 20, "loss": 1.0, "auc": None, "rank": 0.6}]
    for train_rows, eval_rows in (
        (rows, evaluations),
        (rows[:1], []),
        ([], []),
    ):
        path = draw_curves(
            str(tmp_path), PANELS, train_rows, eval_rows, "a run"
        )
        with open(path, "rb") as file:
            assert file.read(8) == b"\x89PNG\r\n\x1a\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_that_cannot_be_written_is_a_user_error(tmp_path):
    (tmp_path / "file").write_text("")
    inside_a_file = str(tmp_path / "file" / "r.txt")
    with pytest.raises(
        UserError, match="cannot be written.*checkpoints are safe"
    ):
        write_results(
            {},
            txt=inside_a_file,
            pkl=inside_a_file,
            json_path=inside_a_file,
            config={},
            step=1,
        )


def test_three_files_tell_the_same(tmp_path):
    metrics = {"b_loss": 0.5, "a_accuracy": 0.25}
    write_results(
        metrics,
        txt=str(tmp_path / "results" / "r.txt"),
        pkl=str(tmp_path / "results" / "r.pkl"),
        json_path=str(tmp_path / "results" / "r.json"),
        config={"seed": 1},
        step=7,
    )
    text = (tmp_path / "results" / "r.txt").read_text()
    assert text == "a_accuracy = 0.25\nb_loss = 0.5\n"
    read = pickle.loads((tmp_path / "results" / "r.pkl").read_bytes())
    assert read == {**metrics, "global_step": 7}
    record = json.loads((tmp_path / "results" / "r.json").read_text())
    assert record["metrics"] == metrics
    assert record["step"] == 7 and record["config"] == {"seed": 1}
    assert record["time"].endswith("+00:00")
    assert len(list((tmp_path / "results").iterdir())) == 3
