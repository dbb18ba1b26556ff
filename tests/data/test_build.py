# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds by one process, several processes, Beam and the two programs."""

import collections
import dataclasses
import filecmp
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time

import pytest

from electra_tf.data import build as building
from electra_tf.data import build_options, jobs, tfrecords
from electra_tf.data.manifest import listed_shards
from electra_tf.files import filesystem
from electra_tf.files.locks import folder_lock
from tests.conftest import ROOT, read_json, refused


def _payloads(folder, prefix="pretrain_data"):
    """Return the records of a directory, file after file."""
    payloads = []
    for name in sorted(filesystem.list_directory(str(folder))):
        if name.startswith(f"{prefix}.tfrecord-"):
            payloads += tfrecords.read_records(f"{folder}/{name}")
    return payloads


def _multiset(folder, prefix="pretrain_data"):
    return collections.Counter(_payloads(folder, prefix))


def _num_tokens(folder, prefix="pretrain_data"):
    count = 0
    for payload in _payloads(folder, prefix):
        ids = tfrecords.decode_example(payload)["input_ids"]
        count += sum(number >= 5 for number in ids)
    return count


def test_a_stream_worker_equals_a_build_of_its_own_files(build, corpus_dir):
    build("both", num_processes=2, num_shards=2, seed=7)
    second = sorted(corpus_dir.iterdir())[1]
    build("alone", {"path": str(second)}, num_shards=1, seed=8)
    alone, both = build.tmp_path / "alone", build.tmp_path / "both"
    (both / "pretrain_data.tfrecord-0-of-2").unlink()
    assert _payloads(both) == _payloads(alone) != []


@pytest.mark.parametrize("settings", [{}, {"num_processes": 2}])
def test_the_same_seed_gives_the_same_bytes(build, settings):
    for name in ("a", "b"):
        build(name, seed=3, held_out_fraction=0.2, **settings)
    build("c", seed=4, held_out_fraction=0.2, **settings)
    contents = []
    for name in "abc":
        paths = (build.tmp_path / name).glob("*tfrecord*")
        contents.append({path.name: path.read_bytes() for path in paths})
    assert contents[0] == contents[1] and contents[0] != contents[2]


def test_document_draws_are_the_same_for_any_workers(build, monkeypatch):
    monkeypatch.setattr("electra_tf.data.jobs._SMALLEST_PIECE", 1000)
    results = []
    for name, processes, shards in (("a", 1, 1), ("b", 2, 4), ("c", 3, 64)):
        workers = {"num_processes": processes, "num_shards": shards}
        manifest = build(
            name, draws="document", held_out_fraction=0.1, **workers
        )
        folder = build.tmp_path / name
        held_out = _multiset(folder, "eval_data")
        results.append((_multiset(folder), held_out, manifest["counts"]))
    assert results[0] == results[1] == results[2] and len(results[0][1]) > 10


def test_counts_add_up(build):
    manifest = build("out", held_out_fraction=0.3)
    counts, folder = manifest["counts"], build.tmp_path / "out"
    assert counts["examples"] == len(_payloads(folder))
    assert counts["held_out_examples"] == len(_payloads(folder, "eval_data"))
    assert counts["documents"] + counts["held_out_documents"] == 553
    assert 100 < counts["held_out_documents"] < 240
    num_tokens = _num_tokens(folder) + _num_tokens(folder, "eval_data")
    assert counts["tokens"] == num_tokens + counts["tokens_dropped"]
    assert counts["tokens_dropped"] > 0
    assert manifest == read_json(folder / "manifest.json")


def test_the_manifest_lists_sizes_and_records_of_all_files(build):
    manifest = build("out", held_out_fraction=0.3)
    shards = listed_shards(manifest)
    actual = {}
    for path in (build.tmp_path / "out").glob("*.tfrecord*"):
        num_records = len(list(tfrecords.read_records(str(path))))
        actual[path.name] = {
            "name": path.name,
            "records": num_records,
            "bytes": path.stat().st_size,
        }
    assert shards == actual and len(shards) == 5


def test_held_out_documents_are_missing_from_the_training_records(build):
    build("with", draws="document", held_out_fraction=0.3)
    build("without", draws="document")
    whole = _multiset(build.tmp_path / "without")
    parts = _multiset(build.tmp_path / "with")
    assert parts + _multiset(build.tmp_path / "with", "eval_data") == whole


