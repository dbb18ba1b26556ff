# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sentences become examples by the plain rule, and the original's bytes."""

import gzip
import json
import random

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from electra_tf.data.build_options import BuildOptions
from electra_tf.data.corpora import Corpus, list_sources
from electra_tf.data.example_writer import (
    FEATURE_NAMES,
    BrokenRecordError,
    ExampleBuilder,
    ExampleEncoder,
    ExampleWriter,
    Job,
    decode_example,
    frame_record,
    read_records,
)
from electra_tf.text.tokenization import FullTokenizer

SENTENCES = st.lists(
    st.one_of(st.integers(0, 12), st.integers(0, 90)), max_size=40
)


def _sentences(lengths):
    """Sentences of distinct tokens, so that tokens can be followed."""
    tokens = iter(range(10**6))
    return [[next(tokens) for _ in range(n)] for n in lengths]


def _run(lengths, max_length, seed, split):
    builder = ExampleBuilder(max_length, random.Random(seed), split)
    examples = []
    for sentence in _sentences(lengths):
        examples += builder.add(sentence)
    return builder, examples + builder.flush()


@hypothesis.given(
    SENTENCES, st.integers(5, 40), st.integers(0, 2**32), st.booleans()
)
def test_examples_fit_and_losses_are_counted(lengths, max_length, seed, split):
    builder, examples = _run(lengths, max_length, seed, split)
    for first, second in examples:
        assert first
        specials = 3 if second else 2
        assert len(first) + len(second) + specials <= max_length
    kept = [t for first, second in examples for t in first + second]
    assert len(kept) == len(set(kept)) and set(kept) <= set(range(sum(lengths)))
    assert builder.tokens_in == sum(lengths)
    assert builder.tokens_dropped == sum(lengths) - len(kept)
    assert not (split and builder.tokens_dropped)


def _plain_examples(sentences, max_length, rng):
    """The rule written as plainly as possible, for comparison."""
    target, waiting, examples = max_length, [], []
    for sentence in [*sentences, None]:
        if sentence is not None:
            waiting.append(sentence)
        length = sum(map(len, waiting))
        ends = sentence is None and length
        if not (ends or (sentence is not None and length >= target)):
            continue
        limit = 100000 if rng.random() < 0.1 else (target - 3) // 2
        first, second = [], []
        for s in waiting:
            if not first or len(first) + len(s) < limit:
                first = first + s
            elif not second and len(first) < limit and rng.random() < 0.5:
                first = first + s
            else:
                second = second + s
        first = first[: max_length - 2]
        second = second[: max(0, max_length - len(first) - 3)]
        examples.append((first, second))
        waiting = []
        target = max_length
        if rng.random() < 0.05:
            target = rng.randint(5, max_length)
    return examples


@hypothesis.given(SENTENCES, st.integers(5, 40), st.integers(0, 2**32))
def test_examples_and_draws_equal_the_plain_rule(lengths, max_length, seed):
    builder, examples = _run(lengths, max_length, seed, split=False)
    rng = random.Random(seed)
    assert examples == _plain_examples(_sentences(lengths), max_length, rng)
    assert builder.random.random() == rng.random()


LENGTH = 24
IDS = st.lists(st.integers(0, 29_999), min_size=1, max_size=10)
ENCODER = ExampleEncoder(LENGTH, 101, 102, 30_000)


class _CountedSlices(list):
    """A list that counts the items that slices of it copy."""

    copied = 0

    def __getitem__(self, key):
        found = super().__getitem__(key)
        if isinstance(key, slice):
            self.copied += len(found)
        return found


@pytest.mark.parametrize("length", [1_000, 64_000])
def test_each_token_of_a_long_line_is_copied_once(length):
    line = _CountedSlices(range(length))
    builder = ExampleBuilder(128, random.Random(1), split_long_lines=True)
    examples = builder.add(line) + builder.flush()
    assert [t for a, b in examples for t in a + b] == list(range(length))
    assert line.copied == length


def _plain_example(first, second):
    ids = [101, *first, 102]
    segments = [0] * len(ids)
    if second:
        ids += [*second, 102]
        segments += [1] * (len(second) + 1)
    example = tf.train.Example()
    columns = (ids, [1] * len(ids), segments)
    for name, values in zip(FEATURE_NAMES, columns, strict=True):
        values = values + [0] * (LENGTH - len(values))
        example.features.feature[name].int64_list.value.extend(values)
    return example


