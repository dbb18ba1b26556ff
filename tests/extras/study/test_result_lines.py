# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lines of a study's results that were edited or damaged."""

import json
import re
import threading

import pytest

from electra_tf.extras.study.result_lines import (
    add_result_line,
    read_result_lines,
)
from electra_tf.files.atomic import atomic_file
from tests.conftest import refused

LINE = {
    "digest": "d",
    "results": {"accuracy": [71.5, None]},
    "collapsed": {"2": "bad"},
    "baselines": {"majority": {"accuracy": 50.0}},
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("digest", None),
        ("digest", 5),
        ("digest", []),
        ("digest", ""),
        ("results", None),
        ("results", []),
        ("results", {}),
        ("results", {"accuracy": 71.5}),
        ("results", {"accuracy": []}),
        ("results", {"accuracy": ["71.5"]}),
        ("results", {"accuracy": [True]}),
        ("results", {"accuracy": [[1]]}),
        ("results", {"accuracy": [float("nan")]}),
        ("results", {"accuracy": [10**400]}),
        ("collapsed", []),
        ("collapsed", {"1x": "bad"}),
        ("collapsed", {"\u0661": "bad"}),
        ("baselines", {"majority": 50.0}),
        ("baselines", {"majority": {"accuracy": "50"}}),
        ("inputs", []),
        ("inputs", {"vocab_file": 5}),
    ],
)
def test_a_line_with_another_type_is_named_by_field(tmp_path, field, value):
    path = tmp_path / "tiny.jsonl"
    lines = [LINE, LINE | {field: value}]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    words = rf"tiny.jsonl:2: {field} is .*; expected an? .* Restore the line"
    refused(words, read_result_lines, str(path))


@pytest.mark.parametrize("text", ["5", "[]", "null", "{", "", "[" * 100_000])
def test_a_line_that_is_no_object_is_named(tmp_path, text):
    path = tmp_path / "tiny.jsonl"
    path.write_text(f"{json.dumps(LINE)}\n{text}\n")
    refused(re.escape(f"{path}:2"), read_result_lines, str(path))


@pytest.mark.parametrize(
    "change",
    [
        {"results": {"accuracy": [71.5, 70.0]}},
        {"seconds": 9},
        {"baselines": {}},
    ],
)
def test_different_lines_of_a_digest_are_refused(tmp_path, change):
    path = tmp_path / "tiny.jsonl"
    lines = [LINE, LINE | {"digest": "e"}, LINE, LINE | change]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    message = (
        "tiny.jsonl: lines 1 and 4 differ, but both have the digest d; expected"
        " .* Keep one of these lines"
    )
    refused(message, read_result_lines, str(path))


def test_a_repeated_line_counts_once(tmp_path):
    path = tmp_path / "tiny.jsonl"
    path.write_text(f"{json.dumps(LINE)}\n" * 3)
    assert read_result_lines(str(path)) == {"d": LINE}


def test_lines_are_read_by_digest(tmp_path):
    path = tmp_path / "tiny.jsonl"
    earlier = {"digest": "e", "results": {"loss": [1]}}
    path.write_text(f"{json.dumps(LINE)}\n{json.dumps(earlier)}\n")
    assert read_result_lines(str(path)) == {"d": LINE, "e": earlier}
    assert read_result_lines(str(tmp_path / "none.jsonl")) == {}


NEW = {"digest": "n", "results": {"loss": [2]}}


def test_an_added_line_keeps_the_lines_that_the_file_has_now(tmp_path):
    path = tmp_path / "tiny.jsonl"
    path.write_text(f"{json.dumps(LINE)}\n")
    lines = add_result_line(str(path), NEW)
    assert lines == ({"d": LINE, "n": NEW}, "")
    assert path.read_text() == f"{json.dumps(LINE)}\n{json.dumps(NEW)}\n"


def test_an_added_line_replaces_an_earlier_line_of_its_run(tmp_path):
    path = tmp_path / "tiny.jsonl"
    path.write_text(f"{json.dumps(NEW | {'seconds': 9})}\n{json.dumps(LINE)}\n")
    add_result_line(str(path), NEW)
    assert path.read_text() == f"{json.dumps(NEW)}\n{json.dumps(LINE)}\n"


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_line_is_appended_to_a_damaged_file(tmp_path, end):
    path = tmp_path / "tiny.jsonl"
    damaged = f"{json.dumps(LINE)}\n<<<<<<< HEAD"
    path.write_text(damaged + end)
    lines, damage = add_result_line(str(path), NEW)
    assert lines == {"n": NEW} and f"{path}:2" in damage
    assert path.read_text() == f"{damaged}\n{json.dumps(NEW)}\n"


def test_two_studies_that_add_lines_wait_for_each_other(tmp_path):
    path = tmp_path / "tiny.jsonl"
    thread = threading.Thread(target=add_result_line, args=(str(path), NEW))
    with atomic_file(str(path)) as file:
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        file.write(f"{json.dumps(LINE)}\n".encode())
    thread.join(60)
    assert read_result_lines(str(path)) == {"d": LINE, "n": NEW}
