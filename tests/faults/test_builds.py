# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds that are killed, and builds on a full disk."""

import resource
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT
from tests.data.conftest import corpus_dir, vocab_file  # noqa: F401


@pytest.fixture
def command(tmp_path, vocab_file, corpus_dir):
    text = (corpus_dir / "text_0.txt").read_text()
    for name in "abcd":
        (corpus_dir / name).write_text(text * 20)
    return [
        *(sys.executable, str(ROOT / "build_pretraining_dataset.py")),
        *("--corpus-dir", str(corpus_dir), "--vocab-file", vocab_file),
        *("--output-dir", str(tmp_path / "out"), "--num-processes=3"),
        *("--num-shards=6", "--max-seq-length=32"),
    ]


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def _is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def _run(command, output):
    command[command.index("--output-dir") + 1] = str(output)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _wait_for(found, seconds=30):
    until = time.monotonic() + seconds
    while not (value := found()) and time.monotonic() < until:
        time.sleep(0.01)
    return value


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent(command, tmp_path, number):
    _run(command, tmp_path / "undisturbed")
    command[command.index("--output-dir") + 1] = str(tmp_path / "killed")
    parent = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    written = tmp_path / "killed" / ".tmp-pretrain_data.tfrecord-5-of-6"
    assert _wait_for(written.exists)
    workers = _children(parent.pid)
    assert len(workers) == 3
    parent.send_signal(number)
    parent.wait()
    assert _wait_for(lambda: not any(map(_is_running, workers)), 2)
    _run(command, tmp_path / "killed")
    undisturbed, again = (
        {p.name: p.read_bytes() for p in (tmp_path / n).glob("*tfrecord*")}
        for n in ("undisturbed", "killed")
    )
    assert again == undisturbed
    assert not list((tmp_path / "killed").glob(".tmp-*"))


def test_a_full_disk_ends_a_build_with_a_message(command, tmp_path):
    def small_files():  # the nearest to a full disk that a test can make
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    failed = subprocess.run(
        command, preexec_fn=small_files, capture_output=True, text=True
    )
    assert failed.returncode == 1
    (line,) = failed.stderr.splitlines()
    assert line.startswith(f"error: {tmp_path / 'out'}: File too large")
    assert "free space" in line
    assert not list((tmp_path / "out").glob("pretrain_data*"))
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert len(list((tmp_path / "out").glob("pretrain_data*"))) == 6
