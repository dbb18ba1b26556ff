# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tagging data: CoNLL columns, tags of all kinds, labels, truncation."""

import json

import pytest

from configure.errors import UserError

GOOD = "the DT B-NP\ncat NN I-NP\nsat VB B-VP\n\n"


@pytest.fixture
def chunk(make_task, write_task):
    """Makes the chunking task with the given train file."""

    def make(text, **hparams):
        write_task("chunk", "train.txt", text)
        return make_task("chunk", max_seq_length=32, **hparams)

    return make


def test_a_last_sentence_without_blank_line_is_dropped_and_reported(chunk):
    task = chunk(GOOD + "a DT O\ndog NN O\n")
    assert len(task.get_examples("train")) == 1
    (row,) = task.row_report.rows
    assert row.line == 6 and row.skipped
    assert "within a sentence of 2 words" in row.found
    assert "fix_last_sentence" in row.expected


def test_fix_last_sentence_keeps_it(chunk):
    task = chunk(GOOD + "a DT O\ndog NN O", fix_last_sentence=True)
    assert [e.words for e in task.get_examples("train")] == [
        ["the", "cat", "sat"],
        ["a", "dog"],
    ]
    assert task.row_report.rows == []


def test_a_file_of_one_sentence_without_blank_line_is_an_error(chunk):
    with pytest.raises(UserError, match=r"no usable sentence.*bad rows: 1"):
        chunk(GOOD.strip()).get_examples("train")


def test_document_starts_are_no_words(chunk):
    task = chunk("-DOCSTART- -X- O O\n\n" + GOOD)
    (example,) = task.get_examples("train")
    assert (example.eid, example.words) == (0, ["the", "cat", "sat"])


def test_types_with_dashes_and_untyped_tags_are_understood(chunk):
    task = chunk("a x B-x-y\nb x I-x-y\nc x B\nd x O\n\n")
    (example,) = task.get_examples("train")
    names = {i: label for label, i in task.label_mapping.items()}
    labels = [names[i] for i in example.labels]
    assert labels == ["B-x-y", "E-x-y", "S", "O"]
    assert task.row_report.rows == []


@pytest.mark.parametrize(
    ("bad", "found", "expected"),
    [
        (b"a x NOUN\n\n", "tag 'NOUN' of 'a'", "O, or B-TYPE, I-TYPE"),
        (b"lonely\nb x O\n\n", "lonely", "at least 2 columns"),
        (b"\xff\xfe x O\nb x O\n\n", "xff", "text in UTF-8"),
    ],
)
def test_a_bad_line_costs_the_sentence_and_leaves_a_gap(
    bad, found, expected, chunk
):
    task = chunk(bad + GOOD.encode())
    assert [e.eid for e in task.get_examples("train")] == [1]
    (row,) = task.row_report.rows
    assert row.line == 1
    assert found in row.found
    assert row.expected.startswith(expected)


@pytest.mark.parametrize("bad", ["a x NOUN\n\n", "lonely\n\n", "last x O\n"])
def test_strict_rows_stops(chunk, bad):
    with pytest.raises(UserError, match="strict_rows"):
        chunk(GOOD + bad, strict_rows=True).get_examples("train")


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


def test_labels_of_an_earlier_run_serve_where_there_is_no_data(
    chunk, write_task, make_task, tmp_path
):
    labels = chunk(GOOD).label_mapping
    (tmp_path / "finetuning_data" / "chunk" / "train.txt").unlink()
    assert make_task("chunk").label_mapping == labels


def test_without_data_and_earlier_run_the_labels_are_missing(make_task):
    with pytest.raises(UserError, match="its labels are not known"):
        assert make_task("chunk").label_mapping


def test_new_data_change_the_labels(chunk):
    assert "B-NP" in chunk(GOOD).label_mapping
    assert set(chunk("a x B-ZZ\n\n").label_mapping) == {"S-ZZ"}


def test_entities_of_other_types_are_told_apart_but_not_in_chunking(
    make_task, write_task
):
    text = "Ann P C I-PER\nOslo P C I-LOC\nis V C O\n\n"
    for name in ("ner", "chunk"):
        write_task(name, "train.txt", text)
    found = {}
    for name in ("ner", "chunk"):
        task = make_task(name, max_seq_length=32)
        names = {i: label for label, i in task.label_mapping.items()}
        (example,) = task.get_examples("train")
        found[name] = [names[i] for i in example.labels]
    assert found["ner"] == ["S-PER", "S-LOC", "O"]
    assert found["chunk"] == ["B-LOC", "E-LOC", "O"]


@pytest.mark.parametrize(
    "text", ["a DT x B-PP\nb NN x O\n\n", "a DT\nb NN\n\n"]
)
def test_parts_of_speech_are_the_second_column(make_task, write_task, text):
    write_task("pos", "train.txt", text)
    task = make_task("pos", max_seq_length=32)
    assert task.label_mapping == {"DT": 0, "NN": 1}
    assert task.get_examples("train")[0].labels == [0, 1]
    assert task.is_token_level


def test_short_sentences_are_whole_however_they_are_cut(chunk):
    features = []
    for fixed in (False, True):
        task = chunk(GOOD, fix_tagging_truncation=fixed)
        features.append(task.featurize(task.get_examples("train")[0], True))
    assert features[0] == features[1]
    assert task.row_report.losses == {}


@pytest.mark.parametrize("fixed", [False, True])
def test_a_word_of_many_pieces_does_not_overflow(chunk, fixed):
    long_word = ",".join("abcdefghijklmnopqrstuvwxyz")
    task = chunk(f"a x O\n{long_word} x O\n\n", fix_tagging_truncation=fixed)
    features = task.featurize(task.get_examples("train")[0], True)
    assert len(features["input_ids"]) == 32
    assert sum(features["chunk_labels_mask"]) == 1
    ((_, count),) = task.row_report.losses.items()
    assert count == 1


def test_the_original_loses_a_sentence_of_many_words_whole(chunk):
    text = "a x O\n" * 30 + "\n"
    task = chunk(text)
    features = task.featurize(task.get_examples("train")[0], True)
    assert sum(features["input_mask"]) == 1
    assert sum(features["chunk_labels_mask"]) == 0
    task = chunk(text, fix_tagging_truncation=True)
    features = task.featurize(task.get_examples("train")[0], True)
    assert sum(features["chunk_labels_mask"]) == 30


def test_tagging_is_not_read_from_tfds(make_task):
    with pytest.raises(UserError, match="data_source=files"):
        make_task("chunk", data_source="tfds")
