# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes, embeddings, attention, the encoder and the two towers."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling import attention as attention_module
from electra_tf.modeling.attention import SelfAttention, attention_bias
from electra_tf.modeling.embeddings import Embeddings
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.modeling.layers import dropout
from electra_tf.modeling.two_towers import TwoTowerClozeTransformer
from tests.conftest import read_json
from tests.modeling.conftest import randomize, small_config


def test_heads_and_inner_width_follow_an_overridden_hidden_size():
    for hidden, heads in {32: 1, 64: 1, 100: 1, 128: 2, 192: 3}.items():
        config = EncoderConfig.for_size("base", 100, {"hidden_size": hidden})
        assert config.num_attention_heads == heads
        assert config.intermediate_size == 4 * hidden


@pytest.mark.parametrize(
    ("size", "overrides", "words"),
    [
        ("small", {"hidden_size": 200}, r"\(200\).*\(3\).*num_attention_heads"),
        ("small", {"num_attention_heads": 0}, "num_attention_heads"),
        ("small", {"hidden_dropout_prob": 1.0}, "hidden_dropout_prob is 1.0"),
        ("small", {"attention_probs_dropout_prob": -0.1}, "prob is -0.1"),
    ],
)
def test_what_makes_no_model_is_refused(size, overrides, words):
    with pytest.raises(ValueError, match=words):
        EncoderConfig.for_size(size, 100, overrides)


