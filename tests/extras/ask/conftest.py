# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A small folder of texts of each kind, and its index."""

import gzip
import json

import pytest

QUESTION = {
    "id": "q1",
    "question": "where is the king?",
    "answers": [{"text": "city", "answer_start": 19}],
}
SQUAD = {
    "data": [
        {
            "title": "Kings",
            "paragraphs": [
                {"context": "The king is in the city.", "qas": [QUESTION]},
                {"context": "She was for the north.", "qas": []},
            ],
        }
    ]
}


def write_texts(folder):
    """Writes a text, compressed JSON lines and a file in SQuAD's format."""
    (folder / "deep").mkdir(parents=True)
    lines = ["", "The king built", "three castles.", "", "Her city was quiet."]
    (folder / "a.txt").write_text("\n".join(lines))
    rows = '{"id": 7, "text": "Bees make honey."}\n\n{"text": "Ice melts."}\n'
    (folder / "deep" / "b.jsonl.gz").write_bytes(gzip.compress(rows.encode()))
    (folder / "c.json").write_text(json.dumps(SQUAD))


@pytest.fixture
def folder(tmp_path):
    """A folder of texts of each kind."""
    path = tmp_path / "texts"
    write_texts(path)
    return path


@pytest.fixture
def opened(folder):
    """Opens the index of a folder; returns it with the reported lines."""
    pytest.importorskip("bm25s", reason="no extra ask")
    pytest.importorskip("Stemmer", reason="no extra ask")
    from electra_tf.extras.ask.index import open_index

    def call(corpus=folder, language="english"):
        lines, path = [], str(folder.parent / "stored.index")
        return open_index(str(corpus), path, language, lines.append), lines

    return call
