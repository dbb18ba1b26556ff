# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command that learns a vocabulary."""

import gzip
import json
import subprocess
import sys

import pytest

from electra_tf.text import tokenization

LINES = ["The low lower lowest tide, the widest tide."] * 3 + ["été Été"]


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "electra_tf", "build_vocab", *arguments],
        capture_output=True,
        text=True,
    )


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    text = "\n".join(LINES).encode()
    (folder / "a.txt").write_bytes(text)
    (folder / "b.txt.gz").write_bytes(gzip.compress(text))
    record = json.dumps({"text": "\n".join(LINES)})
    (folder / "c.jsonl").write_text(record)
    return folder


def test_vocabulary_is_written_and_described(corpus, tmp_path):
    output = tmp_path / "new" / "vocab.txt"
    flags = ("--vocab_size=60", "--num-unused", "3")
    done = run(str(corpus), "--output", str(output), *flags)
    assert done.returncode == 0, done.stderr
    tokens = list(tokenization.check_vocab(str(output)))
    assert tokens[5:8] == ["[unused0]", "[unused1]", "[unused2]"]
    assert {"tide", "low", "ete"} <= set(tokens)
    assert "96 (9 different)" in done.stdout
    assert f"{len(tokens)} tokens" in done.stdout
    assert "0 (0.0000%)" in done.stdout
    assert [path.name for path in output.parent.iterdir()] == ["vocab.txt"]


def test_case_and_accents_may_stay(corpus, tmp_path):
    output = tmp_path / "vocab.txt"
    where = (str(corpus), "--output", str(output))
    run(*where, "--no-lower-case")
    assert {"The", "Été", "été"} <= set(tokenization.load_vocab(str(output)))
    run(*where, "--overwrite", "--no-strip-accents")
    tokens = set(tokenization.load_vocab(str(output)))
    assert {"the", "été"} <= tokens and "The" not in tokens


def test_existing_output_is_kept_unless_told(corpus, tmp_path):
    output = tmp_path / "vocab.txt"
    output.write_text("mine\n")
    where = (str(corpus), "--output", str(output))
    done = run(*where)
    assert (done.returncode, output.read_text()) == (1, "mine\n")
    assert done.stderr.startswith("error: Output ")
    assert "--overwrite" in done.stderr and "Traceback" not in done.stderr
    assert run(*where, "--overwrite").returncode == 0
    assert "[MASK]" in output.read_text()


def test_bytes_that_are_not_utf8_are_reported(corpus, tmp_path):
    (corpus / "a.txt").write_bytes(b"low tide\nlow \xff tide\n")
    done = run(str(corpus), "--output", str(tmp_path / "v.txt"))
    assert done.returncode == 0
    assert "a.txt: 1 byte(s) not in UTF-8" in done.stdout
    assert "at byte 13" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--output", "{tmp}/v.txt"], 2, "a CORPUS is required"),
        (["{tmp}/none", "--output", "{tmp}/v.txt"], 1, "none"),
        (["{corpus}", "--output", "{tmp}"], 1, "is a directory"),
        (
            ["{corpus}", "--output", "{tmp}/v", "--vocab_size=9"],
            1,
            "vocab_size 9 is too small",
        ),
        (["{corpus}", "--output", "{tmp}/v", "left"], 2, "left"),
    ],
)
def test_mistakes_are_one_line(corpus, tmp_path, arguments, status, message):
    filled = [a.format(tmp=tmp_path, corpus=corpus) for a in arguments]
    done = run(*filled)
    assert done.returncode == status
    assert "error: " in done.stderr and message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "v").exists()
