# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Apache Beam as the runner of a build."""

import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from configure.errors import UserError
from electra_tf import files
from electra_tf.data import example_writer

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETTINGS = {"draws": "document", "num_processes": 2, "num_shards": 16}
HERE = "--direct_running_mode=in_memory --direct_num_workers=1"


@pytest.fixture
def beam(monkeypatch):
    pytest.importorskip("apache_beam", reason="no extra beam")
    monkeypatch.setattr("electra_tf.data.build._SMALLEST_PIECE", 4000)
    from electra_tf.data import beam

    return beam


def _records(folder, prefix="pretrain_data"):
    names = [n for n in files.list_directory(folder) if n.startswith(prefix)]
    return collections.Counter(
        payload
        for name in names
        for payload in example_writer.read_records(f"{folder}/{name}")
    )


@pytest.mark.slow
def test_beam_writes_the_plain_builders_examples_and_manifest(beam, build):
    plain = build("plain", held_out_fraction=0.1, **SETTINGS)
    made = build("beam", held_out_fraction=0.1, runner="beam", **SETTINGS)
    for prefix in ("pretrain_data", "eval_data"):
        folders = [str(build.tmp_path / name) for name in ("plain", "beam")]
        first, second = (_records(folder, prefix) for folder in folders)
        assert first == second and len(first) > 10
    assert made["num_jobs"] > 8 and made.pop("jobs") != {}
    assert made == {n: v for n, v in plain.items() if n != "jobs"}
    assert not list((build.tmp_path / "beam").glob(".tmp-*"))


@pytest.mark.parametrize("draws", ["stream", "document"])
def test_with_other_workers_and_a_remote_output(beam, build, draws):
    settings = {**SETTINGS, "draws": draws}
    plain = build("plain", **settings)
    output = f"ram://beam_{draws}"
    settings |= {"runner": "beam", "beam_options": HERE}
    if draws == "document":
        settings["num_processes"] = 1
    made = build("unused", output_dir=output, **settings)
    assert made["counts"] == plain["counts"]
    assert _records(output) == _records(str(build.tmp_path / "plain"))


def test_a_failed_job_is_a_message_and_a_rerun_goes_on(
    beam, build, monkeypatch
):
    settings = {**SETTINGS, "runner": "beam", "beam_options": HERE}
    real, tried = example_writer.ExampleWriter.finish, []

    def failing(self):
        tried.append(self)
        if self.training.shards._names[0].endswith("-1-of-16"):
            raise OSError(28, "No space left on device")
        return real(self)

    monkeypatch.setattr(example_writer.ExampleWriter, "finish", failing)
    message = r"No space left.*free space[^$]*1 of \d+ jobs failed.*command"
    with pytest.raises(UserError, match=message):
        build("out", **settings)
    manifest = json.loads((build.tmp_path / "out/manifest.json").read_text())
    assert manifest["num_jobs"] == len(manifest["jobs"]) + 1 == len(tried)
    monkeypatch.setattr(example_writer.ExampleWriter, "finish", real)
    made = build("out", **settings)
    assert any(line.startswith("Continuing:") for line in build.said)
    assert made["counts"] == build("plain", **SETTINGS)["counts"]


def test_what_workers_finished_for_a_killed_command_counts(
    beam, build, monkeypatch
):
    settings = {**SETTINGS, "runner": "beam", "beam_options": HERE}
    run = beam._run_here

    def killed(pipeline):
        run(pipeline)
        raise KeyboardInterrupt

    monkeypatch.setattr(beam, "_run_here", killed)
    with pytest.raises(KeyboardInterrupt):
        build("out", **settings)
    path = build.tmp_path / "out" / "manifest.json"
    assert not json.loads(path.read_text())["jobs"]
    monkeypatch.setattr(beam, "_run_here", None)  # nothing is left to run
    plain = build("plain", **SETTINGS)
    assert build("out", **settings)["counts"] == plain["counts"]
    with pytest.raises(UserError, match="another build:\n  seed"):
        build("out", seed=1, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["it starts", "it works"])
def test_a_worker_killed_is_a_message_and_the_command_goes_on(
    beam, tmp_path, vocab_file, corpus_dir, moment
):
    lines = "".join(p.read_text() for p in sorted(corpus_dir.iterdir()))
    (tmp_path / "in").mkdir()
    for number in range(8):
        (tmp_path / f"in/{number}.txt").write_text(lines * 4)
    command = [sys.executable, str(ROOT / "build_pretraining_dataset.py")]
    command += [f"--corpus-dir={tmp_path}/in", f"--vocab-file={vocab_file}"]
    command += [f"--output-dir={tmp_path}/out", "--max-seq-length=32"]
    command += ["--runner=beam", "--num-processes=2", "--draws=document"]
    said = tmp_path / "said"
    with open(said, "w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, cwd=ROOT)
    try:
        while not (workers := _beam_workers(process.pid)):
            assert process.poll() is None, said.read_text()
            time.sleep(0.01)
        while moment == "it works" and not list(tmp_path.glob("out/.tmp-*")):
            assert process.poll() is None, said.read_text()
            time.sleep(0.01)
        os.kill(workers[-1], signal.SIGKILL)
        assert process.wait(60) == 1
    finally:
        process.kill()
    text = said.read_text()
    assert re.search(r"error: Beam.s run ended: .*Worker subprocess", text)
    assert "run the same command again" in text
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not _beam_workers(process.pid)


def _beam_workers(parent):
    """Numbers of the command's workers: shells, and what they run."""
    listed = subprocess.run(
        ["ps", "-wweo", "pid,ppid,args"], capture_output=True, text=True
    )
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()[1:]]
    family, found = {parent}, []
    for pid, above, what in rows:
        if int(above) in family:
            family.add(int(pid))
            found += [int(pid)] * ("sdk_worker_main" in what)
    return found


@pytest.mark.parametrize(
    "flags, message",
    [
        ("--runer=DirectRunner", "knows no --runer=DirectRunner"),
        ("--runner=NoRunner", "runner: NoRunner"),
        ("--runner=Dataflow --direct_num_workers=two", "workers: invalid int"),
        ("--runner=DataflowRunner", "project"),
        ("runner=DirectRunner", "knows no runner=DirectRunner"),
        ("--runner='DirectRunner", "quotation"),
    ],
)
def test_bad_flags_of_beam_are_named(beam, build, flags, message):
    with pytest.raises(UserError, match=message):
        build("out", runner="beam", beam_options=flags)
    assert not (build.tmp_path / "out").exists()


def test_flags_that_a_job_server_may_know_pass(beam, build):
    options = example_writer.BuildOptions(
        *(None, "", ""), beam_options="--runner=FlinkRunner --object_reuse=true"
    )
    beam.open_pipeline(options)


def test_a_missing_beam_is_a_message(build, monkeypatch):
    monkeypatch.delitem(sys.modules, "electra_tf.data.beam", raising=False)
    monkeypatch.delattr("electra_tf.data.beam", raising=False)
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(UserError, match="electra_tf.beam"):
        build("out", runner="beam")
