# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import collections
import types

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data import example_writer, input_pipeline

LENGTH = 32


@pytest.fixture
def config(build):
    """A run over a small build with held-out records."""
    build("records", held_out_fraction=0.2, num_shards=6)
    return _config(build.tmp_path / "records")


def _config(folder, **settings):
    values = {
        "pretrain_tfrecords": f"{folder}/pretrain_data.tfrecord*",
        "eval_tfrecords": f"{folder}/eval_data.tfrecord*",
        "max_seq_length": LENGTH,
        "shuffle_buffer_size": 100,
        "seed": 11,
        "deterministic_input": True,
    }
    return types.SimpleNamespace(**{**values, **settings})


def _batches(config, count, training=True):
    return _take(iter(input_pipeline.build_dataset(config, 8, training)), count)


def _take(iterator, count):
    return [
        {name: value.numpy() for name, value in next(iterator).items()}
        for _ in range(count)
    ]


def _assert_same(batches, others):
    assert len(batches) == len(others)
    for batch, other in zip(batches, others, strict=True):
        for name in example_writer.FEATURE_NAMES:
            np.testing.assert_array_equal(batch[name], other[name])


def _stored(config, pattern):
    return collections.Counter(
        tuple(example_writer.decode_example(payload)["input_ids"])
        for path in sorted(tf.io.gfile.glob(pattern))
        for payload in example_writer.read_records(path)
    )


def _rows(batches):
    return collections.Counter(
        tuple(row) for batch in batches for row in batch["input_ids"].tolist()
    )


@pytest.mark.parametrize("deterministic", [True, False])
def test_batches_are_int32_and_hold_stored_examples(config, deterministic):
    config.deterministic_input = deterministic
    batches = _batches(config, 20)
    for batch in batches:
        assert set(batch) == set(example_writer.FEATURE_NAMES)
        for value in batch.values():
            assert value.dtype == np.int32
            assert value.shape == (8, LENGTH)
    stored = _stored(config, config.pretrain_tfrecords)
    assert set(_rows(batches)) <= set(stored)
    # Without held-out records evaluation reads the training records.
    config.eval_tfrecords = "/nowhere/*"
    batches = _batches(config, 500, training=False)
    assert all(len(batch["input_ids"]) == 8 for batch in batches)
    assert set(_rows(batches)) <= set(stored)


@pytest.mark.parametrize("before", [0, 7, 400])
def test_a_saved_iterator_goes_on_exactly(config, tmp_path, before):
    # 400 batches of 8 are beyond the first time through the records.
    assert sum(_stored(config, config.pretrain_tfrecords).values()) < 3200
    iterator = iter(input_pipeline.build_dataset(config, 8, True))
    _take(iterator, before)
    path = tf.train.Checkpoint(it=iterator).write(str(tmp_path / "ckpt"))
    expected = _take(iterator, 150)
    resumed = iter(input_pipeline.build_dataset(config, 8, True))
    # As in a new process; an iterator in use is rewound as well, except to
    # the very beginning.
    _take(resumed, 2 if before else 0)
    tf.train.Checkpoint(it=resumed).read(path).assert_consumed()
    _assert_same(_take(resumed, 150), expected)


def test_workers_take_every_nth_row_and_go_on_from_whole_batches(
    config, tmp_path
):
    """A chief's checkpoint holds batches read ahead, with all rows."""
    iterator = iter(input_pipeline.build_dataset(config, 8, True))
    _take(iterator, 3)
    path = tf.train.Checkpoint(it=iterator).write(str(tmp_path / "ckpt"))
    expected = _take(iterator, 10)
    dataset = input_pipeline.build_dataset(config, 8, True, worker=(1, 4))
    resumed = iter(dataset)
    tf.train.Checkpoint(it=resumed).read(path).assert_consumed()
    found = _take(resumed, 10)
    sizes = [len(batch["input_ids"]) for batch in found]
    assert sizes == sorted(sizes, reverse=True) and set(sizes) == {8, 2}
    for batch, whole in zip(found, expected, strict=True):
        first = slice(None) if len(batch["input_ids"]) == 8 else slice(1, 8, 4)
        _assert_same([batch], [{n: x[first] for n, x in whole.items()}])


def test_held_out_records_are_read_once_and_completely(config):
    for _ in range(2):
        dataset = input_pipeline.build_dataset(config, 8, False)
        batches = [
            {n: v.numpy() for n, v in batch.items()} for batch in dataset
        ]
        assert _rows(batches) == _stored(config, config.eval_tfrecords)
