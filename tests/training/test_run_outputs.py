# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The console output, logs and plots of a run."""

import json
import time

import pytest

from electra_tf.training.console import Progress, seconds_text
from electra_tf.training.curves import Panel, draw_curves
from electra_tf.training.logs import Log, read_rows
from tests.training.conftest import shown


def test_rows_past_the_restored_step_and_cut_lines_are_removed(tmp_path):
    path = tmp_path / "train_log.jsonl"
    log = Log(str(tmp_path), "train", 0)
    for step in (1, 5, 10, 15):
        log.write(step, {"loss": step / 10})
    with path.open("a") as file:
        file.write('{"step": 5, "lo')
    resumed = Log(str(tmp_path), "train", 10)
    assert [row["step"] for row in resumed.rows] == [1, 5, 10]
    resumed.write(15, {"loss": 1.5, "auc": float("nan")})
    rows = [{"step": step, "loss": step / 10} for step in (1, 5, 10, 15)]
    rows[-1]["auc"] = None
    assert [json.loads(line) for line in path.read_text().splitlines()] == rows
    assert read_rows(str(path)) == rows


@pytest.mark.parametrize(
    "line",
    [
        '{"step": true, "loss": 1.0}',
        '{"step": -1, "loss": 1.0}',
        '{"step": 2.0, "loss": 1.0}',
        '{"step": 2, "loss": 1e999}',
        f'{{"step": 2, "loss": {10**400}}}',
        '{"step": 2, "loss": true}',
        '{"step": 2, "loss": [1.0]}',
        '{"loss": 1.0}',
        '[{"step": 2}]',
        '"step"',
        "2",
    ],
)
def test_lines_that_are_no_rows_are_skipped_with_a_warning(tmp_path, line):
    path, warnings = tmp_path / "train_log.jsonl", []
    path.write_text(f'{{"step": 1, "loss": null}}\n{line}\n')
    rows = read_rows(str(path), warnings.append)
    assert rows == [{"step": 1, "loss": None}]
    assert len(warnings) == 1 and f"{path}:2: skipping" in warnings[0]


@pytest.mark.parametrize("resume_step", [0, 10])
def test_tensorboard_shows_a_continued_run_once(tmp_path, resume_step):
    steps = (5, 10, 15, 20)
    board = Log(str(tmp_path), "train", 0)
    for step in steps[:3]:
        board.write(step, {"loss": 1.0, "count": 3, "rate": None})
    # Event files are read in the order of the seconds in their names.
    now = int(time.time())
    while int(time.time()) == now:
        time.sleep(0.02)
    board = Log(str(tmp_path), "train", resume_step)
    for step in steps:
        if step > resume_step:
            board.write(step, {"loss": 2.0, "count": 3, "rate": None})
    path = tmp_path / "tensorboard" / "train"
    assert shown(path) == [(s, 2.0 if s > resume_step else 1.0) for s in steps]
    assert shown(path, "count") == [(step, 3.0) for step in steps]
    with pytest.raises(KeyError):  # A None is not written.
        shown(path, "rate")


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(
    ("start", "head"),
    [
        (0, "20/200 = 10.0%, SPS: 2.0, ELAP: 10, ETA: 1:30"),
        # A continued run counts only its own steps.
        (10, "20/200 = 10.0%, SPS: 1.0, ELAP: 10, ETA: 3:00"),
    ],
)
def test_lines_and_durations_have_the_originals_form(start, head):
    clock = Clock()
    progress = Progress(start, 200, clock)
    clock.now += 10
    numbers = {"loss": "9.1000", "gen": "4"}
    assert progress.line(20, numbers) == f"{head} - loss: 9.1000 - gen: 4"
    actual = [seconds_text(number) for number in (0.4, 59.6, 36005, 200000)]
    assert actual == ["0", "1:00", "10:00:05", "2 days, 7:33:20"]


def test_the_rate_leaves_the_first_step_out_and_pauses_of_intervals():
    clock = Clock()
    progress = Progress(0, 100, clock)
    clock.now += 60  # seconds of tracing
    progress.first_step_done(1)
    assert list(progress.timing(1, 50.0).values()) == [60.0, None, None]
    clock.now += 5
    with progress.pause():
        clock.now += 5
    assert progress.timing(21, 50.0) == {
        "seconds": 70.0,
        "steps_per_second": 4.0,
        "tokens_per_second": 200.0,
    }
    # The remaining time (ETA) includes the pauses.
    line = "21/100 = 21.0%, SPS: 2.0, ELAP: 1:10, ETA: 40"
    assert progress.line(21, {}) == line


ROWS = [{"step": s, "loss": 10 / s} for s in range(1, 60)]
EVALUATIONS = [{"step": 20, "loss": 1.0, "auc": None, "rank": 0.6}]


@pytest.mark.parametrize(
    ("rows", "evaluations"),
    [(ROWS, EVALUATIONS), (ROWS[:1], []), ([], [])],
    ids=["many", "one_row", "none"],
)
def test_a_picture_is_drawn_of_any_count_of_rows(tmp_path, rows, evaluations):
    panels = [
        Panel("Loss", train="loss", evaluation="loss"),
        Panel("AUC", evaluation="auc", baselines=(("rank", "x"),), chance=0.5),
        Panel("Never logged", train="missing"),
    ]
    path = draw_curves(str(tmp_path), panels, rows, evaluations, "a run")
    with open(path, "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"
    assert len(list(tmp_path.iterdir())) == 1
