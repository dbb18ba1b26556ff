# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ids become the inputs of featurizing, and rows may be computed in groups."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from configure.errors import UserError
from electra_tf.export.saved_model import make_task_module
from electra_tf.export.signatures import (
    Inputs,
    complete,
    compute_in_groups,
    kept_lengths,
    pack,
)
from electra_tf.finetuning.classification import TextExample
from electra_tf.prediction.loading import load_finetuned


def test_lengths_kept_are_those_of_dropping_one_by_one():
    for length in range(3, 12):
        pairs = list(itertools.product(range(14), repeat=2))
        a, b = np.array(pairs, np.int32).T
        got = kept_lengths(tf.constant(a), tf.constant(b), length)
        for x, y, left_x, left_y in zip(a, b, *map(np.array, got), strict=True):
            most = length - (3 if y else 2)
            while x + y > most:
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


class Counted:
    """Stands for a model, and keeps the shapes it was asked with."""

    def __init__(self):
        self.shapes = []

    def __call__(self, inputs, extra):
        def keep(ids):
            self.shapes.append(ids.shape)
            return ids

        ids = tf.numpy_function(keep, [inputs.input_ids], tf.int32)
        ids = tf.cast(ids, tf.float32)
        places = tf.range(1.0, tf.cast(tf.shape(ids)[1], tf.float32) + 1.0)
        total = tf.reduce_sum(ids * places, 1)
        return {"sums": tf.stack([total, tf.reduce_sum(ids, 1)], 1), "x": extra}


def inputs_of(lengths, width):
    mask = np.arange(width) < np.array(lengths, int).reshape(-1, 1)
    mask = mask.astype(np.int32)
    ids = np.random.default_rng(0).integers(1, 99, mask.shape) * mask
    return Inputs(ids.astype(np.int32), mask, np.zeros_like(mask))


@given(
    lengths=st.lists(st.integers(0, 9), max_size=20),
    rows_at_once=st.integers(1, 7),
    by_length=st.booleans(),
)
def test_rows_come_back_in_their_order_from_groups_no_wider_than_needed(
    lengths, rows_at_once, by_length
):
    model = Counted()
    inputs = inputs_of(lengths, 12)
    specs = {
        "sums": tf.TensorSpec([None, 2], tf.float32),
        "x": tf.TensorSpec([None], tf.int32),
    }
    found = compute_in_groups(
        model,
        Inputs(*map(tf.constant, inputs)),
        tf.constant(lengths, tf.int32),
        specs,
        rows_at_once,
        by_length,
    )
    ids = inputs.input_ids.astype(np.float32)
    wanted = np.stack([ids @ np.arange(1.0, 13.0), ids.sum(1)], 1)
    np.testing.assert_array_equal(found["sums"], wanted)
    assert found["x"].numpy().tolist() == lengths
    ordered = sorted(lengths, reverse=True) if by_length else lengths
    heads = ordered[::rows_at_once] or [0]
    widths = [max(n, 1) if by_length else 12 for n in heads]
    assert [shape[1] for shape in model.shapes] == widths
    assert sum(shape[0] for shape in model.shapes) == len(lengths)
    assert all(shape[0] <= rows_at_once for shape in model.shapes)


@pytest.mark.parametrize("name", ["pairs", "topics"])
def test_serve_text_answers_alike_with_groups(name, finetuned_module):
    loaded, plain = finetuned_module(name)
    words = [b"the", b"of", b"and", b"to", b"ing"]
    texts = [b" ".join((words * 9)[: 7 * i % 40]) for i in range(11)]
    inputs = {"text": tf.constant(texts)}
    if name == "pairs":
        inputs["text_pair"] = tf.constant(texts[::-1])
    grouped = make_task_module(loaded, rows_at_once=4)
    assert grouped.config()["rows_at_once"] == 4
    wanted = plain.signatures()["serve_text"](**inputs)
    found = grouped.signatures()["serve_text"](**inputs)
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        if value.dtype.is_floating:
            np.testing.assert_allclose(found[key], value, atol=1e-5)
        else:
            np.testing.assert_array_equal(found[key], value)
    empty = {key: value[:0] for key, value in inputs.items()}
    for value in grouped.signatures()["serve_text"](**empty).values():
        assert value.shape[0] == 0


def test_heads_that_do_not_answer_once_per_text_refuse_groups(
    finetuned_module,
):
    loaded, _ = finetuned_module("names")
    with pytest.raises(UserError, match="--rows_at_once"):
        make_task_module(loaded, rows_at_once=8)
