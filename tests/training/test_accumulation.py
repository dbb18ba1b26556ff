# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Micro-batches add up to the whole, whatever kind their gradients are of."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.training.loop import micro_batch_rows, sum_over_micro_batches

IDS = tf.constant([[0, 1], [1, 1], [3, 0], [2, 3]])


@pytest.fixture
def variables():
    return [
        tf.Variable(np.arange(8.0).reshape(4, 2), dtype=tf.float32),
        tf.Variable([1.0, -2.0]),
        tf.Variable(5.0),
    ]


def gradients_of(variables, count, jit_compile=False):
    """Gradients and scalars of a gathered, a dense and an unused variable."""
    table, kernel, _ = variables

    def gradients_at(index):
        rows = micro_batch_rows({"nested": {"ids": IDS}}, index, count)
        with tf.GradientTape() as tape:
            picked = tf.gather(table, rows["nested"]["ids"])
            loss = tf.reduce_sum(tf.square(picked * kernel))
        gradients = tape.gradient(loss, variables)
        return gradients, {"loss": loss, "rows": tf.constant(1.0)}

    @tf.function(jit_compile=jit_compile)
    def run():
        if count == 1:
            return gradients_at(tf.constant(0))
        return sum_over_micro_batches(gradients_at, count, variables)

    return run()


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_micro_batches_sum_to_the_whole(variables, count, jit_compile):
    whole, numbers = gradients_of(variables, 1)
    found, summed = gradients_of(variables, count, jit_compile)
    assert found[2] is None
    np.testing.assert_allclose(found[1], whole[1], rtol=1e-6)
    # Rows stay apart and in order: clipping goes by the norm of them all.
    assert isinstance(found[0], tf.IndexedSlices)
    np.testing.assert_array_equal(found[0].indices, whole[0].indices)
    np.testing.assert_allclose(found[0].values, whole[0].values, rtol=1e-6)
    np.testing.assert_array_equal(found[0].dense_shape, [4, 2])
    assert summed["loss"] == numbers["loss"]
    assert summed["rows"] == count


def test_the_graph_holds_one_micro_batch_however_many_there_are(variables):
    def nodes(count):
        def gradients_at(index):
            rows = micro_batch_rows({"ids": IDS}, index, count)["ids"]
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.gather(variables[0], rows))
            return [tape.gradient(loss, variables[0])], {"loss": loss}

        graph = tf.function(
            lambda: sum_over_micro_batches(gradients_at, count, variables[:1])
        )
        definition = graph.get_concrete_function().graph.as_graph_def()
        inner = sum(len(f.node_def) for f in definition.library.function)
        return len(definition.node) + inner

    assert nodes(4) == nodes(2)
