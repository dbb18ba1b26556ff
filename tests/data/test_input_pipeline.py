# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batches of records and of raw text are complete, in order and resumable."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.problems import Level
from electra_tf.data import (
    example_count,
    input_pipeline,
    raw_text,
    record_checks,
)
from electra_tf.data.input_files import InputFiles
from electra_tf.data.raw_text import RawText
from electra_tf.data.tfrecords import (
    FEATURE_NAMES,
    decode_example,
    read_records,
)

LENGTH = 32


def _iterator(config, training=True):
    return iter(input_pipeline.build_dataset(config, 8, training))


def _to_numpy(batch):
    return {name: value.numpy() for name, value in batch.items()}


def _take(iterator, count=None):
    return [*map(_to_numpy, itertools.islice(iterator, count))]


def _assert_same(batches, others):
    assert len(batches) == len(others)
    for batch, other in zip(batches, others, strict=True):
        for name in FEATURE_NAMES:
            np.testing.assert_array_equal(batch[name], other[name])


def _stored(pattern):
    return collections.Counter(
        tuple(decode_example(payload)["input_ids"])
        for path in sorted(tf.io.gfile.glob(pattern))
        for payload in read_records(path)
    )


def _rows(batches):
    rows = (row for batch in batches for row in batch["input_ids"].tolist())
    return collections.Counter(map(tuple, rows))


@pytest.mark.parametrize("deterministic", [True, False])
def test_batches_are_int32_and_hold_stored_examples(config, deterministic):
    config.deterministic_input = deterministic
    batches = _take(_iterator(config), 20)
    types = {
        (name, value.dtype.name, value.shape)
        for batch in batches
        for name, value in batch.items()
    }
    assert types == {(name, "int32", (8, LENGTH)) for name in FEATURE_NAMES}
    assert set(_rows(batches)) <= set(_stored(config.pretrain_tfrecords))


@pytest.mark.parametrize("deterministic", [True, False])
def test_evaluation_without_held_out_records_reads_training_records(
    config, deterministic
):
    config.deterministic_input = deterministic
    config.eval_tfrecords = "/nowhere/*"
    batches = _take(_iterator(config, training=False), 500)
    assert {len(batch["input_ids"]) for batch in batches} == {8}
    assert set(_rows(batches)) <= set(_stored(config.pretrain_tfrecords))


@pytest.mark.parametrize("kind", ["records", "text"])
@pytest.mark.parametrize("before", [0, 7, 900])
def test_a_saved_iterator_continues_exactly(request, tmp_path, before, kind):
    if kind == "records":
        config = request.getfixturevalue("config")
        rows = sum(_stored(config.pretrain_tfrecords).values())
    else:
        config = request.getfixturevalue("text_config")
        rows = len(_epoch(RawText(config, "pretrain_text"), 0))
    # 900 batches are in the middle of a later epoch.
    assert 2 * rows < 7200 and 7200 % rows
    iterator = _iterator(config)
    _take(iterator, before)
    path = tf.train.Checkpoint(it=iterator).write(str(tmp_path / "ckpt"))
    expected = _take(iterator, 150)
    resumed = _iterator(config)
    # A new process starts with a new iterator; an iterator in use is rewound
    # as well, except to the very beginning.
    _take(resumed, 2 if before else 0)
    tf.train.Checkpoint(it=resumed).read(path).assert_consumed()
    _assert_same(_take(resumed, 150), expected)