@pytest.mark.parametrize("draws", ["stream", "document"])
def test_an_interrupted_build_continues(build, monkeypatch, draws):
    settings = {"draws": draws, "num_processes": 2}
    build("whole", **settings)
    real = building.ExampleWriter.write

    def failing(self, *args):
        if self.training.shards._names[0].endswith("-1-of-4"):
            raise KeyboardInterrupt
        return real(self, *args)

    # Jobs run in this process, where the methods are patched.
    run_jobs = building.run_jobs

    def in_line(runner, jobs, on_done):
        options = dataclasses.replace(runner.options, num_processes=1)
        run_jobs(building.RecordJobRunner(options), jobs, on_done)

    monkeypatch.setattr(building, "run_jobs", in_line)
    monkeypatch.setattr(building.ExampleWriter, "write", failing)
    with pytest.raises(KeyboardInterrupt):
        build("cut", **settings)
    folder = build.tmp_path / "cut"
    done = sorted(folder.glob("pretrain_data.tfrecord-*"))
    stamps = [path.stat().st_mtime_ns for path in done]
    assert done and list(folder.glob(".tmp-*"))
    assert not read_json(folder / "manifest.json")["complete"]
    monkeypatch.setattr(building.ExampleWriter, "write", real)
    with folder_lock(str(folder)):
        refused("in use by process", build, "cut", overwrite=True, **settings)
    build("cut", **settings)
    assert any("Continuing: 1 of" in line for line in build.printed)
    assert [path.stat().st_mtime_ns for path in done] == stamps
    assert not list(folder.glob(".tmp-*"))
    names = [
        path.name for path in (build.tmp_path / "whole").glob("*tfrecord*")
    ]
    _, different, errors = filecmp.cmpfiles(
        build.tmp_path / "whole", folder, names, shallow=False
    )
    assert names and not different and not errors
    build("cut", **settings)
    assert "already complete" in build.printed[0]
    assert [path.stat().st_mtime_ns for path in done] == stamps


def test_a_build_killed_before_its_first_manifest_continues(build):
    folder = build.tmp_path / "out"
    folder.mkdir()
    (folder / ".tmp-manifest.json").write_text("{")
    assert build("out")["complete"]


def test_other_files_of_a_directory_are_never_removed(build):
    folder = build.tmp_path / "out"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    (folder / "pretrain_data.tfrecord-0-of-1").write_text("old")
    refused("contains files", build, "out")
    assert (folder / "pretrain_data.tfrecord-0-of-1").read_text() == "old"
    build("out", overwrite=True, num_shards=2)
    shards = [f"pretrain_data.tfrecord-{k}-of-2" for k in range(2)]
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["manifest.json", *shards, "thesis.txt"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_shards": 0}, "num_shards: must be at least 1, got 0"),
        ({"num_shards": 10**9}, "num_shards: must be at most"),
        ({"held_out_fraction": 1.0}, "held_out_fraction: .* below 1, got 1.0"),
        ({"draws": "dice"}, "stream, document"),
        ({"num_processes": 9}, "num_processes is 9, but num_shards is 4"),
    ],
)
def test_options_out_of_bounds_are_refused(build, settings, message):
    refused(message, build, "out", **settings)
    assert not (build.tmp_path / "out").exists()


@pytest.fixture
def lossy_build(build, corpus_dir):
    """Build a corpus with a byte that is not UTF-8 and a nested folder."""
    (corpus_dir / "bad.txt").write_bytes(b"wab \xff wac\n")
    (corpus_dir / "inner").mkdir()
    build("out", num_shards=500)
    return build


@pytest.mark.parametrize(
    "loss",
    [
        "directories inside",
        "500 shards for",
        "tokens at the ends of lines did not fit",
        "1 of {size:,} bytes ({share:.3%}) are not UTF-8",
        "bad.txt: 1 bytes, the first at byte 4",
    ],
)
def test_the_report_names_each_loss(lossy_build, corpus_dir, loss):
    size = sum(path.stat().st_size for path in corpus_dir.glob("*.txt"))
    line = loss.format(size=size, share=1 / size)
    assert line in "\n".join(lossy_build.printed)


def test_strict_refuses_a_byte_that_is_not_utf8(build, corpus_dir):
    (corpus_dir / "bad.txt").write_bytes(b"wab \xff wac\n")
    refused(r"bad.txt: byte 4 .*iconv.*--strict", build, "out", strict=True)


def test_an_error_of_a_worker_is_reported(build, corpus_dir):
    (corpus_dir / "z.jsonl").write_text("{oops\n")
    refused("jsonl: the line at byte 0 is not", build, "out", num_processes=2)


def test_the_end_of_a_worker_is_reported(build, monkeypatch):
    monkeypatch.setattr(jobs, "_start_method", lambda: "fork")
    monkeypatch.setattr(building, "run_job", lambda *_: os._exit(9))
    message = "worker .*ended.*Run the same command"
    refused(message, build, "killed", num_processes=2)


def test_a_build_with_other_settings_is_not_continued(build):
    build("out", seed=1)
    changed = "(?s)length: built with 32, requested 16.*seed: built with 1"
    refused(f"{changed}.*--overwrite", build, "out", seed=2, max_seq_length=16)


