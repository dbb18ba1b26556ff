# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Picking and replacing positions, against loops in plain Python."""

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.sequence_ops import gather_positions, scatter_update


def int_arrays(shape, low, high):
    return hnp.arrays(np.int32, shape, elements=st.integers(low, high))


@st.composite
def batches(draw):
    """A sequence, updates and positions, many of which repeat."""
    rows, length, count = (draw(st.integers(1, n)) for n in (3, 8, 10))
    return (
        draw(int_arrays((rows, length), 0, 30_000)),
        draw(int_arrays((rows, count), 0, 30_000)),
        draw(int_arrays((rows, count), 0, length - 1)),
    )


def plain_scatter(sequence, updates, positions):
    updated, replaced = sequence.copy(), np.zeros_like(sequence)
    for row in range(sequence.shape[0]):
        for position in range(1, sequence.shape[1]):
            here = updates[row][positions[row] == position]
            if len(here):
                updated[row, position] = int(here.sum()) // len(here)
                replaced[row, position] = 1
    return updated, replaced


@hypothesis.given(batches())
def test_updates_equal_the_plain_loop(batch):
    updated, replaced = scatter_update(*map(tf.constant, batch))
    expected_ids, expected_mask = plain_scatter(*batch)
    np.testing.assert_array_equal(updated, expected_ids)
    np.testing.assert_array_equal(replaced, expected_mask)


def test_the_updates_of_a_repeated_position_become_their_floored_mean():
    updated, replaced = scatter_update(
        tf.constant([[9, 9, 9, 9]]),
        tf.constant([[10, 13, 7, 7, 5]]),
        tf.constant([[2, 2, 3, 3, 0]]),
    )
    np.testing.assert_array_equal(updated, [[9, 9, 11, 7]])
    np.testing.assert_array_equal(replaced, [[0, 0, 1, 1]])


@hypothesis.given(batches(), st.booleans())
def test_picked_values_are_those_at_the_positions(batch, with_vectors):
    sequence, _, positions = batch
    if with_vectors:
        sequence = np.stack([sequence, -sequence, 2 * sequence], -1)
    picked = gather_positions(tf.constant(sequence), tf.constant(positions))
    expected = [
        values[index] for values, index in zip(sequence, positions, strict=True)
    ]
    np.testing.assert_array_equal(picked, expected)


@pytest.mark.parametrize("shape", [[4], [2, 3, 4, 5]])
def test_other_ranks_are_refused(shape):
    with pytest.raises(ValueError, match="rank 2 or 3, not"):
        gather_positions(tf.zeros(shape), tf.zeros([2, 1], tf.int32))