def test_workers_take_every_nth_row_and_continue_from_batches(config, tmp_path):
    """Check that a chief's checkpoint has all rows of batches read ahead."""
    iterator = _iterator(config)
    _take(iterator, 3)
    path = tf.train.Checkpoint(it=iterator).write(str(tmp_path / "ckpt"))
    expected = _take(iterator, 10)
    resumed = iter(input_pipeline.build_dataset(config, 8, True, worker=(1, 4)))
    tf.train.Checkpoint(it=resumed).read(path).assert_consumed()
    batches = _take(resumed, 10)
    sizes = [len(batch["input_ids"]) for batch in batches]
    assert sizes == sorted(sizes, reverse=True) and {8, *sizes} == {8, 2}
    for batch, whole in zip(batches, expected, strict=True):
        first = slice(None) if len(batch["input_ids"]) == 8 else slice(1, 8, 4)
        _assert_same([batch], [{n: x[first] for n, x in whole.items()}])


# A tuner's thread would hold up the end of an iterator by up to a minute.
@pytest.mark.parametrize(
    ("training", "deterministic", "is_tuned"),
    [
        (True, True, False),
        (True, False, True),
        (False, True, False),
        (False, False, False),
    ],
)
def test_a_fixed_order_is_not_tuned(config, training, deterministic, is_tuned):
    config.deterministic_input = deterministic
    dataset = input_pipeline.build_dataset(config, 8, training)
    assert dataset.options().autotune.enabled == is_tuned


def test_held_out_records_are_read_once_and_completely(config):
    dataset = input_pipeline.build_dataset(config, 8, training=False)
    stored = _stored(config.eval_tfrecords)
    assert _rows(_take(iter(dataset))) == _rows(_take(iter(dataset))) == stored


@pytest.fixture
def text_config(config, corpus_dir, tmp_path):
    """Return hparams of a run over three text files of known words."""
    config.pretrain_text, config.eval_text = f"{corpus_dir}/*.txt", ""
    config.pretrain_tfrecords = config.eval_tfrecords = f"{tmp_path}/none*"
    return config


def _epoch(text, epoch):
    """Return the records of an epoch."""
    numbers = range(len(text) * epoch, len(text) * (epoch + 1))
    return list(itertools.chain.from_iterable(map(text.records, numbers)))


def test_epochs_have_different_examples(text_config):
    text = RawText(text_config, "pretrain_text")
    first, *later = [set(_epoch(text, epoch)) for epoch in range(3)]
    assert len(first & later[0]) < 0.3 * len(first)
    assert len(first & later[1]) < 0.3 * len(first)
    assert len(later[0] & later[1]) < 0.3 * len(first)


def test_every_epoch_has_all_tokens_of_a_document(text_config):
    text = RawText(text_config, "pretrain_text")
    epochs, longest = [], 0
    for epoch in range(3):
        counts = [collections.Counter() for _ in range(len(text))]
        for document, tokens in enumerate(counts):
            for first, second in text.segments(document, epoch):
                tokens.update(first + second)
                specials = 3 if second else 2
                longest = max(longest, len(first) + len(second) + specials)
        epochs.append(counts)
    assert epochs[0] == epochs[1] == epochs[2]
    assert longest <= LENGTH
    # Epochs cut only long documents differently.
    long_documents = [c for c in epochs[0] if c.total() > LENGTH]
    assert len(long_documents) > 100


def test_the_first_epoch_equals_a_build(text_config, build):
    settings = {"split_long_lines": True, "seed": text_config.seed}
    build("built", draws="document", **settings)
    written = []
    for path in (build.tmp_path / "built").glob("pretrain_data*"):
        written += read_records(str(path))
    text = RawText(text_config, "pretrain_text")
    assert sorted(_epoch(text, 0)) == sorted(written)


def test_held_out_text_is_read_once_and_in_order(text_config):
    text_config.eval_text = text_config.pretrain_text
    text = RawText(text_config, "eval_text")
    expected = [
        decode_example(record)["input_ids"] for record in _epoch(text, 0)
    ]
    batches = _take(_iterator(text_config, training=False))
    rows = np.concatenate([batch["input_ids"] for batch in batches])
    np.testing.assert_array_equal(rows, expected)


