# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exported encoders follow tensorflow_hub's interface of text encoders."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from electra_tf.export.encoder import EncoderModule
from electra_tf.export.saved_model import export
from electra_tf.prediction.embedding import Embedder
from electra_tf.prediction.loading import load_finetuned, load_pretrained
from tests.conftest import differences

hub = pytest.importorskip("tensorflow_hub")
NAMES = ("input_word_ids", "input_mask", "input_type_ids")
TEXTS = ["The cat, the dog.", "", "of " * 40]


@pytest.fixture(scope="module")
def exported(pretrained_folder, tmp_path_factory):
    loaded = load_pretrained(pretrained_folder())
    output_dir = str(tmp_path_factory.mktemp("encoder"))
    return loaded, export(EncoderModule(loaded, max_seq_length=24), output_dir)


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
    encoded = loaded.model.discriminator(*(inputs[name] for name in NAMES))
    layer_outputs = outputs.pop("encoder_outputs")
    expected = {
        "pooled_output": encoded.pooled_output,
        "default": encoded.pooled_output,
        "sequence_output": encoded.sequence_output,
    }
    assert differences(outputs, expected, rtol=1e-7, atol=1e-5) == []
    assert len(layer_outputs) == 2
    np.testing.assert_allclose(layer_outputs, encoded.layers, atol=1e-5)


def test_the_tokenizer_has_the_special_ids_of_the_vocabulary(exported, layers):
    loaded, _ = exported
    special = layers[0].resolved_object.tokenize.get_special_tokens_dict()
    vocab = loaded.tokenizer.vocab
    names = ("start_of_sequence_id", "end_of_segment_id", "mask_id")
    ids = [vocab[token] for token in ("[CLS]", "[SEP]", "[MASK]")]
    assert [special[name] for name in names] == ids
    assert (special["padding_id"], special["vocab_size"]) == (0, 200)


@pytest.fixture(scope="module")
def tokens(layers):
    """Return the preprocessor's tokens of two texts."""
    tokenize = hub.KerasLayer(layers[0].resolved_object.tokenize)
    return [tokenize(tf.constant([text])) for text in ("a cat", "the dog")]


@pytest.mark.parametrize(("length", "longest"), [(7, 2), (16, None)])
def test_pairs_are_packed_to_any_length(
    exported, layers, tokens, length, longest
):
    loaded, _ = exported
    pack = hub.KerasLayer(
        layers[0].resolved_object.bert_pack_inputs,
        arguments={"seq_length": length},
    )
    packed, vocab = pack(tokens), loaded.tokenizer.vocab
    first, second = (
        loaded.tokenizer.encode(text)[:longest] for text in ("a cat", "the dog")
    )
    row = [vocab["[CLS]"], *first, vocab["[SEP]"]]
    types = [0] * len(row) + [1] * (len(second) + 1)
    row += [*second, vocab["[SEP]"]]
    padding = [0] * (length - len(row))
    assert packed["input_word_ids"].numpy().tolist() == [row + padding]
    assert packed["input_type_ids"].numpy().tolist() == [types + padding]


def test_a_text_is_packed_to_the_exported_length(layers, tokens):
    packed = layers[0].resolved_object.bert_pack_inputs([tokens[0]])
    assert packed["input_word_ids"].shape == (1, 24)


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
        by_variable = tape.gradient(value, variables)
        return [tf.convert_to_tensor(dense).numpy() for dense in by_variable]

    weights = encoder.trainable_weights
    got = gradients(lambda: encoder(inputs)["pooled_output"], weights)
    arrays = [inputs[name] for name in NAMES]
    model = loaded.model.discriminator
    expected = gradients(lambda: model(*arrays).pooled_output, model.variables)
    names = [variable.name for variable in model.variables]
    got, expected = (
        dict(zip(names, values, strict=True)) for values in (got, expected)
    )
    assert differences(got, expected, rtol=1e-3, atol=1e-4) == []


def test_masked_lms_and_tasks_have_an_encoder(
    pretrained_folder, finetuned_folder
):
    masked_lm = load_pretrained(pretrained_folder(electra_objective=False))
    inputs = [tf.constant([[101, 110, 102]]), tf.ones([1, 3], tf.int32)]
    module = EncoderModule(masked_lm)
    got = module.compute(module.complete(*inputs))["pooled_output"]
    expected = masked_lm.model.generator(*inputs, tf.zeros([1, 3], tf.int32))
    np.testing.assert_allclose(got, expected.pooled_output, atol=1e-5)
    tagger = EncoderModule(load_finetuned(finetuned_folder("names")))
    assert tagger.max_seq_length == 48
    got = tagger.compute_text(tf.constant(["the king"]))["pooled_output"]
    embedder = Embedder.from_pretrained(finetuned_folder("names"))
    expected = embedder(["the king"], pooling="first")
    np.testing.assert_allclose(got, expected, atol=1e-5)
