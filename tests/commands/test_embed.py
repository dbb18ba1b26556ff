# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command `embed`: texts in, NumPy files out."""

import json

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.commands import embed
from electra_tf.prediction.embedding import Embedder


def _run(*words):
    return embed.main(embed.parse_flags(["embed", *map(str, words)]))


def test_one_vector_a_text(finetuned_folder, tmp_path, capfd):
    folder = finetuned_folder("reviews")
    text = tmp_path / "in.txt"
    text.write_bytes(b"the king\n\n\xff\nthat was for her\n")
    out = tmp_path / "out.npy"
    words = ("--model", folder, text, "--output", out)
    _run(*words, "--layers=1,2", "--batch_size=1")
    found = np.load(out)
    embedder = Embedder.from_pretrained(folder)
    wanted = embedder(["the king", "that was for her"], layers=(1, 2))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    facts = json.loads((tmp_path / "out.json").read_text())
    assert (facts["texts"], facts["vectors"], facts["width"]) == (2, 2, 16)
    rows = (tmp_path / "out.rows.jsonl").read_text().splitlines()
    assert [json.loads(row)["line"] for row in rows] == [1, 4]
    assert "1 bad line left out; 1 blank line" in capfd.readouterr().err
    with pytest.raises(UserError, match="--overwrite"):
        _run(*words)


def test_words_have_offsets_and_names(finetuned_folder, tmp_path):
    folder = finetuned_folder("reviews")
    text = tmp_path / "in.jsonl"
    text.write_text('{"text": "The king,"}\n{"text": ""}\n{"text": "of"}\n')
    out = tmp_path / "out.npz"
    _run("--model", folder, text, "--output", out, "--pooling=words")
    with np.load(out) as found:
        offsets, vectors = found["offsets"], found["vectors"]
    assert offsets.tolist() == [0, 3, 3, 4]
    wanted = Embedder.from_pretrained(folder)("of", pooling="words")
    np.testing.assert_allclose(vectors[3:], wanted, atol=1e-5)
    rows = (tmp_path / "out.rows.jsonl").read_text().splitlines()
    assert json.loads(rows[0])["units"] == ["The", "king", ","]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "in.jsonl",
        "out.json",
        "out.npz",
        "out.rows.jsonl",
    ]


def test_no_text_gives_an_empty_array(finetuned_folder, tmp_path):
    (tmp_path / "in.txt").write_text("\n")
    out = tmp_path / "out.npy"
    words = ("--model", finetuned_folder("reviews"), tmp_path / "in.txt")
    _run(*words, "--output", out, "--combine=concat", "--layers=0,1")
    assert np.load(out).shape == (0, 32)


def test_names_and_layers_are_checked_first(tmp_path):
    (tmp_path / "in.txt").write_text("a\n")
    words = ("--model", "none", tmp_path / "in.txt", "--output")
    with pytest.raises(UserError, match=r"ends in \.npy or \.npz"):
        _run(*words, tmp_path / "out.txt")
    with pytest.raises(UserError, match=r"\.npz, since"):
        _run(*words, tmp_path / "out.npy", "--pooling=none")
    with pytest.raises(UserError, match="whole numbers"):
        _run(*words, tmp_path / "out.npy", "--layers=last")
