# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vectors are the encoder's outputs, pooled as asked for."""

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.prediction.embedding import Embedder

TEXTS = ["The king of the north.", "", "that was for her, is it? " * 30]


@pytest.fixture(scope="module")
def embedder(finetuned_folder):
    return Embedder.from_pretrained(finetuned_folder("reviews"), batch_size=2)


def _layers(embedder, text):
    """All layers' outputs for one text, [layers + 1, T, H], by hand."""
    tokenizer = embedder._tokenizer
    pieces = tokenizer.tokenize(text)[: embedder.max_length - 2]
    ids = tokenizer.convert_tokens_to_ids(["[CLS]", *pieces, "[SEP]"])
    ids = tf.constant([ids])
    out = embedder.encoder(ids, tf.ones_like(ids), tf.zeros_like(ids))
    return np.stack([out.embedding_output[0], *(x[0] for x in out.layers)])


@pytest.mark.parametrize("layer", [0, 1, 2, -1, -3])
def test_a_layer_is_that_layer(embedder, layer):
    found = embedder(TEXTS, layers=layer, pooling="none")
    for text, vectors in zip(TEXTS, found, strict=True):
        wanted = _layers(embedder, text)[layer]
        np.testing.assert_allclose(vectors, wanted, atol=1e-5)


def test_pooling_and_combination_are_what_they_say(embedder):
    every = [_layers(embedder, text) for text in TEXTS]
    last = [x[-1] for x in every]
    for pooling, pool in {
        "first": lambda x: x[0],
        "mean": lambda x: x.mean(0),
        "max": lambda x: x.max(0),
    }.items():
        found = embedder(TEXTS, pooling=pooling)
        assert found.shape == (3, 16) and found.dtype == np.float32
        wanted = np.stack([pool(x) for x in last])
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    found = embedder(TEXTS, layers=(1, 2), pooling="first")
    wanted = np.stack([x[1:].mean(0)[0] for x in every])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    found = embedder(TEXTS, (0, -1), "first", combine="concat")
    wanted = np.stack([np.concatenate([x[0, 0], x[-1, 0]]) for x in every])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert embedder([], layers=(0, -1), combine="concat").shape == (0, 32)


def test_words_are_means_of_pieces_and_one_text_gives_one_vector(embedder):
    text = "The kings, that"
    (found,) = embedder.embed([text], pooling="words")
    assert found.units == ["The", "kings", ",", "that"]
    pieces = embedder.embed([text], pooling="none")[0]
    assert pieces.units[:3] == ["[CLS]", "the", "k"]
    count = len(embedder._tokenizer.tokenize("kings"))
    assert count == 3
    wanted = pieces.vectors[2 : 2 + count].mean(0)
    np.testing.assert_allclose(found.vectors[1], wanted, atol=1e-6)
    assert embedder("", pooling="words").shape == (0, 16)
    assert embedder("a text").shape == (16,)
    short, long = embedder.embed([TEXTS[0], TEXTS[2]], pooling="words")
    whole = len(embedder._tokenizer.tokenize(TEXTS[2]))
    assert (short.cut, long.cut) == (0, whole - 62)


def test_what_cannot_be_is_refused(embedder, finetuned_folder):
    with pytest.raises(UserError, match="layers 1 to 2"):
        embedder("a", layers=3)
    with pytest.raises(UserError, match="pooling 'sum': expected one of"):
        embedder("a", pooling="sum")
    with pytest.raises(UserError, match="no generator"):
        Embedder.from_pretrained(finetuned_folder("reviews"), "generator")
    with pytest.raises(UserError, match="expected a text"):
        embedder([3])


def test_pre_trained_models_give_either_part(tiny_config, tmp_path, save_run):
    from electra_tf.pretraining.model import PretrainingModel

    config = tiny_config(generator_hidden_size=0.5)
    model = PretrainingModel(config)
    folder = save_run(str(tmp_path / "run"), config, model)
    for part, encoder in (
        ("encoder", model.discriminator),
        ("generator", model.generator),
    ):
        embedder = Embedder.from_pretrained(folder, part)
        ours = {v.name: v.numpy() for v in embedder.encoder.variables}
        assert ours and all(
            (v.numpy() == ours[v.name]).all() for v in encoder.variables
        )
        assert embedder("the king").shape == (encoder.config.hidden_size,)