def test_a_build_with_a_different_vocabulary_is_not_continued(build, tmp_path):
    build("out", seed=1)
    path = tmp_path / "other.txt"
    path.write_text((tmp_path / "vocab.txt").read_text() + "extra\n")
    message = (
        "vocabulary of 305 tokens, requested a different vocabulary of 306"
    )
    refused(message, build, "out", seed=1, vocab_file=str(path))


def test_a_build_with_other_unicode_tables_is_not_continued(build, tmp_path):
    build("out", seed=1)
    path = tmp_path / "out" / "manifest.json"
    manifest = read_json(path)
    manifest["tokenizer"]["unicode_version"] = "9.0.0"
    path.write_text(json.dumps(manifest))
    refused(r"Unicode tables: built with 9\.0\.0", build, "out", seed=1)


def test_a_build_of_a_different_corpus_is_not_continued(build, corpus_dir):
    build("out", seed=1)
    (corpus_dir / "new.txt").write_text("wab wac\n")
    refused(r"or resized: new\.txt", build, "out", seed=1)


def test_an_output_that_cannot_be_written_is_refused(build):
    (build.tmp_path / "file").write_text("x")
    refused("cannot be written to", build, "file/out")


def test_a_corpus_without_text_is_refused(build, corpus_dir):
    for path in corpus_dir.iterdir():
        path.write_text(" \n\n \n")
    refused("contain no training example", build, "out")


@pytest.fixture
def flags(tmp_path, vocab_file, corpus_dir):
    return [
        f"--corpus-dir={corpus_dir}",
        f"--vocab-file={vocab_file}",
        f"--output-dir={tmp_path / 'out'}",
    ]


@pytest.mark.slow
def test_the_originals_command_line_works(run_python, flags, tmp_path):
    flags += "--max-seq 64 --num_p=2 --blanks-separate-docs False".split()
    flags += ["--no-lower-case", "--do-strip-accents"]
    done = run_python("build_pretraining_dataset.py", *flags)
    settings = read_json(tmp_path / "out/manifest.json")["settings"]
    expected = {
        "max_seq_length": 64,
        "num_shards": 1000,
        "strip_accents": True,
        "blanks_separate_docs": False,
        "do_lower_case": False,
    }
    assert settings.items() >= expected.items()
    assert len(list((tmp_path / "out").glob("pretrain_data*-of-1000"))) == 1000
    assert "WARNING: 1000 shards for" in done.stdout


@pytest.mark.slow
def test_openwebtext_is_built_in_the_originals_layout(
    run_python, tmp_path, vocab_file, corpus_dir
):
    (tmp_path / "openwebtext").mkdir()
    with tarfile.open(tmp_path / "openwebtext/part.xz", "w:xz") as archive:
        for path in sorted(corpus_dir.iterdir()):
            archive.add(path, path.name)
    program = "build_openwebtext_pretraining_dataset.py"
    run_python(program, f"--data-dir={tmp_path}", "--num-shards=2")
    manifest = read_json(tmp_path / "pretrain_tfrecords/manifest.json")
    assert manifest["counts"]["documents"] == 3
    assert manifest["settings"]["blanks_separate_docs"] is False


SETTINGS = {"draws": "document", "num_processes": 2, "num_shards": 16}
HERE = "--direct_running_mode=in_memory --direct_num_workers=1"
ON_BEAM = {**SETTINGS, "runner": "beam", "beam_options": HERE}


@pytest.fixture
def beam(monkeypatch):
    """Return the settings of builds with Apache Beam."""
    pytest.importorskip("apache_beam", reason="no extra beam")
    monkeypatch.setattr("electra_tf.data.jobs._SMALLEST_PIECE", 4000)
    from electra_tf.data import beam

    return beam


@pytest.mark.slow
def test_beam_writes_the_plain_builders_examples_and_manifest(beam, build):
    plain = build("plain", held_out_fraction=0.1, **SETTINGS)
    manifest = build("beam", held_out_fraction=0.1, runner="beam", **SETTINGS)
    examples = {}
    for name in ("plain", "beam"):
        folder = build.tmp_path / name
        examples[name] = (_multiset(folder), _multiset(folder, "eval_data"))
    assert examples["plain"] == examples["beam"]
    assert min(map(len, examples["beam"])) > 10
    assert manifest["num_jobs"] > 8 and manifest.pop("jobs") != {}
    assert manifest == {n: v for n, v in plain.items() if n != "jobs"}
    assert not list((build.tmp_path / "beam").glob(".tmp-*"))