@pytest.mark.parametrize(
    ("hidden", "layers", "fractions", "expected"),
    [
        (256, 3, (0.25, 0.5), (64, 2)),
        (768, 5, (0.33333, 0.5), (256, 2)),
        (10, 7, (0.25, 0.5), (2, 4)),
        (14, 7, (0.25, 1.0), (4, 7)),
    ],
)
def test_scaled_sizes_round_half_to_even(hidden, layers, fractions, expected):
    config = EncoderConfig(100, hidden, layers, num_attention_heads=1)
    scaled = config.scaled(*fractions)
    assert (scaled.hidden_size, scaled.num_hidden_layers) == expected
    assert scaled.intermediate_size == 4 * scaled.hidden_size
    assert scaled.num_attention_heads == max(1, scaled.hidden_size // 64)


def test_resolved_sizes_equal_the_recorded_ones(golden_dir):
    recorded = read_json(golden_dir / "variables_all_configs.json")
    recorded = {n: recorded[n] for n in recorded if n.startswith("pretrain/")}
    assert len(recorded) == 15
    for name, entry in recorded.items():
        hparams = entry["hparams"]
        config = EncoderConfig.for_size(
            hparams.get("model_size", "small"),
            30522,
            hparams.get("model_hparam_overrides"),
            hparams.get("debug", False),
        )
        expected = entry["bert_config"] | {"layer_norm_eps": 1e-12}
        assert dataclasses.asdict(config) == expected, name


def test_positions_are_limited_token_gradients_sparse():
    embeddings = randomize(Embeddings("e", small_config(), 6))
    ids = tf.zeros([1, 12], tf.int32)
    assert embeddings(ids, ids).shape == [1, 12, 6]
    ids = tf.zeros([1, 13], tf.int32)
    with pytest.raises(ValueError, match="13 wordpieces .* 12 rows.*max_seq"):
        embeddings(ids, ids)
    ids = tf.constant([[1, 5, 5, 0], [29, 2, 3, 4]])
    segments = tf.constant([[0, 0, 1, 1], [1, 0, 0, 0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(embeddings(ids, segments) ** 3)
    tables = embeddings.word_embeddings, embeddings.token_type_embeddings
    words, segments = tape.gradient(loss, tables)
    assert isinstance(words, tf.IndexedSlices) and words.values.shape[0] == 8
    assert tf.is_tensor(segments)


MASK = tf.constant([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


@pytest.mark.parametrize("direction", [None, "ltr", "rtl"])
def test_padding_and_what_lies_ahead_are_hidden(direction):
    bias = attention_bias(MASK, direction)
    assert bias.shape == [2, 1, 5 if direction else 1, 5]
    assert bias.dtype == tf.float32
    for row, _, query, key in np.ndindex(*bias.shape):
        ahead = {None: False, "ltr": key > query, "rtl": key < query}
        hidden = ahead[direction] or MASK[row, key] == 0
        assert bias[row, 0, query, key] == (-10000 if hidden else 0)
    with pytest.raises(ValueError, match="ltr or rtl, not 'both'"):
        attention_bias(MASK, "both")


def exactly(tensors):
    return tf.nest.map_structure(lambda t: tf.cast(t, tf.float64), tensors)


def plain_attention(hidden, bias, weights, heads):
    """Returns mixed values and probabilities, one operation at a time."""
    batch, length, width = hidden.shape

    def project(part):
        out = tf.einsum("blh,hk->blk", hidden, weights[f"{part}/kernel"])
        out += weights[f"{part}/bias"]
        return tf.reshape(out, [batch, length, heads, width // heads])

    scores = tf.einsum("bqad,bkad->baqk", project("query"), project("key"))
    scores = scores / np.sqrt(width // heads) + bias
    scores = tf.exp(scores - tf.reduce_max(scores, -1, keepdims=True))
    probs = scores / tf.reduce_sum(scores, -1, keepdims=True)
    mixed = tf.einsum("baqk,bkad->bqad", probs, project("value"))
    return tf.reshape(mixed, [batch, length, width]), probs


# Four heads of 4 units scale the query (a power of two), two of 8 the scores.
@pytest.fixture(params=[4, 2], ids=["scaled_query", "scaled_scores"])
def attention(request):
    config = small_config(num_attention_heads=request.param)
    return randomize(SelfAttention("s/attention/self", config))


HIDDEN = np.random.RandomState(5).randn(2, 5, 16).astype(np.float32)


def test_gradients_are_autodiff_s_and_the_key_bias_has_none(attention):
    bias = attention_bias(MASK, "ltr")
    upstream = np.random.RandomState(6).randn(2, 5, 16)
    inputs = tf.constant(HIDDEN)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        values = attention(inputs, bias)
    sources = {"inputs": inputs}
    for part in ("query", "key", "value"):
        layer = getattr(attention, part)
        sources |= {f"{part}/kernel": layer.kernel, f"{part}/bias": layer.bias}
    upstream_32 = tf.constant(upstream, tf.float32)
    actual = tape.gradient(values[0], sources, upstream_32)
    exact, heads = exactly(sources), attention.config.num_attention_heads
    with tf.GradientTape() as tape:
        tape.watch(exact)
        plain = plain_attention(exact["inputs"], exactly(bias), exact, heads)
    expected = tape.gradient(plain[0], exact, tf.constant(upstream))
    for found, wanted in zip(values, plain, strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-6)
    for name in sources:
        pair = actual[name], expected[name]
        np.testing.assert_allclose(*pair, rtol=1e-4, atol=1e-5, err_msg=name)
    np.testing.assert_array_equal(actual["key/bias"], np.zeros(16))
    assert np.abs(actual["query/bias"]).max() > 1e-3


def test_a_query_without_visible_keys_has_the_raw_scores(attention):
    mixed, probs = attention(HIDDEN, attention_bias(tf.zeros_like(MASK)))
    raw = attention(HIDDEN, attention_bias(tf.ones_like(MASK)))
    # float32 resolves 0.001 at 10,000.
    np.testing.assert_allclose(probs, raw[1], atol=2e-3)
    np.testing.assert_allclose(mixed, raw[0], atol=5e-3)
    np.testing.assert_allclose(tf.reduce_sum(probs, -1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(tf.float32, 1e-6), (tf.bfloat16, 0.02)]
)
def test_gradients_through_dropout_equal_autodiff_s(dtype, tolerance):
    random = np.random.RandomState(7)
    scores = tf.constant(random.randn(2, 3, 5, 5) * 2, dtype)
    upstream = tf.constant(random.randn(2, 3, 5, 5), dtype)
    bias, seed = attention_bias(MASK), tf.constant([3, 4])
    with tf.GradientTape() as tape:
        tape.watch(scores)
        dropped = attention_module._attention_probs(scores, bias, 0.4, seed)
    actual = tape.gradient(dropped, scores, upstream)
    # What dropout makes of ones is the mask, rescaled.
    mask = exactly(dropout(tf.ones_like(scores), 0.4, seed))
    exact = exactly(scores)
    with tf.GradientTape() as tape:
        tape.watch(exact)
        expected_dropped = tf.nn.softmax(exact + exactly(bias)) * mask
    expected = tape.gradient(expected_dropped, exact, exactly(upstream))
    assert 0.2 < np.mean(mask == 0) < 0.6
    assert dropped.dtype == actual.dtype == dtype
    for found, wanted in ((dropped, expected_dropped), (actual, expected)):
        np.testing.assert_allclose(exactly(found), wanted, atol=tolerance)


LENGTH = 7
TOKENS = np.array([3, 9, 4, 11, 5, 8, 6], np.int32)


def one_token_changed_at_a_time():
    """Row 0 holds the tokens; row 1 + j another token at j."""
    ids = np.tile(TOKENS, [LENGTH + 1, 1])
    ids[np.arange(1, LENGTH + 1), np.arange(LENGTH)] += 10
    return ids, np.ones_like(ids), np.zeros_like(ids)


def dependence(vectors):
    """[i, j]: whether position i's vector changed with token j."""
    vectors = np.asarray(vectors)
    # Products round differently from row to row of a batch, by about 1e-7.
    return (np.abs(vectors[1:] - vectors[:1]).max(-1) > 3e-6).T


@pytest.mark.parametrize(
    ("direction", "visible"),
    [(None, np.ones_like), ("ltr", np.tril), ("rtl", np.triu)],
)
def test_a_position_sees_its_direction(direction, visible):
    config = small_config()
    table = Embeddings("electra/embeddings", config, 8)
    made = Encoder("electra", config, table, direction)
    out = randomize(made)(*one_token_changed_at_a_time())
    expected = visible(np.ones([LENGTH, LENGTH]))
    np.testing.assert_array_equal(dependence(out.sequence_output), expected)


def test_two_towers_see_every_token_but_their_own():
    config = small_config()
    table = Embeddings("electra/embeddings", config, 16)
    made = TwoTowerClozeTransformer("g", config, table, table)
    context, ltr, rtl = randomize(made)(*one_token_changed_at_a_time())
    assert context.shape == [LENGTH + 1, LENGTH, 32]
    expected = np.ones([LENGTH, LENGTH]) - np.eye(LENGTH)
    np.testing.assert_array_equal(dependence(context)[1:-1], expected[1:-1])
    before, after = ltr.sequence_output[:, :-1], rtl.sequence_output[:, 1:]
    np.testing.assert_array_equal(context[:, 1:, :16], before)
    np.testing.assert_array_equal(context[:, :-1, 16:], after)
