# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (texts of many scripts)
"""Passages of files: their sources, and the division of long texts."""

import pytest

from electra_tf.extras.ask.passages import read_passages
from tests.conftest import refused


@pytest.fixture
def cut(tmp_path):
    """Return a function that returns the passages of a text."""

    def call(text):
        path = tmp_path / "long.txt"
        path.write_text(text)
        return list(read_passages("long.txt", str(path)))

    return call


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "a.txt",
            [
                ("a.txt", 2, "", "The king built\nthree castles."),
                ("a.txt", 5, "", "Her city was quiet."),
            ],
        ),
        (
            "c.json",
            [
                ("c.json", None, "Kings/0", "The king is in the city."),
                ("c.json", None, "Kings/1", "She was for the north."),
            ],
        ),
        (
            "deep/b.jsonl.gz",
            [
                ("deep/b.jsonl.gz", 1, "7", "Bees make honey."),
                ("deep/b.jsonl.gz", 3, "", "Ice melts."),
            ],
        ),
    ],
)
def test_passages_name_their_source(text_folder, name, expected):
    passages = read_passages(name, str(text_folder / name))
    assert [tuple(passage) for passage in passages] == expected


def test_long_text_is_cut_without_losing_a_word(cut):
    tokens = [f"w{n}" for n in range(500)]
    passages = cut(" ".join(tokens[:450]) + "\n" + " ".join(tokens[450:]))
    sizes = [len(source.passage.split()) for source in passages]
    assert sizes == [200, 200, 100]
    assert [source.line for source in passages] == [1, 1, 1]
    assert " ".join(source.passage for source in passages).split() == tokens


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("东" * 450, [200, 200, 50]),
        ("东，" * 250, [400, 100]),
        ("กี่" * 250, [600, 150]),  # Marks stay on their letters.
        ("서울은 " * 201, [800, 4]),
        ("ก" * 150 + "\n" + "ข" * 100, [150, 100]),
    ],
)
def test_long_text_without_spaces_is_cut_at_letters(cut, text, sizes):
    passages = [source.passage for source in cut(text)]
    assert [len(passage) for passage in passages] == sizes
    assert "".join(passages) == text.replace("\n", "")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"fine\nb\0d", r"a.txt:2: found a zero byte"),
        ("a.jsonl", b'{"text": "a"}\n{', r"a.jsonl:2: .* one JSON object"),
        ("a.jsonl", b'{"text": 4.5}', r"text is the number 4.5; .*a text und"),
        ("a.json", b'{"data": [{"paragraphs": [{}]}]}', "a.json: data.0.: .*e"),
        (
            "a.json.gz",
            b"\x1f\x8b",
            r"a.json.gz: the file is compressed; .*gunzip",
        ),
    ],
)
def test_an_unreadable_file_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    refused(message, lambda: list(read_passages(name, str(tmp_path / name))))