@pytest.mark.parametrize("draws", ["stream", "document"])
def test_beam_writes_the_same_records_to_a_remote_output(beam, build, draws):
    plain = build("plain", **(SETTINGS | {"draws": draws}))
    output = f"ram://beam_{draws}"
    settings = {**ON_BEAM, "draws": draws, "output_dir": output}
    settings["num_processes"] = 1 if draws == "document" else 2
    assert build("unused", **settings)["counts"] == plain["counts"]
    assert _multiset(output) == _multiset(build.tmp_path / "plain")


def test_a_failed_job_is_reported_and_run_again(beam, build, monkeypatch):
    real, tried = building.ExampleWriter.finish, []

    def failing(self):
        tried.append(self)
        if self.training.shards._names[0].endswith("-1-of-16"):
            raise OSError(28, "No space left on device")
        return real(self)

    monkeypatch.setattr(building.ExampleWriter, "finish", failing)
    message = r"No space left.*free space[^$]*1 of \d+ jobs failed.*command"
    refused(message, build, "out", **ON_BEAM)
    manifest = read_json(build.tmp_path / "out/manifest.json")
    assert manifest["num_jobs"] == len(manifest["jobs"]) + 1 == len(tried)
    monkeypatch.setattr(building.ExampleWriter, "finish", real)
    manifest = build("out", **ON_BEAM)
    assert any(line.startswith("Continuing:") for line in build.printed)
    assert manifest["counts"] == build("plain", **SETTINGS)["counts"]


def test_jobs_of_a_killed_command_are_not_run_again(beam, build, monkeypatch):
    run = beam._run_here

    def killed(pipeline):
        run(pipeline)
        raise KeyboardInterrupt

    monkeypatch.setattr(beam, "_run_here", killed)
    with pytest.raises(KeyboardInterrupt):
        build("out", **ON_BEAM)
    assert not read_json(build.tmp_path / "out" / "manifest.json")["jobs"]
    monkeypatch.setattr(beam, "_run_here", None)  # nothing is left to run
    plain = build("plain", **SETTINGS)
    assert build("out", **ON_BEAM)["counts"] == plain["counts"]
    refused("another build:\n  seed", build, "out", seed=1, **ON_BEAM)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["it starts", "it works"])
def test_a_killed_worker_is_reported_and_its_job_run_again(
    beam, run_python, tmp_path, flags, corpus_dir, moment
):
    lines = "".join(p.read_text() for p in sorted(corpus_dir.iterdir()))
    for number in range(8):
        (corpus_dir / f"{number}.txt").write_text(lines * 4)
    command = [sys.executable, str(ROOT / "build_pretraining_dataset.py")]
    command += [*flags, "--max-seq-length=32", "--num-processes=2"]
    command += ["--runner=beam", "--draws=document"]
    output = tmp_path / "printed"
    with open(output, "w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, cwd=ROOT)
    try:
        while not (workers := _beam_workers(process.pid)) or (
            moment == "it works" and not list(tmp_path.glob("out/.tmp-*"))
        ):
            assert process.poll() is None, output.read_text()
            time.sleep(0.01)
        os.kill(workers[-1], signal.SIGKILL)
        assert process.wait(60) == 1
    finally:
        process.kill()
    text = output.read_text()
    assert re.search(r"error: Apache Beam failed: .*Worker subprocess", text)
    assert "run the same command again" in text
    run_python(*command[1:])
    assert not _beam_workers(process.pid)


def _beam_workers(parent):
    """Return the process ids of a command's Beam workers."""
    command = ["ps", "-wweo", "pid,ppid,args"]
    listing = subprocess.run(command, capture_output=True, text=True)
    family, workers = {parent}, []
    for line in listing.stdout.splitlines()[1:]:
        pid, parent_id, arguments = line.split(None, 2)
        if int(parent_id) in family:
            family.add(int(pid))
            if "sdk_worker_main" in arguments:
                workers.append(int(pid))
    return workers


@pytest.mark.parametrize(
    "flags, message",
    [
        ("--runer=DirectRunner", "no flags --runer=DirectRunner"),
        ("--runner=Dataflow --direct_num_workers=two", "workers: invalid int"),
        ("--runner='DirectRunner", "quotation"),
    ],
)
def test_bad_flags_of_beam_are_named(beam, build, flags, message):
    refused(message, build, "out", runner="beam", beam_options=flags)
    assert not (build.tmp_path / "out").exists()


def test_flags_of_a_job_server_are_accepted(beam):
    flags = "--runner=FlinkRunner --object_reuse=true"
    options = build_options.BuildOptions(None, "", "", beam_options=flags)
    assert beam.open_pipeline(options)


def test_a_missing_beam_is_reported(build, monkeypatch):
    monkeypatch.delitem(sys.modules, "electra_tf.data.beam", raising=False)
    monkeypatch.delattr("electra_tf.data.beam", raising=False)
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    refused(r"install.*\[beam\]", build, "out", runner="beam")
