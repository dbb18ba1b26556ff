# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The encoder and the two towers: what depends on what."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.seeds import SeedStream
from electra_tf.modeling.transformer import (
    Embeddings,
    Encoder,
    TwoTowerClozeTransformer,
)

LENGTH = 7
TOKENS = np.array([3, 9, 4, 11, 5, 8, 6], np.int32)


@pytest.fixture
def make_encoder(small_config, randomize):
    def make(width=16, direction=None, **sizes):
        config = small_config(**sizes)
        table = Embeddings("electra/embeddings", config, width)
        return randomize(Encoder("electra", config, table, direction))

    return make


def one_token_changed_at_a_time():
    """Row 0 holds the tokens; row 1 + j another token at j."""
    ids = np.tile(TOKENS, [LENGTH + 1, 1])
    ids[np.arange(1, LENGTH + 1), np.arange(LENGTH)] += 10
    return ids, np.ones_like(ids), np.zeros_like(ids)


def dependence(vectors):
    """[i, j]: whether position i's vector changed with token j."""
    vectors = np.asarray(vectors)
    # Products round differently from row to row of a batch, by about 1e-7.
    changed = np.abs(vectors[1:] - vectors[:1]).max(-1) > 3e-6  # [j, i]
    return changed.T


def test_a_projection_exists_only_where_widths_differ(make_encoder):
    def projections(encoder):
        return {v.name for v in encoder.variables if "project" in v.name}

    assert make_encoder(16).embeddings_project is None
    assert projections(make_encoder(16)) == set()
    assert projections(make_encoder(8)) == {
        "electra/embeddings_project/kernel:0",
        "electra/embeddings_project/bias:0",
    }


@pytest.mark.parametrize("width", [8, 16])
def test_outputs_have_the_documented_shapes(make_encoder, width):
    out = make_encoder(width)(*one_token_changed_at_a_time())
    batch = LENGTH + 1
    assert out.embedding_output.shape == [batch, LENGTH, 16]
    assert out.all_layers.shape == [2, batch, LENGTH, 16]
    assert [p.shape for p in out.attention_probs] == [
        [batch, 2, LENGTH, LENGTH]
    ] * 2


def test_the_pooled_output_is_the_first_tokens_vector(make_encoder):
    out = make_encoder()(*one_token_changed_at_a_time())
    np.testing.assert_array_equal(out.pooled_output, out.all_layers[-1, :, 0])
    np.testing.assert_array_equal(out.sequence_output, out.all_layers[-1])


def test_without_blocks_the_embeddings_are_the_output(make_encoder):
    out = make_encoder(8, num_hidden_layers=0)(*one_token_changed_at_a_time())
    np.testing.assert_array_equal(out.sequence_output, out.embedding_output)


def test_padding_does_not_influence_real_positions(make_encoder):
    encoder = make_encoder(8)
    ids = np.stack([TOKENS, TOKENS])
    ids[1, 4:] = [20, 21, 22]
    mask = np.array([[1, 1, 1, 1, 0, 0, 0]] * 2)
    vectors = encoder(ids, mask, np.zeros_like(ids)).sequence_output
    np.testing.assert_allclose(vectors[0, :4], vectors[1, :4], atol=1e-6)
    assert np.abs(vectors[0, 4:] - vectors[1, 4:]).max() > 1e-3
    short = encoder(ids[:1, :4], mask[:1, :4], np.zeros([1, 4], np.int32))
    np.testing.assert_allclose(
        vectors[0, :4], short.sequence_output[0], atol=1e-5
    )


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        (None, np.ones([LENGTH, LENGTH])),
        ("ltr", np.tril(np.ones([LENGTH, LENGTH]))),
        ("rtl", np.triu(np.ones([LENGTH, LENGTH]))),
    ],
)
def test_a_position_sees_exactly_its_directions_tokens(
    make_encoder, direction, expected
):
    encoder = make_encoder(8, direction)
    out = encoder(*one_token_changed_at_a_time())
    np.testing.assert_array_equal(dependence(out.sequence_output), expected)


def test_two_towers_see_every_token_but_their_own(small_config, randomize):
    config = small_config()
    table = Embeddings("electra/embeddings", config, 16)
    towers = randomize(TwoTowerClozeTransformer("g", config, table, table))
    context, ltr, rtl = towers(*one_token_changed_at_a_time())
    assert context.shape == [LENGTH + 1, LENGTH, 32]
    interior = dependence(context)[1:-1]
    expected = np.ones([LENGTH, LENGTH]) - np.eye(LENGTH)
    np.testing.assert_array_equal(interior, expected[1:-1])
    np.testing.assert_array_equal(
        context[:, 1:, :16], ltr.sequence_output[:, :-1]
    )
    np.testing.assert_array_equal(
        context[:, :-1, 16:], rtl.sequence_output[:, 1:]
    )


def test_towers_are_named_by_direction_and_share_the_table(small_config):
    config = small_config(num_hidden_layers=1)
    table = Embeddings("electra/embeddings", config, 16)
    towers = TwoTowerClozeTransformer("generator", config, table, table)
    names = [v.name for v in towers.variables]
    assert len(names) == len(set(names)) == 5 + 2 * 16
    scopes = {name.split("/")[0] for name in names}
    assert scopes == {"electra", "generator_ltr", "generator_rtl"}


def test_a_sequence_longer_than_the_position_table_is_refused(make_encoder):
    ids = tf.zeros([1, 13], tf.int32)
    with pytest.raises(ValueError, match="13 wordpieces .* 12 rows"):
        make_encoder()(ids, ids, ids)


def test_dropout_differs_by_step_and_scope_and_repeats_with_the_seed(
    make_encoder,
):
    encoder = make_encoder(hidden_dropout_prob=0.3)
    inputs = one_token_changed_at_a_time()

    def run(step, scope=""):
        source = SeedStream(tf.constant([1, step]), scope)
        return encoder(*inputs, source).sequence_output.numpy()

    np.testing.assert_array_equal(run(1), run(1))
    assert (run(1) != run(2)).any()
    assert (run(1) != run(1, "other/")).any()
