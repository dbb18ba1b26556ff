# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vectors are the outputs of the model's layers, pooled and combined."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.keras import Encoder
from electra_tf.prediction.embedding import Embedder
from electra_tf.prediction.loading import load_pretrained
from electra_tf.text.opening import open_tokenizer
from tests.conftest import refused

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
EMBEDDED = ["The king of the north.", "", "that was for her, is it? " * 30]


@pytest.fixture(scope="module")
def embedder(finetuned_folder):
    return Embedder.from_pretrained(finetuned_folder("reviews"), batch_size=2)


def _layers(embedder, text, segment=0):
    """Return the outputs of all layers for a text, [layers + 1, T, H]."""
    tokenizer = embedder._tokenizer
    pieces = tokenizer.tokenize(text)[: embedder.max_length - 2]
    ids = tokenizer.convert_tokens_to_ids(["[CLS]", *pieces, "[SEP]"])
    ids = tf.constant([ids])
    out = embedder.encoder(ids, tf.ones_like(ids), segment * tf.ones_like(ids))
    return np.stack([out.embedding_output[0], *(x[0] for x in out.layers)])


@pytest.mark.parametrize("layer", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("text", EMBEDDED)
def test_vectors_are_those_of_the_layer(embedder, layer, text):
    vectors = embedder(text, layers=layer, pooling="none")
    expected = _layers(embedder, text)[layer]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_texts_have_equal_vectors_in_a_batch_and_alone(embedder):
    together = embedder(EMBEDDED, pooling="none")
    apart = [embedder(text, pooling="none") for text in EMBEDDED]
    assert [*map(len, together)] == [*map(len, apart)]
    np.testing.assert_allclose(
        np.concatenate(together), np.concatenate(apart), atol=1e-5
    )


def test_the_text_of_a_vector_that_is_not_finite_is_named(
    embedder, monkeypatch
):
    def overflow(rows, length):
        lengths = np.array([[len(row["input_ids"])] for row in rows])
        return {"vectors": np.where(lengths > 9, np.nan, 0.0)}

    monkeypatch.setattr(embedder, "_function", lambda *arguments: overflow)
    refused("^'that was for her.*vectors is nan", embedder, EMBEDDED)


def test_a_tagger_reads_the_segment_of_its_training(finetuned_folder):
    embedder = Embedder.from_pretrained(finetuned_folder("names"))
    expected = _layers(embedder, "the king", segment=1)[-1]
    vectors = embedder("the king", pooling="none")
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    layer = Encoder.from_pretrained(finetuned_folder("names"))
    ids = embedder._tokenize("the king").ids
    outputs = layer({"input_ids": tf.constant([ids])})
    np.testing.assert_allclose(
        outputs["sequence_output"][0], expected, atol=1e-5
    )


@pytest.mark.parametrize(
    ("pooling", "pool"),
    [
        ("first", lambda vectors: vectors[0]),
        ("mean", lambda vectors: vectors.mean(0)),
        ("max", lambda vectors: vectors.max(0)),
    ],
)
def test_vectors_are_pooled(embedder, pooling, pool):
    vectors = embedder(EMBEDDED, pooling=pooling)
    assert vectors.shape == (3, 16) and vectors.dtype == np.float32
    expected = [pool(_layers(embedder, text)[-1]) for text in EMBEDDED]
    np.testing.assert_allclose(vectors, np.stack(expected), atol=1e-5)


def test_the_mean_of_layers_is_their_mean(embedder):
    vectors = embedder(EMBEDDED, layers=(1, 2), pooling="first")
    layers = [_layers(embedder, text) for text in EMBEDDED]
    expected = np.stack([x[1:].mean(0)[0] for x in layers])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_concatenated_layers_are_next_to_each_other(embedder):
    vectors = embedder(EMBEDDED, (0, -1), "first", combine="concat")
    layers = [_layers(embedder, text) for text in EMBEDDED]
    expected = np.stack([np.concatenate([x[0, 0], x[-1, 0]]) for x in layers])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert embedder([], layers=(0, -1), combine="concat").shape == (0, 32)


def test_vectors_of_words_are_means_of_wordpieces(embedder):
    text = "The kings, that"
    (by_word,) = embedder.embed([text], pooling="words")
    assert by_word.units == ["The", "kings", ",", "that"]
    (by_piece,) = embedder.embed([text], pooling="none")
    assert by_piece.units[:3] == ["[CLS]", "the", "k"]
    count = len(embedder._tokenizer.tokenize("kings"))
    assert count == 3
    expected = by_piece.vectors[2 : 2 + count].mean(0)
    np.testing.assert_allclose(by_word.vectors[1], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Δ.Δ.Σ.", ["Δ", ".", "Δ", ".", "Σ", "."]),
        ("ΔΣ'Δ ΔΣ", ["ΔΣ", "'", "Δ", "ΔΣ"]),
        ("Δ:\u0301Σ\u200b", ["Δ", ":", "\u0301Σ\u200b"]),
        ("a\u200b \u200b Δ≠Σ", ["a\u200b", "Δ≠Σ"]),
        ("δΣ中Σ\u2028.", ["δΣ", "中", "Σ", "."]),
    ],
)
@pytest.mark.parametrize("strip_accents", [True, False])
def test_words_have_the_wordpieces_of_the_text(
    tmp_path, text, words, strip_accents
):
    letters = ["δ", "\u03c3", "ς", "a", ".", "'", ":", "=", "≠", "中"]
    wordpieces = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters)]
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*wordpieces, ""]), "utf-8")
    tokenizer = open_tokenizer(str(path), True, strip_accents)
    encoder = SimpleNamespace(sizes=SimpleNamespace(hidden_size=4))
    split = [*Embedder(encoder, tokenizer, 64)._split(text)]
    assert [word for word, _ in split] == words
    ids = [number for _, numbers in split for number in numbers]
    assert ids == [*tokenizer.encode(text)]


def test_a_single_text_has_one_vector_and_an_empty_text_has_none(embedder):
    assert embedder("a text").shape == (16,)
    assert embedder("", pooling="words").shape == (0, 16)


def test_wordpieces_beyond_the_length_are_counted(embedder):
    short, long = embedder.embed([EMBEDDED[0], EMBEDDED[2]], pooling="words")
    count = len(embedder._tokenizer.tokenize(EMBEDDED[2]))
    assert (short.cut, long.cut) == (0, count - 62)


def test_unknown_layers_and_poolings_are_refused(embedder):
    refused("expected 1 to 2", embedder, "a", layers=3)
    refused("pooling 'sum': expected one of", embedder, "a", pooling="sum")
    refused("an item is 3; expected a str", embedder, [3])


def test_a_generator_of_a_fine_tuned_model_is_refused(finetuned_folder):
    with pytest.raises(UserError, match="no generator"):
        Embedder.from_pretrained(finetuned_folder("reviews"), "generator")


@pytest.mark.parametrize(
    ("part", "network"),
    [("encoder", "discriminator"), ("generator", "generator")],
)
def test_both_networks_of_a_pre_trained_model_embed(
    pretrained_folder, part, network
):
    folder = pretrained_folder()
    encoder = getattr(load_pretrained(folder).model, network)
    embedder = Embedder.from_pretrained(folder, part)
    loaded = {v.name: v.numpy() for v in embedder.encoder.variables}
    expected = {v.name: v.numpy() for v in encoder.variables}
    assert loaded.keys() >= expected.keys() and expected
    assert all((loaded[name] == expected[name]).all() for name in expected)
    assert embedder("the king").shape == (encoder.sizes.hidden_size,)
