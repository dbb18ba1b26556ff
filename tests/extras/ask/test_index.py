# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (texts of many scripts)
"""The index of a folder: its results, and causes of a new index."""

import io
import json
import sys
import zipfile

import numpy as np
import pytest

from electra_tf.extras.ask import index as index_module
from electra_tf.extras.ask.index import PassageIndex, open_index
from electra_tf.extras.ask.passages import SourcePassage
from tests.conftest import FIXTURES, refused

pytest.importorskip("bm25s", reason="no extra ask")
pytest.importorskip("Stemmer", reason="no extra ask")


def test_passages_are_found_by_stems(opened):
    index, _ = opened()
    (number, score), *_ = index.search("Who is building a castle?", 3)
    assert index.passages[number].line == 2 and score > 0
    assert index.search("Zebras?", 3) == []


def test_the_language_none_compares_whole_words(opened):
    index, _ = opened(language="none")
    assert index.search("castle", 3) == []
    assert len(index.search("the king", 20)) == 3


@pytest.fixture(scope="module")
def scripts():
    """Return rows of passages and questions, ten for each of seven scripts."""
    path = FIXTURES / "questions_in_seven_scripts.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def multilingual_index(scripts):
    passages = [
        SourcePassage("f", number, "", row["text"])
        for number, row in enumerate(scripts, 1)
    ]
    return PassageIndex(passages, "english")


@pytest.mark.parametrize("script", range(7))
def test_the_right_passage_is_first_in_every_script(
    scripts, multilingual_index, script
):
    name = list(dict.fromkeys(row["script"] for row in scripts))[script]
    numbers = [n for n, row in enumerate(scripts) if row["script"] == name]
    hits = [
        multilingual_index.search(scripts[number]["question"], 1)
        for number in numbers
    ]
    first = [hit[0][0] if hit else None for hit in hits]
    assert len(numbers) == 10
    assert sum(a == b for a, b in zip(first, numbers, strict=True)) >= 9


@pytest.mark.parametrize(
    ("text", "question", "language"),
    [
        ("Инженер построил маяки.", "маяк", "english"),
        ("Инженер построил маяки.", "маяк", "russian"),
        ("Самой длинной рекой", "длинная река", "english"),
        ("बिल्लियाँ देखती हैं", "बिल्ली", "english"),
        ("Οι γάτες κοιμούνται", "γάτα", "german"),
        ("The lighthouses burned", "burning lighthouse", "english"),
        ("नेपालको राजधानी", "नेपाल", "nepali"),
    ],
)
def test_stems_follow_the_script_of_a_word(text, question, language):
    passages = [SourcePassage("f", 1, "", text)]
    assert PassageIndex(passages, language).search(question, 1)
    assert not PassageIndex(passages, "none").search(question, 1)


def test_an_index_of_a_different_splitter_is_made_again(opened, monkeypatch):
    opened()
    monkeypatch.setattr(index_module, "VERSION", "0, Unicode 5")
    assert "indexed 6 passages" in opened()[1][0]
    assert not opened()[1]


def test_an_unchanged_index_is_read(opened, text_folder):
    first, lines = opened()
    assert "indexed 6 passages of 3 files" in lines[0]
    path = text_folder.parent / "stored.index"
    content = path.read_bytes()
    again, lines = opened()
    assert not lines and path.read_bytes() == content
    question = "is the king in the city?"
    assert again.search(question, 9) == first.search(question, 9)
    assert not list(text_folder.parent.glob("*.tmp"))


def test_a_damaged_index_is_made_again(opened, text_folder):
    first, _ = opened()
    path = text_folder.parent / "stored.index"
    content = path.read_bytes()
    path.write_bytes(content[:2000] + b"\xff\xff" + content[2002:])
    again, lines = opened()
    assert lines and again.passages == first.passages


def test_a_changed_text_is_indexed_again(opened, text_folder):
    opened()
    (text_folder / "a.txt").write_text("The king built\nthree houses.")
    changed, lines = opened()
    assert "indexed 5 passages" in lines[0]
    assert changed.search("castles", 1) == []


