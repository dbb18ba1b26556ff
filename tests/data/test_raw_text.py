# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import collections
import itertools
import types

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.data import input_pipeline, raw_text, record_checks
from electra_tf.data.example_writer import decode_example, read_records
from electra_tf.data.raw_text import RawText

LENGTH = 32


@pytest.fixture
def config(corpus_dir, vocab_file, tmp_path):
    """A run over three files of documents, all known words."""
    return types.SimpleNamespace(
        pretrain_text=f"{corpus_dir}/*.txt",
        eval_text="",
        pretrain_tfrecords=f"{tmp_path}/none*",
        eval_tfrecords="",
        vocab_file=vocab_file,
        max_seq_length=LENGTH,
        shuffle_buffer_size=50,
        seed=11,
        deterministic_input=True,
        generator="sized",
        do_lower_case=True,
        strip_accents=True,
    )


def _take(iterator, count):
    return [next(iterator)["input_ids"].numpy() for _ in range(count)]


def _iterator(config, training=True):
    return iter(input_pipeline.build_dataset(config, 8, training))


def _epoch(text, epoch):
    """The records of an epoch."""
    numbers = range(len(text) * epoch, len(text) * (epoch + 1))
    return list(itertools.chain.from_iterable(map(text.records, numbers)))


def _tokens(text, document, epoch):
    pairs = text.segments(document, epoch)
    return collections.Counter(n for a, b in pairs for n in a + b)


def test_epochs_hold_every_token_the_first_as_built(config, build):
    text = RawText(config, "pretrain_text")
    orders = [_epoch(text, epoch) for epoch in range(3)]
    for one, other in itertools.combinations(orders, 2):
        assert len(set(one) & set(other)) < 0.3 * len(set(one))
    long = 0
    for document in range(len(text)):
        found = [_tokens(text, document, epoch) for epoch in range(3)]
        assert found[0] == found[1] == found[2]
        for pairs in (text.segments(document, epoch) for epoch in range(3)):
            lengths = [len(a) + len(b) + 2 + bool(b) for a, b in pairs]
            assert max(lengths) <= LENGTH
        long += found[0].total() > LENGTH
    assert long > 100  # Of those the cuts move.
    build("records", draws="document", split_long_lines=True, seed=config.seed)
    paths = (build.tmp_path / "records").glob("pretrain_data*")
    written = [record for path in paths for record in read_records(str(path))]
    text = RawText(config, "pretrain_text")
    assert sorted(_epoch(text, 0)) == sorted(written)


@pytest.mark.parametrize("before", [0, 7, 900])
def test_a_saved_iterator_goes_on_exactly(config, tmp_path, before):
    # 900 batches are in the middle of a later epoch.
    assert 2 * len(_epoch(RawText(config, "pretrain_text"), 0)) < 7200
    iterator = _iterator(config)
    _take(iterator, before)
    path = tf.train.Checkpoint(it=iterator).write(str(tmp_path / "ckpt"))
    expected = _take(iterator, 100)
    resumed = _iterator(config)
    tf.train.Checkpoint(it=resumed).read(path).assert_consumed()
    np.testing.assert_array_equal(_take(resumed, 100), expected)


def test_held_out_text_is_read_once_and_in_order(config):
    config.eval_text = config.pretrain_text
    text = RawText(config, "eval_text")
    wanted = [decode_example(record)["input_ids"] for record in _epoch(text, 0)]
    for _ in range(2):
        found = [b["input_ids"].numpy() for b in _iterator(config, False)]
        np.testing.assert_array_equal(np.concatenate(found), wanted)


def test_evaluation_without_held_out_data_reads_training_text(config, build):
    (warning,) = record_checks.check_records(config, False)
    assert "No eval_text" in warning
    # 900 batches are more than two epochs.
    read = {tuple(r) for b in _take(_iterator(config, False), 900) for r in b}
    text = RawText(config, "pretrain_text")
    for record in [*_epoch(text, 0), *_epoch(text, 1)]:
        assert tuple(decode_example(record)["input_ids"]) in read
    build("records", held_out_fraction=0.2)
    config.eval_tfrecords = f"{build.tmp_path}/records/eval_data*"
    assert record_checks.text_hparam(config, training=False) is None


def test_documents_end_at_blank_lines_or_limits(config, tmp_path, monkeypatch):
    monkeypatch.setattr(raw_text, "_LINES_PER_DOCUMENT", 3)
    path = tmp_path / "text.txt"
    # U+200B is no white space, and no token.
    lines = ["waa", "\u3000 \t", "wab", "wac", "", "", "\u200b", "", *"1234"]
    path.write_text("\n".join(lines), encoding="utf-8")
    config.pretrain_text = str(path)
    text = RawText(config, "pretrain_text")
    found = [text.segments(document, 0) for document in range(len(text))]
    ids = text._tokenizer.encode
    one, two, unknown = (ids(words) for words in ("waa", "wab wac", "1 2 3"))
    tokens = [[sorted(a + b) for a, b in pairs] for pairs in found]
    assert tokens == [[one], [two], [], [unknown], [unknown[:1]]]
    assert len(_take(_iterator(config), 20)) == 20


@pytest.mark.parametrize(
    ("content", "pattern", "complaint"),
    [
        (b"waa\n", "none*", "no file with text matches"),
        (b"", "*.txt", "no file with text matches"),
        (b" \n\n", "*.txt", "only blank lines"),
        ("\u200b\n".encode(), "*.txt", "hold no token"),
        (b"waa\nw\xe9\n", "*.txt", "text.txt: byte 5 is not UTF-8; .*iconv"),
        (b"waa\n", "*.txt, *.gz", "text.gz: not plain text"),
    ],
)
def test_bad_text_is_refused(config, tmp_path, content, pattern, complaint):
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "text.txt").write_bytes(content)
    (folder / "text.gz").write_bytes(content)
    patterns = [f"{folder}/{name.strip()}" for name in pattern.split(",")]
    config.pretrain_text = ",".join(patterns)
    with pytest.raises(UserError, match=f"hparam pretrain_text: .*{complaint}"):
        record_checks.check_records(config, True)
    problems = []
    assert record_checks.check_records(config, True, problems) == []
    assert len(problems) == 1


def test_text_or_length_that_does_not_suit_is_told(config, tmp_path):
    assert record_checks.check_records(config, True) == []
    path = tmp_path / "other.txt"
    path.write_text("waa unknown words\n")
    config.pretrain_text = str(path)
    (warning,) = record_checks.check_records(config, True)
    assert "2 of 3 tokens looked at in pretrain_text are [UNK]" in warning
    config.strict = True
    with pytest.raises(UserError, match=r"(?s)are \[UNK\].*--strict"):
        record_checks.check_records(config, True)
    config.max_seq_length = 4
    with pytest.raises(UserError, match="max_seq_length: must be at least 5"):
        RawText(config, "pretrain_text")


def test_an_epoch_is_counted_from_a_sample(config, monkeypatch):
    exact = len(_epoch(RawText(config, "pretrain_text"), 0))
    found = record_checks.count_training_examples(config)
    assert found == (exact, True, 3)
    monkeypatch.setattr(raw_text, "_SAMPLED_BYTES", 20_000)
    found = record_checks.count_training_examples(config)
    assert found.examples == pytest.approx(exact, rel=0.15)
    assert not found.exact
