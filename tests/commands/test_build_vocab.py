# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command that learns a vocabulary."""

import gzip
import json

import pytest

from configure.errors import UserError
from electra_tf.commands import build_vocab
from electra_tf.text import tokenization

LINES = ["The low lower lowest tide, the widest tide."] * 3 + ["été Été"]


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


@pytest.fixture
def run(corpus, capsys):
    """Runs the command on the corpus; returns what it printed."""

    def call(output, *words):
        argv = ["build_vocab", str(corpus), f"--output={output}", *words]
        build_vocab.main(build_vocab.parse_flags(argv))
        return capsys.readouterr().out

    return call


def test_vocabulary_is_written_and_described(run, tmp_path):
    output = tmp_path / "new" / "vocab.txt"
    said = run(output, "--vocab_size=60", "--num-unused", "3")
    tokens = list(tokenization.check_vocab(str(output)))
    assert tokens[5:8] == ["[unused0]", "[unused1]", "[unused2]"]
    assert {"tide", "low", "ete"} <= set(tokens)
    assert "96 (9 different)" in said
    assert f"{len(tokens)} tokens" in said
    assert "0 (0.0000%)" in said
    assert [path.name for path in output.parent.iterdir()] == ["vocab.txt"]


def test_case_and_accents_may_stay(run, tmp_path):
    output = tmp_path / "vocab.txt"
    run(output, "--no-lower-case")
    assert {"The", "Été", "été"} <= set(tokenization.load_vocab(str(output)))
    run(output, "--overwrite", "--no-strip-accents")
    tokens = set(tokenization.load_vocab(str(output)))
    assert {"the", "été"} <= tokens and "The" not in tokens


def test_mistakes_are_named_and_nothing_is_replaced(run, tmp_path):
    output = tmp_path / "vocab.txt"
    output.write_text("mine\n")
    with pytest.raises(UserError, match="exists.*--overwrite"):
        run(output)
    with pytest.raises(UserError, match="is a directory"):
        run(tmp_path)
    with pytest.raises(UserError, match="vocab_size 9 is too small"):
        run(output, "--overwrite", "--vocab_size=9")
    assert output.read_text() == "mine\n"


def test_bytes_that_are_not_utf8_are_reported(run, corpus, tmp_path):
    (corpus / "a.txt").write_bytes(b"low tide\nlow \xff tide\n")
    with pytest.raises(UserError, match="a.txt: byte 13 is not UTF-8"):
        run(tmp_path / "v.txt", "--strict")
    said = run(tmp_path / "v.txt")
    assert "are not UTF-8" in said and "iconv -f" in said
    assert "a.txt: 1 bytes, the first at byte 13" in said