def test_evaluation_without_held_out_data_reads_training_text(text_config):
    (warning,) = record_checks.check_records(text_config, False)
    assert "eval_text is not set" in warning
    # 900 batches are more than two epochs.
    rows = _rows(_take(_iterator(text_config, False), 900))
    text = RawText(text_config, "pretrain_text")
    records = [*_epoch(text, 0), *_epoch(text, 1)]
    expected = {tuple(decode_example(r)["input_ids"]) for r in records}
    assert expected <= set(rows)


def test_evaluation_prefers_held_out_records_to_training_text(text_config):
    text_config.eval_tfrecords = f"{text_config.folder}/eval_data*"
    files = InputFiles.of(text_config)
    assert files.text_hparam(training=False) is None


def test_documents_end_at_blanks_or_limits(text_config, tmp_path, monkeypatch):
    monkeypatch.setattr(raw_text, "_LINES_PER_DOCUMENT", 3)
    path = tmp_path / "text.txt"
    # U+200B is neither white space nor a token.
    lines = ["waa", "\u3000 \t", "wab", "wac", "", "", "\u200b", ""]
    lines += ["1", "2", "3", "4"]
    path.write_text("\n".join(lines), encoding="utf-8")
    text_config.pretrain_text = str(path)
    text = RawText(text_config, "pretrain_text")
    documents = []
    for document in range(len(text)):
        segments = text.segments(document, 0)
        documents.append([sorted(first + second) for first, second in segments])
    ids = text._tokenizer.encode
    unknown = ids("1 2 3")
    assert documents == [
        [ids("waa")],
        [ids("wab wac")],
        [],
        [unknown],
        [unknown[:1]],
    ]
    assert len(_take(_iterator(text_config), 20)) == 20


@pytest.mark.parametrize(
    ("content", "pattern", "complaint"),
    [
        (b"waa\n", "none*", "matches no file that contains data"),
        (b"", "*.txt", "matches no file that contains data"),
        (b" \n\n", "*.txt", "contain only blank lines"),
        ("\u200b\n".encode(), "*.txt", "contain no token"),
        (b"waa\nw\xe9\n", "*.txt", "text.txt: byte 5 is not UTF-8. .*iconv"),
        (b"waa\n", "*.txt, *.gz", "text.gz: these files are not plain text"),
    ],
)
def test_bad_text_is_named(text_config, tmp_path, content, pattern, complaint):
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "text.txt").write_bytes(content)
    (folder / "text.gz").write_bytes(content)
    patterns = [f"{folder}/{name.strip()}" for name in pattern.split(",")]
    text_config.pretrain_text = ",".join(patterns)
    with pytest.raises(UserError, match=f"hparam pretrain_text: .*{complaint}"):
        record_checks.check_records(text_config, True)
    (problem,) = record_checks.find_problems(text_config, True)
    assert problem.level is Level.ERROR


def test_suitable_text_passes(text_config):
    assert record_checks.check_records(text_config, True) == []


def test_text_of_unknown_words_causes_a_warning(text_config, tmp_path):
    path = tmp_path / "other.txt"
    path.write_text("waa unknown words\n")
    text_config.pretrain_text = str(path)
    (warning,) = record_checks.check_records(text_config, True)
    assert "2 of 3 sampled tokens of pretrain_text are [UNK]" in warning


def test_examples_of_text_have_a_minimum_length(text_config):
    text_config.max_seq_length = 4
    with pytest.raises(UserError, match="max_seq_length: must be at least 5"):
        RawText(text_config, "pretrain_text")


def test_an_epoch_is_counted_from_a_sample(text_config, monkeypatch):
    exact = len(_epoch(RawText(text_config, "pretrain_text"), 0))
    count = example_count.count_training_examples(text_config)
    assert count == (exact, True, 3)
    monkeypatch.setattr(raw_text, "_SAMPLED_BYTES", 20_000)
    count = example_count.count_training_examples(text_config)
    assert count.examples == pytest.approx(exact, rel=0.15) and not count.exact
