# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tagging data: CoNLL columns, tags of all kinds, labels, truncation."""

import json

import pytest

from configure.errors import UserError

GOOD = "the DT B-NP\ncat NN I-NP\nsat VB B-VP\n\n"


@pytest.fixture
def chunk(make_task, write_task):
    """Makes the chunking task, or another, with the given train file."""

    def make(text, name="chunk", **hparams):
        write_task(name, "train.txt", text)
        return make_task(name, max_seq_length=32, **hparams)

    return make


def labels_of(task):
    """The labels of the only sentence, by name."""
    names = list(task.label_mapping)
    (example,) = task.get_examples("train")
    return [names[i] for i in example.labels]


def features_of(task):
    return task.featurize(task.get_examples("train")[0], True)


def test_a_last_sentence_without_blank_line_is_dropped_or_kept(chunk):
    text = GOOD + "a DT O\ndog NN O"
    task = chunk(text)
    assert len(task.get_examples("train")) == 1
    (row,) = task.row_report.rows
    assert row.line == 6 and row.skipped
    assert "within a sentence of 2 words" in row.found
    assert "fix_last_sentence" in row.expected
    task = chunk(text, fix_last_sentence=True)
    assert [e.words for e in task.get_examples("train")] == [
        ["the", "cat", "sat"],
        ["a", "dog"],
    ]
    assert task.row_report.rows == []


@pytest.mark.parametrize(
    ("bad", "found", "expected"),
    [
        (b"a x NOUN\n\n", "tag 'NOUN' of 'a'", "O, or B-TYPE, I-TYPE"),
        (b"lonely\nb x O\n\n", "lonely", "at least 2 columns"),
        (b"\xff\xfe x O\nb x O\n\n", "xff", "text in UTF-8"),
    ],
)
def test_a_bad_line_costs_the_sentence_or_stops_strictly(
    bad, found, expected, chunk
):
    task = chunk(bad + GOOD.encode())
    assert [e.eid for e in task.get_examples("train")] == [1]
    (row,) = task.row_report.rows
    assert row.line == 1
    assert found in row.found
    assert row.expected.startswith(expected)
    task = chunk(bad + GOOD.encode(), strict_rows=True)
    with pytest.raises(UserError, match="strict_rows"):
        task.get_examples("train")


def test_labels_come_from_all_three_files_and_are_kept_as_json(
    chunk, write_task, finetuning_config
):
    write_task("chunk", "dev.txt", "a x B-PP\n\n")
    write_task("chunk", "test.txt", "a x B-AX\nb x I-AX\n\n")
    task = chunk(GOOD)
    labels = ["B-AX", "B-NP", "E-AX", "E-NP", "S-PP", "S-VP"]
    assert task.label_mapping == {n: i for i, n in enumerate(labels)}
    path = task.config.preprocessed_data_dir + "/chunk_label_mapping.json"
    with open(path, encoding="utf-8") as file:
        assert json.load(file) == task.label_mapping


def test_labels_follow_the_data_or_else_an_earlier_run(
    chunk, make_task, tmp_path
):
    with pytest.raises(UserError, match="its labels are not known") as caught:
        assert make_task("chunk").label_mapping
    places = [f"chunk/{split}.txt" for split in ("train", "dev", "test")]
    assert all(place in str(caught.value) for place in places)
    assert "tfrecords" not in str(caught.value)
    assert "B-NP" in chunk(GOOD).label_mapping
    labels = chunk("a x B-ZZ\n\n").label_mapping
    assert set(labels) == {"S-ZZ"}
    (tmp_path / "finetuning_data" / "chunk" / "train.txt").unlink()
    assert make_task("chunk").label_mapping == labels


def test_entities_of_other_types_are_told_apart_but_not_in_chunking(chunk):
    text = "Ann P C I-PER\nOslo P C I-LOC\nis V C O\n\n"
    assert labels_of(chunk(text, "ner")) == ["S-PER", "S-LOC", "O"]
    assert labels_of(chunk(text, "chunk")) == ["B-LOC", "E-LOC", "O"]


@pytest.mark.parametrize(
    "text", ["a DT x B-PP\nb NN x O\n\n", "a DT\nb NN\n\n"]
)
def test_parts_of_speech_are_the_second_column(chunk, text):
    task = chunk(text, "pos")
    assert labels_of(task) == ["DT", "NN"]
    assert task.is_token_level


@pytest.mark.parametrize("fixed", [False, True])
def test_a_word_of_many_pieces_does_not_overflow(chunk, fixed):
    long_word = ",".join("abcdefghijklmnopqrstuvwxyz")
    task = chunk(f"a x O\n{long_word} x O\n\n", fix_tagging_truncation=fixed)
    features = features_of(task)
    assert len(features["input_ids"]) == 32
    assert sum(features["chunk_labels_mask"]) == 1
    assert list(task.row_report.losses.values()) == [1]


def test_the_original_loses_a_sentence_of_many_words_whole(chunk):
    text = "a x O\n" * 30 + "\n"
    features = features_of(chunk(text))
    assert sum(features["input_mask"]) == 1
    assert sum(features["chunk_labels_mask"]) == 0
    features = features_of(chunk(text, fix_tagging_truncation=True))
    assert sum(features["chunk_labels_mask"]) == 30


def test_tagging_is_not_read_from_tfds(make_task):
    with pytest.raises(UserError, match="data_source=files"):
        make_task("chunk", data_source="tfds")
