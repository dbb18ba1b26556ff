# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Programs whose standard output or error is lost while they run."""

import io
import os
import subprocess
import sys

import pytest

from configure import output
from tests.conftest import ROOT

PROGRAM = """
import os, sys
from configure import flags
def main(parsed):
    for number in range(3):
        print("line", number, flush={flush})
        print("note", number, file=sys.stderr)
    with open(os.environ["END"], "w") as file:
        file.write(str(file.fileno()))
    return 7
flags.run_program(main, flags.FlagParser(), is_log={is_log})
"""


@pytest.fixture
def run(tmp_path):
    """Run a program whose output is lost; return status, errors, file."""

    def call(lost, is_log, flush=True):
        reader, writer = os.pipe()
        os.close(reader)
        full = open("/dev/full", "w")
        closed = {"closed": (1,), "closed_both": (1, 2), "closed_error": (2,)}
        streams = {
            "reader_left": {"stdout": writer},
            "both_readers_left": {"stdout": writer, "stderr": writer},
            "full": {"stdout": full},
            "full_both": {"stdout": full, "stderr": full},
        }
        settings = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        settings |= streams.get(lost, {})
        end = tmp_path / "end"
        code = PROGRAM.format(flush=flush, is_log=is_log)
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "END": str(end), "PYTHONUNBUFFERED": ""},
            cwd=ROOT,
            preexec_fn=lambda: [os.close(n) for n in closed.get(lost, ())],
            **settings,
        )
        os.close(writer)
        full.close()
        errors = (done.stderr or b"").decode()
        assert "Traceback" not in errors
        assert "Exception ignored" not in errors
        reached = end.read_text() if end.exists() else None
        return done.returncode, errors, reached

    return call


LOST = ["reader_left", "full", "closed"]
BOTH = ["both_readers_left", "full_both", "closed_both", "closed_error"]


@pytest.mark.parametrize("flush", [True, False])
@pytest.mark.parametrize("lost", LOST + BOTH)
def test_a_program_that_logs_continues_to_its_own_status(run, lost, flush):
    status, errors, reached = run(lost, is_log=True, flush=flush)
    assert status == 7 and reached
    # A file of the program must not get the number of a standard stream.
    assert int(reached) > 2
    if lost in ("reader_left", "full"):
        assert "standard output cannot be written" in errors
        assert flush is False or "note 2" in errors


@pytest.mark.parametrize(
    ("lost", "message"),
    [
        ("reader_left", ""),
        ("full", "error: standard output cannot be written: the disk is full"),
        ("closed", "error: standard output is closed"),
    ],
)
def test_a_program_with_results_ends_with_a_message(run, lost, message):
    status, errors, reached = run(lost, is_log=False)
    assert status == 1 and reached is None
    assert message in errors


@pytest.mark.parametrize("lost", ["reader_left", "full"])
def test_results_that_are_lost_at_the_end_are_a_failure(run, lost):
    status, _, reached = run(lost, is_log=False, flush=False)
    assert status == 1 and reached


def test_buffered_text_is_discarded_after_a_failure():
    reader, writer = os.pipe()
    os.close(reader)
    raw = os.fdopen(writer, "w")
    stream = output.LastingStream(raw, "a pipe")
    lengths = []
    for _ in range(3):
        lengths.append(stream.write("text"))
        stream.flush()
    assert lengths == [4, 4, 4]
    raw.close()  # `close` flushes, too.


def test_a_text_that_cannot_be_encoded_is_still_an_error():
    raw = io.TextIOWrapper(io.BytesIO(), "ascii")
    stream = output.LastingStream(raw, "a file")
    with pytest.raises(UnicodeEncodeError):
        stream.write("é")
    raw.close()
    stream.write("closed")  # raises nothing


def test_a_slow_reader_loses_only_one_text():
    texts = []

    class Slow(io.StringIO):
        def write(self, text):
            if not texts:
                texts.append("")
                raise BlockingIOError
            texts.append(text)

    stream = output.LastingStream(Slow(), "a pipe")
    stream.write("a")
    stream.write("b")
    assert texts == ["", "b"]