@hypothesis.given(IDS, st.one_of(st.just([]), IDS))
def test_bytes_equal_the_deterministic_protocol_buffer(first, second):
    expected = _plain_example(first, second)
    payload = ENCODER.encode(first, second)
    assert payload == expected.SerializeToString(deterministic=True)
    features = expected.features.feature
    # Others write the features in any order.
    for example in (payload, expected.SerializeToString()):
        assert decode_example(example) == {
            name: list(features[name].int64_list.value)
            for name in FEATURE_NAMES
        }


@hypothesis.given(st.lists(st.binary(max_size=70), min_size=1))
def test_framing_equals_the_tensorflow_writer(tmp_path_factory, payloads):
    path = str(tmp_path_factory.mktemp("records") / "written")
    with tf.io.TFRecordWriter(path) as writer:
        for payload in payloads:
            writer.write(payload)
    with open(path, "rb") as file:
        assert b"".join(map(frame_record, payloads)) == file.read()
    assert list(read_records(path)) == payloads


@pytest.mark.parametrize("cut", [1, 5, 20, 60])
def test_broken_files_are_named_with_record_and_byte(tmp_path, cut):
    path = tmp_path / "records"
    framed = bytearray().join(map(frame_record, [b"a" * 50, b"b" * 50]))
    path.write_bytes(framed[:-cut])
    with pytest.raises(BrokenRecordError, match=r"record 1 at byte 66"):
        list(read_records(str(path)))
    framed[30] ^= 1
    path.write_bytes(framed)
    with pytest.raises(BrokenRecordError, match="damaged payload"):
        list(read_records(str(path)))


CONFIGS = {
    "seq128_blanks_false": (128, False, True, 1, 12345),
    "seq128_blanks_true": (128, True, True, 1, 12345),
    "seq64_blanks_false": (64, False, True, 1, 12345),
    "seq64_blanks_true": (64, True, True, 1, 12345),
    "seq128_blanks_true_3files_cased": (128, True, False, 3, 777),
}


def _write(config, corpus_dir, vocab_file, output_dir):
    """Builds as one process does; returns examples, file order, next draw."""
    length, blanks, lower, shards, seed = config
    options = BuildOptions(
        Corpus(str(corpus_dir), blanks_separate_docs=blanks),
        str(vocab_file),
        str(output_dir),
        max_seq_length=length,
        do_lower_case=lower,
        num_shards=shards,
        seed=seed,
    )
    sources = list_sources(options.corpus).sources
    tokenizer = FullTokenizer(str(vocab_file), lower)
    writer = ExampleWriter(options, Job(0, 1, sources), tokenizer)
    writer.random.shuffle(sources)
    for source in sources:
        writer.write(source)
    writer.finish()
    start = f"{output_dir}/pretrain_data.tfrecord"
    files = [[*read_records(f"{start}-{i}-of-{shards}")] for i in range(shards)]
    count = sum(map(len, files))
    payloads = [files[n % shards][n // shards] for n in range(count)]
    examples = [*map(decode_example, payloads)]
    return examples, [source.name for source in sources], writer.random.random()


def _assert_equal(examples, npz_path):
    expected = np.load(npz_path)
    for name in FEATURE_NAMES:
        found = np.array([example[name] for example in examples])
        np.testing.assert_array_equal(found, expected[name])


@pytest.mark.parametrize("name", CONFIGS)
def test_examples_equal_the_originals(name, golden_dir, tmp_path):
    folder = golden_dir / "pretrain_data"
    info = json.loads((folder / "info.json").read_text())
    places = (folder / "corpus", golden_dir / "vocab.txt", tmp_path)
    examples, order, draw = _write(CONFIGS[name], *places)
    _assert_equal(examples, folder / f"{name}.npz")
    assert draw == info[name]["next_random_random_after_run"]
    assert order == info["file_order_after_shuffle"][str(CONFIGS[name][4])]


def test_examples_equal_the_originals_kept_here(request, tmp_path):
    fixture = request.config.rootpath / "tests/fixtures/golden/pretrain_data"
    (tmp_path / "corpus").mkdir()
    (tmp_path / "records").mkdir()
    for packed in [fixture / "vocab.txt.gz", *fixture.glob("corpus/*.gz")]:
        target = tmp_path / packed.relative_to(fixture).with_suffix("")
        target.write_bytes(gzip.decompress(packed.read_bytes()))
    places = (tmp_path / name for name in ("corpus", "vocab.txt", "records"))
    examples, _, draw = _write(CONFIGS["seq64_blanks_true"], *places)
    _assert_equal(examples, fixture / "seq64_blanks_true.npz")
    assert draw == 0.9334035149326606