def test_skipped_files_are_reported(opened, text_folder):
    (text_folder / ".hidden").write_bytes(b"\0")
    (text_folder / "again").symlink_to("deep")
    assert opened()[1][:2] == [
        "Skipped hidden files and folders: 1 (.hidden)",
        "Skipped repeated files and folders: 1 (again)",
    ]


@pytest.fixture
def forge(opened, text_folder):
    """Return a function that makes an index, and changes a part of its file."""

    def call(name, change):
        index, _ = opened()
        path = text_folder.parent / "stored.index"
        with zipfile.ZipFile(path) as packed:
            parts = {part: packed.read(part) for part in packed.namelist()}
        parts[name] = change(parts[name])
        with zipfile.ZipFile(path, "w") as packed:
            for part, content in parts.items():
                packed.writestr(part, content)
        return index

    return call


@pytest.mark.parametrize(
    "passage",
    [
        ["a.txt", 2, "", 5],
        ["a.txt", "2", "", "text"],
        [1, 2, "", "text"],
        ["a.txt", 2, "", "text", "more"],
        ["a.txt"],
        {},
        None,
    ],
)
def test_an_index_with_forged_passages_is_made_again(opened, forge, passage):
    def replace_row(content):
        rows = content.splitlines()
        rows[1] = json.dumps(passage).encode()
        return b"\n".join(rows)

    index = forge("passages.jsonl", replace_row)
    again, lines = opened()
    assert "indexed 6 passages" in lines[0]
    assert again.passages == index.passages


@pytest.mark.parametrize(
    ("part", "position", "value"),
    [
        ("indices", 0, 99),
        ("indices", 0, -1),
        ("indptr", 1, 99),
        ("data", 0, float("nan")),
    ],
)
def test_an_index_with_forged_scores_is_made_again(
    opened, forge, part, position, value
):
    def replace_value(content):
        values = np.load(io.BytesIO(content))
        values[position] = value
        forged = io.BytesIO()
        np.save(forged, values)
        return forged.getvalue()

    forge(f"{part}.csc.index.npy", replace_value)
    assert "indexed 6 passages" in opened()[1][0]


@pytest.mark.parametrize(
    "change",
    [
        (b'"float32"', b'"floa3S032"'),
        (b'"float32"', b"5"),
        (b'"int32"', b'"no"'),
        (b'"num_docs": 6', b'"num_docs": "6"'),
        (b'"numpy"', b"{"),
    ],
)
def test_an_index_with_forged_settings_is_made_again(opened, forge, change):
    index = forge("params.index.json", lambda part: part.replace(*change))
    again, lines = opened()
    assert "indexed 6 passages" in lines[0]
    assert again.search("king", 3) == index.search("king", 3)


def test_an_index_with_a_cut_header_of_an_array_is_made_again(opened, forge):
    forge(
        "data.csc.index.npy", lambda part: part.replace(b"'descr'", b"('descr'")
    )
    assert "indexed 6 passages" in opened()[1][0]


def test_an_index_among_the_texts_is_refused(text_folder):
    path = str(text_folder / "stored.index")
    arguments = (str(text_folder), path, "none", print)
    refused("is inside the folder of texts", open_index, *arguments)


def test_a_refused_text_leaves_no_index(opened, text_folder):
    (text_folder / "a.txt").write_bytes(b"fine\nb\0d")
    refused("found a zero byte", opened)
    assert not (text_folder.parent / "stored.index").exists()


def test_a_missing_folder_is_refused(opened, text_folder):
    refused("none: cannot be read: No such file", opened, text_folder / "none")


@pytest.mark.parametrize("name", ["bm25s", "Stemmer"])
def test_without_the_extra_a_stored_index_names_the_extra(
    opened, monkeypatch, name
):
    opened()
    monkeypatch.setitem(sys.modules, name, None)
    refused(r"pip install .*\[ask\]", opened)
