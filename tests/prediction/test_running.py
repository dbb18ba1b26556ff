# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0

import itertools
import math

import numpy as np
import pytest

from electra_tf.prediction.batch_runner import batch_sizes, run_in_batches


def cost(lengths, sizes, call_cost):
    starts = [0, *itertools.accumulate(sizes)][:-1]
    tokens = sum(
        lengths[start] * size for start, size in zip(starts, sizes, strict=True)
    )
    return tokens + call_cost * len(sizes)


def all_cuts(count, most):
    if not count:
        yield []
    for size in range(1, min(most, count) + 1):
        for rest in all_cuts(count - size, most):
            yield [size, *rest]


@pytest.mark.parametrize("call_cost", [0.0, 3.0, 64.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_other_cut_costs_less(call_cost, seed):
    random = np.random.default_rng(seed)
    lengths = sorted(random.integers(1, 30, 9).tolist(), reverse=True)
    sizes = batch_sizes(lengths, 4, call_cost)
    assert sum(sizes) == 9 and max(sizes) <= 4
    least = min(cost(lengths, cut, call_cost) for cut in all_cuts(9, 4))
    assert cost(lengths, sizes, call_cost) == least


def test_where_only_calls_cost_there_are_as_few_as_can_be():
    assert batch_sizes([90, 5, 4, 3, 2], 2, math.inf) == [2, 2, 1]
    assert batch_sizes([], 2, math.inf) == batch_sizes([], 2, 1.0) == []


def test_every_row_gets_its_own_output_and_no_more_padding_than_said():
    seen = []

    def function(rows, length):
        seen.append((len(rows), length))
        return {"first": np.array([row["input_ids"][0] for row in rows])}

    lengths = [3, 60, 4, 2, 61, 500]
    rows = [{"input_ids": [i] * n} for i, n in enumerate(lengths)]
    found = run_in_batches(function, rows, lengths, 4, longest=128)
    assert [row["first"] for row in found] == list(range(6))
    assert seen == [(1, 128), (2, 61), (3, 4)]
