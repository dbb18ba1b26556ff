# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Windows laid in the graph are those that training and evaluation read."""

import random

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.export.question_answering_windows import (
    cut_windows,
    shows_most_context,
)
from electra_tf.finetuning.question_answering.examples import Passage, QAExample
from electra_tf.finetuning.question_answering.featurization import WindowCutter


class _Letters:
    """A tokenizer whose wordpieces are words."""

    def tokenize(self, text):
        return text.split()


def _words(random_, count):
    return [str(random_.randrange(10, 99)) for _ in range(count)]


def _example(query, pieces):
    return QAExample(
        eid=0,
        task_name="facts",
        qas_id=None,
        qid=None,
        key="0",
        question_text=" ".join(query),
        passage=Passage(" ".join(pieces)),
    )


@pytest.mark.parametrize(
    ("length", "query_length", "stride"),
    [(12, 4, 3), (12, 4, 1), (12, 4, 50), (32, 8, 16), (8, 4, 1), (16, 0, 5)],
)
def test_windows_are_those_of_the_window_cutter(length, query_length, stride):
    random_ = random.Random(length)
    sizes = [0, 1, 2, 5, 8, 9, 10, 11, 12, 13, 20, 47, 100]
    queries = [_words(random_, random_.randrange(10)) for _ in sizes]
    passages = [_words(random_, size) for size in sizes]
    windows = cut_windows(
        tf.ragged.constant([list(map(int, q)) for q in queries], tf.int32),
        tf.ragged.constant([list(map(int, p)) for p in passages], tf.int32),
        length,
        query_length,
        stride,
        cls_id=1,
        sep_id=2,
    )
    width = windows.inputs.input_ids.shape[1]
    cutter = WindowCutter(_Letters(), length, query_length, stride)
    places = tf.range(width)[None] - windows.offset[:, None]
    places += windows.first[:, None]
    n_pieces = tf.constant(sizes, tf.int32)
    most = shows_most_context(windows, n_pieces, places).numpy()
    row = 0
    for question, (query, pieces) in enumerate(
        zip(queries, passages, strict=True)
    ):
        wanted = cutter.windows(_example(query, pieces))
        assert windows.n_windows[question] == len(wanted)
        for number, window in enumerate(wanted):
            special = {"[CLS]": 1, "[SEP]": 2}
            ids = [special.get(t) or int(t) for t in window.tokens]
            padding = [0] * (width - len(ids))
            inputs = [part[row].numpy().tolist() for part in windows.inputs]
            assert inputs[0] == ids + padding
            assert inputs[1] == [1] * len(ids) + padding
            start = ids.index(2) + 1
            segments = [0] * start + [1] * (len(ids) - start)
            assert inputs[2] == segments + padding
            assert windows.question[row] == question
            assert windows.number[row] == number
            inside = window.words >= 0
            assert windows.offset[row] == np.argmax(inside)
            assert windows.length[row] == inside.sum()
            np.testing.assert_array_equal(
                most[row, : len(ids)][inside], window.max_context[inside]
            )
            row += 1
    assert row == len(windows.question)
    assert width <= length


def test_nothing_but_empty_passages_makes_no_window():
    nothing = tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), [0, 0])
    windows = cut_windows(nothing, nothing, 12, 4, 3, 1, 2, shortest=5)
    assert windows.inputs.input_ids.shape == [0, 5]
    assert windows.n_windows.numpy().tolist() == [0, 0]
    places = tf.zeros([0, 5], tf.int32)
    assert shows_most_context(windows, tf.zeros(2, tf.int32), places).shape == (
        0,
        5,
    )
