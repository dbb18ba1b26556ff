# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batches: trimmed, shuffled, grouped, resumable."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data.feature_spec import (
    FeatureSpec,
    encode_example,
    shared_feature_specs,
)
from electra_tf.finetuning.preprocessing import Batches

LENGTH = 64
COUNT = 48
LABELS = FeatureSpec(
    "x_labels_mask", [LENGTH], is_int_feature=False, per_token=True
)


def write(path, specs, rows):
    with tf.io.TFRecordWriter(path) as writer:
        for row in rows:
            writer.write(encode_example(specs, row).SerializeToString())


@pytest.fixture(scope="module")
def lengths():
    return np.random.RandomState(5).randint(1, LENGTH + 1, COUNT)


@pytest.fixture(scope="module")
def batches(tmp_path_factory, lengths):
    path = str(tmp_path_factory.mktemp("records") / "x.tfrecord")
    specs = [
        *shared_feature_specs(LENGTH),
        FeatureSpec("x_eid", []),
        FeatureSpec("x_many", [LENGTH]),
        LABELS,
    ]

    def row(number, length):
        real = [1] * length + [0] * (LENGTH - length)
        return {
            "input_ids": [number + 1 if r else 0 for r in real],
            "input_mask": real,
            "x_eid": number,
            "x_many": [number] * LENGTH,
            "x_labels_mask": [float(r) for r in real],
        }

    write(path, specs, [row(*item) for item in enumerate(lengths)])
    return Batches(path, specs, COUNT, 8, LENGTH, training=True, seed=3)


def take(dataset, count):
    return list(dataset.take(count).as_numpy_iterator())


def ids(batch):
    return batch["x_eid"].tolist()


def all_ids(batches):
    return [number for batch in batches for number in ids(batch)]


def test_trimmed_batches_are_the_same_without_the_padding(batches, lengths):
    whole = take(dataclasses.replace(batches, trim=False)(), 12)
    trimmed = take(batches(), 12)
    widths = set()
    for full, part in zip(whole, trimmed, strict=True):
        assert ids(full) == ids(part)
        longest = max(lengths[i] for i in ids(part))
        width = part["input_ids"].shape[1]
        widths.add(width)
        assert width == -(-longest // 16) * 16
        for name in ("input_ids", "input_mask", "x_labels_mask"):
            np.testing.assert_array_equal(full[name][:, :width], part[name])
            assert not full[name][:, width:].any()
        assert part["x_many"].shape == (8, LENGTH)
    assert len(widths) > 1


def test_batches_are_never_shorter_than_asked(batches):
    assert batches().element_spec["input_ids"].shape.as_list() == [8, None]
    few = dataclasses.replace(batches, shortest=50, batch_size=1)
    widths = {b["input_ids"].shape[1] for b in take(few(), 48)}
    assert widths == {LENGTH}


def test_labels_that_reach_further_than_tokens_are_kept(tmp_path):
    path = str(tmp_path / "y.tfrecord")
    specs = [*shared_feature_specs(LENGTH), LABELS]
    row = {
        "input_mask": [1] * 3 + [0] * (LENGTH - 3),
        "x_labels_mask": [1.0] * 20 + [0.0] * (LENGTH - 20),
    }
    write(path, specs, [row])
    (batch,) = take(Batches(path, specs, 1, 1, LENGTH, training=False)(), 9)
    assert batch["x_labels_mask"].shape == (1, 32)
    assert batch["x_labels_mask"].sum() == 20


@pytest.mark.parametrize("by_length", [False, True])
def test_each_epoch_of_the_whole_set_has_every_example_once(batches, by_length):
    chosen = dataclasses.replace(
        batches, shuffle_whole_set=not by_length, by_length=by_length
    )
    found = take(chosen(), 12)
    widths = [b["input_ids"].shape[1] for b in found]
    assert (np.mean(widths) < 0.8 * LENGTH) == by_length
    epochs = [all_ids(found[:6]), all_ids(found[6:])]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(COUNT))
    assert epochs[0] != epochs[1]


def test_evaluation_keeps_the_order_or_sorts_by_length(batches, lengths):
    plain = dataclasses.replace(batches, training=False)
    assert all_ids(take(plain(), 99)) == list(range(COUNT))
    grouped = dataclasses.replace(plain, by_length=True)
    found = take(grouped(), 99)
    assert sorted(all_ids(found)) == list(range(COUNT))
    widths = [b["input_ids"].shape[1] for b in found]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    "changes",
    [{}, {"shuffle_whole_set": True}, {"by_length": True}],
    ids=["buffer", "whole set", "by length"],
)
def test_an_interrupted_iteration_goes_on_where_it_stopped(
    batches, tmp_path, changes
):
    chosen = dataclasses.replace(batches, **changes)
    wanted = [ids(b) for b in take(chosen(), 15)]
    iterator = iter(chosen())
    for _ in range(7):
        next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "c"))
    again = iter(chosen())
    tf.train.Checkpoint(iterator=again).restore(saved)
    found = [next(again)["x_eid"].numpy().tolist() for _ in range(8)]
    assert found == wanted[7:]
