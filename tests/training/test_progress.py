# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import io

import pytest

from electra_tf.training.summaries import Console, Progress, seconds_text


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
