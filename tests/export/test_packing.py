# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Cutting and joining in the graph is what featurizing does, row by row."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.export.signatures import complete, kept_lengths, pack
from electra_tf.finetuning.classification.task import TextExample
from electra_tf.prediction.loading import load_finetuned


def test_lengths_kept_are_those_of_dropping_one_by_one():
    for length in range(3, 12):
        pairs = list(itertools.product(range(14), repeat=2))
        a, b = np.array(pairs, np.int32).T
        got = kept_lengths(tf.constant(a), tf.constant(b), length)
        for x, y, left_x, left_y in zip(a, b, *map(np.array, got), strict=True):
            room = length - (3 if y else 2)
            while x + y > room:
                x, y = (x - 1, y) if x > y else (x, y - 1)
            assert (left_x, left_y) == (x, y)


class _Words:
    """A tokenizer of numbers: one id a word."""

    def encode(self, text):
        return [int(word) for word in text.split()]

    def convert_tokens_to_ids(self, tokens):
        return [{"[CLS]": 101, "[SEP]": 102}[token] for token in tokens]


@pytest.mark.parametrize("length", [5, 6, 9, 16])
def test_packed_rows_are_those_of_featurize(finetuned_folder, length):
    loaded = load_finetuned(finetuned_folder("pairs"), max_seq_length=length)
    task = loaded.task()
    task.tokenizer = _Words()
    task._cls_id, task._sep_id = 101, 102
    random = np.random.default_rng(0)
    sizes = [(0, 0), (0, 1), (1, 0), (0, 20), (20, 0), (20, 20), (20, 19)]
    sizes += [tuple(random.integers(0, 20, 2)) for _ in range(40)]
    rows = [[list(random.integers(1, 99, n)) for n in pair] for pair in sizes]
    first, second = (
        tf.RaggedTensor.from_row_splits(
            tf.constant([*itertools.chain(*column)], tf.int32),
            np.cumsum([0, *map(len, column)]),
        )
        for column in zip(*rows, strict=True)
    )
    for pair, other in ((True, second), (False, None)):
        inputs, truncated = pack(first, other, length, 101, 102)
        for i, (a, b) in enumerate(rows):
            texts = [" ".join(map(str, ids)) for ids in (a, b)]
            before = dict(task.row_report.losses)
            wanted = task.featurize(
                TextExample(
                    eid=0,
                    task_name="pairs",
                    text_a=texts[0],
                    text_b=texts[1] if pair else None,
                ),
                False,
            )
            assert bool(truncated[i]) == (task.row_report.losses != before)
            width = inputs.input_ids.shape[1]
            for name, got in inputs._asdict().items():
                assert list(got[i]) == wanted[name][:width], (name, a, b)
                assert not any(wanted[name][width:])


def test_mask_and_segments_follow_from_the_ids():
    ids = tf.constant([[5, 9, 6, 8, 6, 0, 0], [5, 7, 7, 7, 7, 7, 6]])
    none = tf.zeros([0, 0], tf.int32)
    for mask, segments in ((None, None), (none, none)):
        got = complete(ids, mask, segments, 0, 6)
        assert got.input_mask.numpy().tolist() == [
            [1, 1, 1, 1, 1, 0, 0],
            [1] * 7,
        ]
        assert got.segment_ids.numpy().tolist() == [
            [0, 0, 0, 1, 1, 0, 0],
            [0] * 7,
        ]


def test_given_mask_and_segments_are_used():
    ids = tf.constant([[5, 9, 6]])
    mask, segments = tf.constant([[1, 0, 1]]), tf.constant([[1, 1, 0]])
    got = complete(ids, mask, segments, 0, 6)
    np.testing.assert_array_equal(got.input_mask, mask)
    np.testing.assert_array_equal(got.segment_ids, segments)


def test_no_rows_make_no_rows():
    nothing = tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), [])
    inputs, truncated = pack(nothing, nothing, 8, 1, 2)
    assert inputs.input_ids.shape == (0, 1)
    assert truncated.shape == (0,)
