# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tokens that a position sees in an encoder and in the two towers."""

import numpy as np
import pytest

from electra_tf.modeling.embeddings import Embeddings
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.two_towers import TwoTowerClozeTransformer
from tests.modeling.conftest import randomize, small_sizes

LENGTH = 7
TOKENS = np.array([3, 9, 4, 11, 5, 8, 6], np.int32)


def one_token_changed_at_a_time():
    """Return the tokens, then one row for each changed token."""
    ids = np.tile(TOKENS, [LENGTH + 1, 1])
    ids[np.arange(1, LENGTH + 1), np.arange(LENGTH)] += 10
    return ids, np.ones_like(ids), np.zeros_like(ids)


def dependence(vectors):
    """Return [i, j]: whether position i's vector changed with token j."""
    vectors = np.asarray(vectors)
    # Matrix products round rows of a batch differently, by about 1e-7.
    return (np.abs(vectors[1:] - vectors[:1]).max(-1) > 3e-6).T


@pytest.mark.parametrize(
    ("direction", "visible"),
    [(None, np.ones_like), ("ltr", np.tril), ("rtl", np.triu)],
)
def test_a_position_sees_only_tokens_in_its_direction(direction, visible):
    sizes = small_sizes()
    table = Embeddings("electra/embeddings", sizes, 8)
    encoder = Encoder("electra", sizes, table, direction)
    out = randomize(encoder)(*one_token_changed_at_a_time())
    expected = visible(np.ones([LENGTH, LENGTH]))
    np.testing.assert_array_equal(dependence(out.sequence_output), expected)


def test_two_towers_see_all_tokens_except_the_predicted_token():
    sizes = small_sizes()
    table = Embeddings("electra/embeddings", sizes, 16)
    encoder = TwoTowerClozeTransformer("g", sizes, table, table)
    context, ltr, rtl = randomize(encoder)(*one_token_changed_at_a_time())
    assert context.shape == [LENGTH + 1, LENGTH, 32]
    expected = np.ones([LENGTH, LENGTH]) - np.eye(LENGTH)
    np.testing.assert_array_equal(dependence(context)[1:-1], expected[1:-1])
    before, after = ltr.sequence_output[:, :-1], rtl.sequence_output[:, 1:]
    np.testing.assert_array_equal(context[:, 1:, :16], before)
    np.testing.assert_array_equal(context[:, :-1, 16:], after)
