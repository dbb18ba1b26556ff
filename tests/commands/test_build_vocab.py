# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command that learns a vocabulary."""

import gzip
import json
import subprocess
import sys

import pytest

from configure.errors import UserError
from electra_tf.commands import build_vocab
from electra_tf.text import vocab

LINES = ["The low lower lowest tide, the widest tide."] * 3 + ["été Été"]


def start(*arguments):
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "electra_tf", "build_vocab", *arguments],
        capture_output=True,
        text=True,
    )


@pytest.fixture
def run(capsys):
    """The command in this process; returns what it prints."""

    def call(*arguments):
        build_vocab.main(build_vocab.parse_flags(["x", *map(str, arguments)]))
        return capsys.readouterr().out

    return call


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


def test_vocabulary_is_written_and_described(run, corpus, tmp_path):
    output = tmp_path / "new" / "vocab.txt"
    flags = ("--vocab_size=60", "--num-unused", "3")
    printed = run(corpus, "--output", output, *flags)
    tokens = list(vocab.check_vocab(str(output)))
    assert tokens[5:8] == ["[unused0]", "[unused1]", "[unused2]"]
    assert {"tide", "low", "ete"} <= set(tokens)
    assert "96 (9 different)" in printed
    assert f"{len(tokens)} tokens" in printed
    assert "0 (0.0000%)" in printed
    assert [path.name for path in output.parent.iterdir()] == ["vocab.txt"]


def test_same_text_gives_the_same_bytes_in_every_process(corpus, tmp_path):
    outputs = [tmp_path / "1.txt", tmp_path / "2.txt"]
    for output in outputs:
        start(str(corpus), "--output", str(output))
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_case_and_accents_may_stay(run, corpus, tmp_path):
    output = tmp_path / "vocab.txt"
    run(corpus, "--output", output, "--no-lower-case")
    assert {"The", "Été", "été"} <= set(vocab.load_vocab(str(output)))
    run(corpus, "--output", output, "--overwrite", "--no-strip-accents")
    tokens = set(vocab.load_vocab(str(output)))
    assert {"the", "été"} <= tokens and "The" not in tokens


def test_existing_output_is_kept_unless_told(run, corpus, tmp_path):
    output = tmp_path / "vocab.txt"
    output.write_text("mine\n")
    done = start(str(corpus), "--output", str(output))
    assert (done.returncode, output.read_text()) == (1, "mine\n")
    assert done.stderr.startswith("error: Output ")
    assert "--overwrite" in done.stderr and "Traceback" not in done.stderr
    run(corpus, "--output", output, "--overwrite")
    assert "[MASK]" in output.read_text()


def test_bytes_that_are_not_utf8_are_reported(run, corpus, tmp_path):
    (corpus / "a.txt").write_bytes(b"low tide\nlow \xff tide\n")
    printed = run(corpus, "--output", tmp_path / "v.txt")
    assert "a.txt: 1 byte(s) not in UTF-8" in printed
    assert "at byte 13" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "{tmp}/v"], "a CORPUS is required"),
        (["{tmp}/none", "--output", "{tmp}/v"], "none"),
        (["{corpus}", "--output", "{tmp}"], "is a directory"),
        (
            ["{corpus}", "--output", "{tmp}/v", "--vocab_size=9"],
            "vocab_size 9 is too small",
        ),
        (["{corpus}", "--output", "{tmp}/v", "left"], "left"),
    ],
)
def test_mistakes_are_named(run, corpus, tmp_path, arguments, message):
    with pytest.raises(UserError, match=message):
        run(*(a.format(tmp=tmp_path, corpus=corpus) for a in arguments))
    assert not (tmp_path / "v").exists()
