# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The two programs, run as a user does."""

import json
import subprocess
import sys
import tarfile

import pytest

pytestmark = pytest.mark.slow  # They start processes.


@pytest.fixture
def run(request):
    def call(program, *flags):
        return subprocess.run(
            [sys.executable, f"{request.config.rootpath}/{program}", *flags],
            capture_output=True,
            text=True,
        )

    return call


@pytest.fixture
def flags(tmp_path, vocab_file, corpus_dir):
    names = [f"--corpus-dir={corpus_dir}", "--vocab-file", vocab_file]
    return [*names, "--output-dir", str(tmp_path / "out")]


def _manifest(tmp_path):
    return json.loads((tmp_path / "out/manifest.json").read_text())


def test_the_originals_command_line_works(run, flags, tmp_path):
    given = "--max-seq 64 --num_p=2 --blanks-separate-docs False"
    given += " --no-lower-case --do-strip-accents"
    done = run("build_pretraining_dataset.py", *flags, *given.split())
    assert done.returncode == 0, done.stderr
    settings = _manifest(tmp_path)["settings"]
    expected = {
        **{"max_seq_length": 64, "num_shards": 1000, "strip_accents": True},
        **{"blanks_separate_docs": False, "do_lower_case": False},
    }
    assert {name: settings[name] for name in expected} == expected
    assert len(list((tmp_path / "out").glob("pretrain_data*-of-1000"))) == 1000
    assert "WARNING: 1000 shards for" in done.stdout


def test_user_errors_are_one_line_without_traceback(run, flags):
    program = "build_pretraining_dataset.py"
    for extra, status, message in (
        ("--vocab_file=/nowhere", 1, "error: Vocabulary file /nowhere"),
        ("--no-such-flag", 2, "error: Unknown flag no_such_flag"),
    ):
        done = run(program, *flags, extra)
        assert done.returncode == status
        assert done.stderr.startswith(message)
        assert "Traceback" not in done.stderr


def test_openwebtext_is_built_in_the_originals_layout(
    run, tmp_path, vocab_file, corpus_dir
):
    (tmp_path / "openwebtext").mkdir()
    with tarfile.open(tmp_path / "openwebtext/part.xz", "w:xz") as archive:
        for path in sorted(corpus_dir.iterdir()):
            archive.add(path, path.name)
    done = run(
        "build_openwebtext_pretraining_dataset.py",
        f"--data-dir={tmp_path}",
        "--num-shards=2",
    )
    assert done.returncode == 0, done.stderr
    manifest = json.loads(
        (tmp_path / "pretrain_tfrecords/manifest.json").read_text()
    )
    assert manifest["counts"]["documents"] == 3
    assert manifest["settings"]["blanks_separate_docs"] is False


def test_building_does_not_import_tensorflow(run_python):
    end = "sys.exit('tensorflow' in sys.modules)"
    run_python("-c", f"import sys, electra_tf.data.build; {end}")
