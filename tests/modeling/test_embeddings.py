# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The embedding layer."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.seeds import SeedStream
from electra_tf.modeling.transformer import Embeddings

IDS = tf.constant([[1, 5, 5, 0], [29, 2, 3, 4]])
SEGMENTS = tf.constant([[0, 0, 1, 1], [1, 0, 0, 0]])


@pytest.fixture
def embeddings(small_config, randomize):
    return randomize(Embeddings("electra/embeddings", small_config(), 6))


def test_vectors_are_the_normalized_sum_of_three_tables(embeddings):
    total = (
        embeddings.word_embeddings.numpy()[IDS.numpy()]
        + embeddings.token_type_embeddings.numpy()[SEGMENTS.numpy()]
        + embeddings.position_embeddings.numpy()[:4]
    ).astype(np.float64)
    expected = total - total.mean(-1, keepdims=True)
    expected /= np.sqrt((expected**2).mean(-1, keepdims=True) + 1e-12)
    norm = embeddings.layer_norm
    expected = expected * norm.gamma.numpy() + norm.beta.numpy()
    np.testing.assert_allclose(embeddings(IDS, SEGMENTS), expected, atol=2e-6)


def test_names_are_the_originals(embeddings):
    names = {
        v.name.removeprefix("electra/embeddings/") for v in embeddings.variables
    }
    assert names == {
        "word_embeddings:0",
        "token_type_embeddings:0",
        "position_embeddings:0",
        "LayerNorm/beta:0",
        "LayerNorm/gamma:0",
    }


def test_a_sequence_as_long_as_the_position_table_is_accepted(embeddings):
    ids = tf.zeros([1, 12], tf.int32)
    assert embeddings(ids, ids).shape == [1, 12, 6]


def test_a_longer_sequence_is_refused(embeddings):
    ids = tf.zeros([1, 13], tf.int32)
    with pytest.raises(ValueError, match="13 wordpieces .* 12 rows.*max_seq"):
        embeddings(ids, ids)


def test_only_the_token_table_has_a_sparse_gradient(embeddings):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(embeddings(IDS, SEGMENTS) ** 3)
    tables = (
        embeddings.word_embeddings,
        embeddings.token_type_embeddings,
    )
    words, segments = tape.gradient(loss, tables)
    assert isinstance(words, tf.IndexedSlices) and words.values.shape[0] == 8
    assert tf.is_tensor(segments)


def test_dropout_needs_a_source(embeddings):
    quiet = embeddings(IDS, SEGMENTS)
    noisy = embeddings(IDS, SEGMENTS, SeedStream(tf.constant([0, 0])))
    assert 0 < np.count_nonzero(noisy.numpy() == 0) < 24
    np.testing.assert_array_equal(quiet, embeddings(IDS, SEGMENTS))
