# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Embeddings: the longest sequence, reads, and kinds of gradients."""

import pytest
import tensorflow as tf

from electra_tf.modeling.embeddings import DisentangledEmbeddings, Embeddings
from tests.modeling.conftest import randomize, small_sizes


@pytest.fixture
def embeddings():
    return randomize(Embeddings("e", small_sizes(), 6))


def test_a_sequence_as_long_as_the_position_table_is_embedded(embeddings):
    ids = tf.zeros([1, 12], tf.int32)
    assert embeddings(ids, ids).shape == [1, 12, 6]


def test_a_sequence_beyond_the_position_table_is_refused(embeddings):
    ids = tf.zeros([1, 13], tf.int32)
    with pytest.raises(ValueError, match="13 wordpieces.* 12 rows.*max_seq"):
        embeddings(ids, ids)


def test_gradients_of_tokens_are_sparse_and_of_segments_dense(embeddings):
    ids = tf.constant([[1, 5, 5, 0], [29, 2, 3, 4]])
    segments = tf.constant([[0, 0, 1, 1], [1, 0, 0, 0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(embeddings(ids, segments) ** 3)
    tokens, segments = tape.gradient(
        loss, (embeddings.word_embeddings, embeddings.token_type_embeddings)
    )
    assert isinstance(tokens, tf.IndexedSlices)
    assert tokens.values.shape[0] == 8
    assert tf.is_tensor(segments)


@pytest.mark.parametrize("make", [Embeddings, DisentangledEmbeddings])
def test_a_table_is_read_as_a_whole(make):
    # After a gather from a variable, TensorFlow copies it at every read.
    embeddings = make("e", small_sizes(), 6)
    look_up = tf.function(embeddings.look_up)
    graph = look_up.get_concrete_function(tf.constant([[1, 5]])).graph
    kinds = {operation.type for operation in graph.get_operations()}
    assert "ReadVariableOp" in kinds
    assert "ResourceGather" not in kinds
