# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bad rows of sentences and of words: reported, counted, skipped."""

import hypothesis
import hypothesis.strategies as st
import pytest

from configure.errors import UserError

HEADER = "index\tsentence1\tsentence2\tlabel\n"


GOOD = b"0\ta\tb\tentailment\n"


@pytest.mark.parametrize(
    ("bad", "found", "expected"),
    [
        (b"1\tonly\n", "['1', 'only']", "at least 4 columns"),
        (b"1\ta\tb\tperhaps\n", "label 'perhaps'", "one of: entailment"),
        (b"1\t\xff\tb\tentailment\n", "xff", "text in UTF-8"),
        (b"\n", "an empty line", "at least 4 columns"),
    ],
)
def test_a_bad_row_leaves_a_gap_in_the_ids_or_stops_strictly(
    make_task, write_task, bad, found, expected
):
    path = write_task("rte", "train.tsv", HEADER.encode() + GOOD + bad + GOOD)
    task = make_task("rte")
    assert [e.eid for e in task.get_examples("train")] == [0, 2]
    (row,) = task.row_report.rows
    assert (row.path, row.line, row.skipped) == (str(path), 3, True)
    assert row.expected.startswith(expected)
    assert found in row.found
    with pytest.raises(UserError, match=r"train\.tsv:3.*" + expected):
        make_task("rte", strict_rows=True).get_examples("train")


@pytest.mark.parametrize("label", ["5.1", "-0.1", "high", "nan", ""])
def test_a_number_out_of_range_costs_a_row(make_task, write_task, label):
    rows = f"0\tx\ta\tb\t2.5\n1\tx\ta\tb\t{label}\n"
    write_task("sts", "dev.tsv", "i\tgenre\ts1\ts2\tscore\n" + rows)
    task = make_task("sts")
    assert [e.label for e in task.get_examples("dev")] == [2.5]
    assert task.row_report.rows[0].expected == "a number from 0 to 5"


def test_an_empty_text_is_reported_and_kept(make_task, write_task):
    write_task("rte", "dev.tsv", HEADER + "0\t \t\tentailment\n")
    task = make_task("rte")
    (example,) = task.get_examples("dev")
    assert task.row_report.rows[0].skipped is False
    with pytest.raises(UserError, match=r"dev\.tsv:2.*a text"):
        make_task("rte", strict_rows=True).get_examples("dev")
    features = task.featurize(example, False)
    assert sum(features["input_mask"]) == 2
    assert sum(features["segment_ids"]) == 0


def test_a_missing_or_empty_split_is_named(make_task, write_task):
    task = make_task("rte")
    assert not task.has_split("train")
    with pytest.raises(UserError, match=r"rte/train\.tsv: no such file"):
        task.get_examples("train")
    with pytest.raises(UserError, match=r"no holdout split .it has: train"):
        task.get_examples("holdout")
    for text in ("", HEADER, HEADER + "\n\n"):
        write_task("rte", "train.tsv", text)
        with pytest.raises(UserError, match=r"no usable example.*train\.tsv"):
            make_task("rte").get_examples("train")


@hypothesis.settings(
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(st.binary(max_size=200))
def test_any_bytes_are_rows_or_bad_rows(make_task, write_task, noise):
    write_task("rte", "dev.tsv", HEADER.encode() + GOOD + noise)
    task = make_task("rte")
    examples = task.get_examples("dev")
    lines = noise.count(b"\n") + (not noise.endswith(b"\n")) * bool(noise)
    skipped = [row for row in task.row_report.rows if row.skipped]
    assert len(examples) + len(skipped) == 1 + lines


SENTENCE = "the DT B-NP\ncat NN I-NP\nsat VB B-VP\n\n"


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
    text = SENTENCE + "a DT O\ndog NN O"
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
def test_a_bad_line_costs_its_sentence_or_stops(bad, found, expected, chunk):
    task = chunk(bad + SENTENCE.encode())
    assert [e.eid for e in task.get_examples("train")] == [1]
    (row,) = task.row_report.rows
    assert row.line == 1
    assert found in row.found
    assert row.expected.startswith(expected)
    task = chunk(bad + SENTENCE.encode(), strict_rows=True)
    with pytest.raises(UserError, match="strict_rows"):
        task.get_examples("train")


def test_labels_follow_the_data_or_an_earlier_run(chunk, make_task, tmp_path):
    with pytest.raises(UserError, match="its labels are not known") as caught:
        assert make_task("chunk").label_mapping
    places = [f"chunk/{split}.txt" for split in ("train", "dev", "test")]
    assert all(place in str(caught.value) for place in places)
    assert "tfrecords" not in str(caught.value)
    assert "B-NP" in chunk(SENTENCE).label_mapping
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
