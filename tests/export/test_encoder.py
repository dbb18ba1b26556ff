# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The bare encoder is what tensorflow_hub expects of a text encoder."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from electra_tf.export.encoder import EncoderModule
from electra_tf.export.saved_model import export
from electra_tf.prediction.embedding import Embedder
from electra_tf.prediction.loading import load_finetuned, load_pretrained

hub = pytest.importorskip("tensorflow_hub")
NAMES = ("input_word_ids", "input_mask", "input_type_ids")
TEXTS = ["The cat, the dog.", "", "of " * 40]


@pytest.fixture(scope="module")
def exported(pretrained_folder, tmp_path_factory):
    loaded = load_pretrained(pretrained_folder())
    place = str(tmp_path_factory.mktemp("encoder"))
    return loaded, export(EncoderModule(loaded, max_seq_length=24), place)


@pytest.fixture(scope="module")
def layers(exported):
    _, folder = exported
    preprocessor = hub.KerasLayer(f"{folder}/preprocessor")
    return preprocessor, hub.KerasLayer(folder, trainable=True)


def test_preprocessor_and_encoder_give_the_models_vectors(exported, layers):
    loaded, _ = exported
    preprocess, encoder = layers
    text = tf_keras.layers.Input(shape=(), dtype=tf.string)
    model = tf_keras.Model(text, [preprocess(text), encoder(preprocess(text))])
    inputs, outputs = model(tf.constant(TEXTS))
    vocab, encode = loaded.tokenizer.vocab, loaded.tokenizer.encode
    rows = [[vocab["[CLS]"], *encode(t)[:22], vocab["[SEP]"]] for t in TEXTS]
    ids = np.array([row + [0] * (24 - len(row)) for row in rows])
    np.testing.assert_array_equal(inputs["input_word_ids"], ids)
    np.testing.assert_array_equal(inputs["input_mask"], ids != 0)
    assert not inputs["input_type_ids"].numpy().any()
    wanted = loaded.model.discriminator(*(inputs[name] for name in NAMES))
    layers = outputs["encoder_outputs"]
    assert len(layers) == 2
    for got, expected in (
        (outputs["pooled_output"], wanted.pooled_output),
        (outputs["default"], wanted.pooled_output),
        (outputs["sequence_output"], wanted.sequence_output),
        *zip(layers, wanted.layers, strict=True),
    ):
        np.testing.assert_allclose(got, expected, atol=1e-5)


def test_pairs_are_packed_to_any_length(exported, layers):
    loaded, _ = exported
    parts = layers[0].resolved_object
    tokenize = hub.KerasLayer(parts.tokenize)
    tokens = [tokenize(tf.constant([t])) for t in ("a cat", "the dog")]
    special = parts.tokenize.get_special_tokens_dict()
    vocab = loaded.tokenizer.vocab
    names = ("start_of_sequence_id", "end_of_segment_id", "mask_id")
    ids = [vocab[token] for token in ("[CLS]", "[SEP]", "[MASK]")]
    assert [special[name] for name in names] == ids
    assert (special["padding_id"], special["vocab_size"]) == (0, 200)
    a, b = (loaded.tokenizer.encode(t) for t in ("a cat", "the dog"))
    for length in (7, 16):
        given = {"seq_length": length}
        got = hub.KerasLayer(parts.bert_pack_inputs, arguments=given)(tokens)
        kept = {16: (a, b), 7: (a[:2], b[:2])}[length]
        row = [vocab["[CLS]"], *kept[0], vocab["[SEP]"]]
        types = [0] * len(row) + [1] * (len(kept[1]) + 1)
        row += [*kept[1], vocab["[SEP]"]]
        padding = [0] * (length - len(row))
        assert got["input_word_ids"].numpy().tolist() == [row + padding]
        assert got["input_type_ids"].numpy().tolist() == [types + padding]
    whole = parts.bert_pack_inputs([tokens[0]])
    assert whole["input_word_ids"].shape == (1, 24)


def test_the_encoder_can_be_trained_with_dropout(exported, layers):
    loaded, _ = exported
    preprocess, encoder = layers
    inputs = preprocess(tf.constant(TEXTS))
    variables = loaded.model.discriminator.variables
    assert len(encoder.trainable_weights) == len(variables)
    still = [encoder(inputs, training=False) for _ in range(2)]
    np.testing.assert_array_equal(*(o["pooled_output"] for o in still))
    moving = [encoder(inputs, training=True) for _ in range(2)]
    assert np.abs(np.subtract(*(o["pooled_output"] for o in moving))).max() > 0

    def gradients(function, variables):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(tf.square(function()))
        found = tape.gradient(value, variables)
        return [tf.convert_to_tensor(gradient).numpy() for gradient in found]

    weights = encoder.trainable_weights
    got = gradients(lambda: encoder(inputs)["pooled_output"], weights)
    given = [inputs[name] for name in NAMES]
    model = loaded.model.discriminator
    wanted = gradients(lambda: model(*given).pooled_output, model.variables)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4, rtol=1e-3)


def test_masked_lms_and_tasks_have_one(pretrained_folder, finetuned_folder):
    masked_lm = load_pretrained(pretrained_folder(electra_objective=False))
    inputs = [tf.constant([[101, 110, 102]]), tf.ones([1, 3], tf.int32)]
    module = EncoderModule(masked_lm)
    got = module.compute(module.complete(*inputs))["pooled_output"]
    wanted = masked_lm.model.generator(*inputs, tf.zeros([1, 3], tf.int32))
    np.testing.assert_allclose(got, wanted.pooled_output, atol=1e-5)
    tagger = EncoderModule(load_finetuned(finetuned_folder("names")))
    assert tagger.max_seq_length == 48
    got = tagger.compute_text(tf.constant(["the king"]))["pooled_output"]
    embedder = Embedder.from_pretrained(finetuned_folder("names"))
    wanted = embedder(["the king"], pooling="first")
    np.testing.assert_allclose(got, wanted, atol=1e-5)
