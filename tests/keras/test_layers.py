# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""`Encoder` and `Tokenizer` as layers of a user's model."""

import json
import os
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from configure.errors import UserError
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.huggingface_writer import write_huggingface
from electra_tf.keras import Encoder, Tokenizer
from electra_tf.modeling.encoder import ComputePolicy
from electra_tf.modeling.seeds import SeedStream
from electra_tf.prediction.loading import load_finetuned, load_pretrained
from electra_tf.pretraining.saving import export_parts
from electra_tf.text.tokenization import FullTokenizer
from tests.conftest import differences
from tests.keras.conftest import SIZES

ONE_BLOCK = {"hidden_size": 16, "num_hidden_layers": 1}
ONE_BLOCK["num_attention_heads"] = 2
rng = np.random.default_rng(0)
IDS = rng.integers(5, 200, [3, 9]).astype(np.int32)
MASK = (np.arange(9) < [[9], [4], [6]]).astype(np.int32)
SEGMENTS = (np.arange(9) > [[4], [2], [8]]).astype(np.int32)
BATCH = {
    "input_ids": tf.constant(IDS * MASK),
    "input_mask": tf.constant(MASK),
    "segment_ids": tf.constant(SEGMENTS),
}
INPUTS = tuple(BATCH)


def project_outputs(encoder, batch=BATCH, seed=None):
    """Return the project's outputs with the layer's weights."""
    project_encoder = encoder._encoder_of()
    seeds = SeedStream(seed).child("dropout") if seed is not None else None
    return project_encoder(*(batch[name] for name in INPUTS), seeds)


def test_outputs_equal_those_of_the_project(make_encoder):
    encoder = make_encoder(return_hidden_states=True, return_attentions=True)
    expected = project_outputs(encoder)
    outputs = encoder(BATCH)
    assert len(outputs) == 4
    pairs = [
        (outputs["sequence_output"], expected.sequence_output),
        (outputs["pooled_output"], expected.pooled_output),
        (outputs["hidden_states"][0], expected.embedding_output),
        *zip(outputs["hidden_states"][1:], expected.layers, strict=True),
        *zip(outputs["attentions"], expected.attention_probs, strict=True),
    ]
    for value, other in pairs:
        np.testing.assert_array_equal(value, other)
    assert outputs["sequence_output"].shape == [3, 9, 16]
    assert outputs["attentions"][1].shape == [3, 2, 9, 9]


def test_a_users_model_gives_the_projects_numbers():
    encoder = Encoder(200, seed=1, **SIZES)
    inputs = {n: tf_keras.Input([None], dtype="int32", name=n) for n in BATCH}
    model = tf_keras.Model(inputs, encoder(inputs))
    eager = project_outputs(encoder)
    graph = tf.function(lambda: project_outputs(encoder), autograph=False)()
    predictions = model.predict(BATCH, verbose=0)
    expected_eager, expected_graph = (
        {name: getattr(outputs, name) for name in predictions}
        for outputs in (eager, graph)
    )
    assert predictions.keys() == {"sequence_output", "pooled_output"}
    assert differences(predictions, expected_graph) == []
    assert differences(model(BATCH), expected_eager) == []
    assert differences(predictions, expected_eager, atol=1e-6) == []


def test_ids_alone_are_padded_with_their_padding_id(make_encoder):
    encoder = make_encoder()
    zeros = tf.zeros_like(BATCH["input_ids"])
    full = {**BATCH, "segment_ids": zeros}
    alone = encoder(BATCH["input_ids"])["sequence_output"]
    np.testing.assert_array_equal(alone, encoder(full)["sequence_output"])
    listed = encoder((IDS * MASK).tolist())["sequence_output"]
    np.testing.assert_array_equal(alone, listed)
    encoder.pad_token_id = None
    full["input_mask"] = tf.ones_like(zeros)
    alone = encoder({"input_ids": BATCH["input_ids"]})["sequence_output"]
    np.testing.assert_array_equal(alone, encoder(full)["sequence_output"])


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"input_ids": IDS, "attention_mask": MASK}, "called input_mask here"),
        (IDS.astype(np.float32), "float32; expected integers"),
        (IDS[0], "expected .batch, length."),
        (np.ones([1, 33], np.int32), "33 wordpieces"),
        (
            {"input_ids": IDS, "input_mask": MASK[:1]},
            "input_mask: the shape differs from the shape of input_ids",
        ),
        (
            {"input_ids": IDS, "segment_ids": MASK * 2},
            "expected values from 0 to 1",
        ),
        (IDS + 500, "input_ids: a value is out of range; exp"),
    ],
)
def test_impossible_inputs_are_refused(make_encoder, inputs, says):
    refusals = (ValueError, tf.errors.InvalidArgumentError)
    with pytest.raises(refusals, match=says):
        make_encoder()(inputs)
    with pytest.raises(ValueError, match="float64; expected float32"):
        make_encoder(dtype="float64")  # No block supports float64.


def test_dropout_has_the_means_of_the_training_loop(make_encoder):
    """Compare 200 draws: at most 1% of means differ by 3 standard errors."""
    encoder = make_encoder(seed=5)

    @tf.function(autograph=False)
    def draws(step):
        ours = encoder(BATCH, training=True)["sequence_output"]
        seed = tf.stack([11, step])
        return ours, project_outputs(encoder, seed=seed).sequence_output

    draws_by_step = [draws(tf.constant(step)) for step in range(200)]
    ours, loops = (np.array(side) for side in zip(*draws_by_step, strict=True))
    ours, loops = ours[:, MASK > 0], loops[:, MASK > 0]
    variance = ours.var(0, ddof=1) + loops.var(0, ddof=1)
    error = np.abs(ours.mean(0) - loops.mean(0)) / np.sqrt(variance / 200)
    assert (error > 3).mean() <= 0.01
    ratio = ours.std(0).mean() / loops.std(0).mean()
    assert ratio == pytest.approx(1, abs=0.03)


def test_a_seed_fixes_weights_and_dropout():
    def drawn(seed):
        encoder = Encoder(
            9,
            seed=seed,
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
        )
        ids = tf.zeros([2, 3], tf.int32) + 5
        twice = [encoder(ids, training=True) for _ in range(2)]
        return [*encoder.get_weights(), *(o["pooled_output"] for o in twice)]

    first, again, other = map(drawn, (3, 3, 4))
    tf.nest.map_structure(np.testing.assert_array_equal, first, again)
    assert np.abs(first[-1] - first[-2]).max() > 0.01  # Calls differ.
    assert np.abs(first[-1] - other[-1]).max() > 0.01
    seeded = []
    for _ in range(2):
        tf_keras.utils.set_random_seed(7)
        seeded.append(drawn(None))
    tf.nest.map_structure(np.testing.assert_array_equal, *seeded)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_mixed_policy_is_the_projects_precision(make_encoder, dtype):
    before = tf_keras.mixed_precision.global_policy()
    tf_keras.mixed_precision.set_global_policy(f"mixed_{dtype}")
    try:
        encoder = make_encoder()
    finally:
        tf_keras.mixed_precision.set_global_policy(before)
    assert {v.dtype for v in encoder.weights} == {tf.float32}
    vectors = encoder(BATCH)["sequence_output"]
    assert vectors.dtype == tf.float32
    project_encoder = encoder._encoder_of()
    project_encoder.compute_policy = ComputePolicy(dtype)
    expected = project_outputs(encoder).sequence_output
    np.testing.assert_array_equal(vectors, expected)
    project_encoder.compute_policy = ComputePolicy("float32")
    wide = project_outputs(encoder).sequence_output
    assert 1e-5 < np.abs(vectors - wide).max() < 0.5


def test_fit_and_custom_loops_draw_dropout(make_encoder):
    """Train at a rate of 0, so that only dropout changes the loss."""
    encoder = make_encoder(num_hidden_layers=1)
    ids = tf_keras.Input([None], dtype="int32")
    model = tf_keras.Model(ids, encoder(ids)["pooled_output"])
    model.compile(tf_keras.optimizers.SGD(0.0), "mse")
    target = np.zeros([3, 16])
    fitted = model.fit(IDS, target, epochs=4, verbose=0).history["loss"]
    assert len(set(fitted)) == 4
    assert len({model.evaluate(IDS, target, verbose=0) for _ in range(2)}) == 1

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(IDS, training=True)))
        return loss, tape.gradient(loss, model.trainable_weights)

    (first_loss, gradients), (other, _) = step(), step()
    assert first_loss != other
    assert all(gradient is not None for gradient in gradients)


def test_frozen_weights_stay(make_encoder):
    encoder = make_encoder(trainable=False)
    total = len(encoder._encoder_of().variables)
    assert not encoder.trainable_weights and len(encoder.weights) == total
    encoder.trainable = True
    assert len(encoder.trainable_weights) == total


@pytest.fixture(scope="module")
def folders(pretrained_folder, finetuned_folder, tmp_path_factory):
    """Return folders of every kind, by name, of two models."""
    folder = tmp_path_factory.mktemp("folders")
    by_kind = {"run": pretrained_folder(), "tuned": finetuned_folder("reviews")}
    loaded = load_pretrained(by_kind["run"])
    export_parts(loaded.model, 7, str(folder))
    for part in ("discriminator", "generator"):
        by_kind[part] = str(folder / "export" / part)
    by_kind["huggingface"] = str(folder / "huggingface")
    write_huggingface(open_weights(by_kind["run"]), by_kind["huggingface"])
    shutil.copy(f"{by_kind['run']}/vocab.txt", by_kind["huggingface"])
    for kind in ("run", "tuned"):
        best = folder / kind / "best"
        shutil.copytree(by_kind[kind], best.parent)
        best.mkdir()
        for file in best.parent.glob("model.ckpt-7.*"):
            file.rename(best / file.name)
        shutil.copy(f"{by_kind[kind]}/checkpoint", best)
        by_kind[f"best of {kind}"] = str(best)
    return by_kind


PRETRAINED = ("run", "best of run", "discriminator", "huggingface", "generator")
KINDS = (*PRETRAINED, "tuned", "best of tuned")


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_loaded_from_every_kind_of_folder(folders, kind):
    if kind in PRETRAINED:
        model = load_pretrained(folders["run"]).model
        network = (
            model.generator if kind == "generator" else model.discriminator
        )
    else:
        network = load_finetuned(folders["tuned"]).model.encoder
    expected = network(*(BATCH[name] for name in INPUTS), None)
    encoder = Encoder.from_pretrained(folders[kind], name="mine")
    assert encoder.name == "mine"
    vectors = encoder(BATCH)["sequence_output"]
    np.testing.assert_array_equal(vectors, expected.sequence_output)
    tokenizer = Tokenizer.from_pretrained(folders[kind], max_seq_length=8)
    assert len(tokenizer.vocabulary) == 200
    assert tokenizer.vocabulary[0] == "[PAD]"


def test_the_tokenizer_gives_the_ids_of_training(tiny_vocab, texts):
    tokenizer = Tokenizer(tiny_vocab, max_seq_length=6)
    full_tokenizer = FullTokenizer(tiny_vocab)
    cls_id, sep_id = full_tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
    encoded = tokenizer(texts)
    graph = tf.function(tokenizer)(texts[:, None])
    (mapped,) = tf.data.Dataset.from_tensors(texts).map(tokenizer)
    assert encoded.keys() == set(INPUTS)
    assert {(*v.shape, v.dtype) for v in encoded.values()} == {(4, 6, tf.int32)}
    assert differences(graph, encoded) == []
    assert differences(mapped, encoded) == []
    rows = [
        [cls_id, *full_tokenizer.encode(text)[:4], sep_id]
        for text in texts.numpy()
    ]
    expected = [ids + [0] * (6 - len(ids)) for ids in rows]
    assert encoded["input_ids"].numpy().tolist() == expected
    lengths = encoded["input_mask"].numpy().sum(-1).tolist()
    assert lengths == [len(ids) for ids in rows]
    assert not encoded["segment_ids"].numpy().any()


def test_pairs_and_strings_of_python_are_accepted(tiny_vocab):
    tokenizer = Tokenizer(tiny_vocab, max_seq_length=7)
    encoded = tokenizer((tf.constant(["the of"]), tf.constant(["a"])))
    full_tokenizer = FullTokenizer(tiny_vocab)
    tokens = full_tokenizer.convert_ids_to_tokens(
        encoded["input_ids"][0].numpy()
    )
    assert tokens[:6] == ["[CLS]", "the", "of", "[SEP]", "a", "[SEP]"]
    assert encoded["segment_ids"][0].numpy().tolist() == [0, 0, 0, 0, 1, 1, 0]
    tokenizer = Tokenizer(tiny_vocab, max_seq_length=5)
    expected = tokenizer(tf.constant(["the a", "of"]))["input_ids"]
    for inputs in (["the a", "of"], np.array(["the a", "of"])):
        np.testing.assert_array_equal(tokenizer(inputs)["input_ids"], expected)
    np.testing.assert_array_equal(tokenizer("the a")["input_ids"], expected[:1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Film was\tfor you", b"the film was for you"),
        ("in-between, is it? 42!", b"in - between , is it ? 42 !"),
        ("", b""),
        ("\N{GRINNING FACE} of", b"[UNK] of"),
    ],
)
def test_ids_are_decoded_to_texts(tiny_vocab, text, expected):
    tokenizer = Tokenizer(tiny_vocab, max_seq_length=40)
    ids = tokenizer(tf.constant([text, "a"]))
    assert tokenizer.detokenize(ids).numpy().tolist() == [expected, b"a"]
    (row, _) = ids["input_ids"]
    assert tokenizer.detokenize(row).numpy() == expected
    strings = tf.data.Dataset.from_tensors(tf.constant([text]))
    (mapped,) = strings.map(tokenizer).map(tokenizer.detokenize)
    assert mapped.numpy().tolist() == [expected]


def test_ragged_ids_are_decoded_to_texts(tiny_vocab):
    tokenizer = Tokenizer(tiny_vocab)
    numbers = [
        [tokenizer.get_vocabulary().index(t) for t in pieces.split()]
        for pieces in ("the in ##ing", "of")
    ]
    texts = tokenizer.detokenize(tf.ragged.constant(numbers, tf.int64))
    assert texts.numpy().tolist() == [b"the ining", b"of"]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[200]], "outside the vocabulary; expected ids from 0 to 199"),
        ([[-1]], "outside the vocabulary; expected ids from 0 to 199"),
        ([[2**40]], "outside the vocabulary; expected ids from 0 to 199"),
        ([[1.0]], "detokenize got float32 of shape"),
        (7, "expected integers"),
        (["a"], "detokenize got string"),
    ],
)
def test_values_that_are_not_ids_are_refused(tiny_vocab, ids, message):
    with pytest.raises(Exception, match=message):
        Tokenizer(tiny_vocab).detokenize(ids)


def test_the_vocabulary_is_in_the_order_of_ids(tiny_vocab):
    tokenizer = Tokenizer(tiny_vocab)
    tokens = pathlib.Path(tiny_vocab).read_text().split()
    assert tokenizer.get_vocabulary() == tokens
    tokenizer.get_vocabulary().clear()  # a copy
    assert tokenizer.vocabulary == tokens


@pytest.mark.parametrize(
    ("arguments", "inputs", "says"),
    [
        ({}, np.ones([2, 3]), "expected strings"),
        ({"max_seq_length": 2}, None, "at least 3"),
        ({"vocabulary": ["[PAD]", "a"]}, None, "missing"),
    ],
)
def test_inputs_that_are_not_text_are_refused(
    tiny_vocab, arguments, inputs, says
):
    with pytest.raises((ValueError, UserError), match=says):
        Tokenizer(**({"vocabulary": tiny_vocab} | arguments))(inputs)


def classifier(tokenizer, encoder):
    """Return a compiled model from strings to two logits."""
    text = tf_keras.Input([], dtype="string", name="text")
    encoded = encoder(tokenizer(text))
    logits = tf_keras.layers.Dense(2, name="logits")(encoded["pooled_output"])
    model = tf_keras.Model(text, logits)
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf_keras.optimizers.Adam(1e-3), loss)
    return model


@pytest.fixture(scope="module")
def text_model(make_encoder, tiny_vocab):
    return classifier(Tokenizer(tiny_vocab, True, False, 12), make_encoder())


def from_json(model):
    config = json.loads(json.dumps(model.get_config()))
    return tf_keras.Model.from_config(config)


@pytest.mark.parametrize("copy", [from_json, tf_keras.models.clone_model])
def test_a_clone_with_equal_weights_gives_equal_outputs(
    text_model, texts, copy
):
    expected, clone = text_model(texts), copy(text_model)
    assert np.abs(clone(texts) - expected).max() > 0.01
    clone.set_weights(text_model.get_weights())
    np.testing.assert_array_equal(clone(texts), expected)


def test_a_config_has_vocabulary_and_sizes(text_model):
    tokenizer, encoder = (x.get_config() for x in text_model.layers[1:3])
    assert tokenizer["strip_accents"] is False
    assert len(tokenizer["vocabulary"]) == 200
    assert encoder["num_hidden_layers"] == 2


def test_weights_are_saved_and_loaded(text_model, texts, tmp_path):
    expected = text_model.get_weights()
    for name in ("weights", "a.h5", "a.weights.h5"):
        text_model.save_weights(tmp_path / name)
        clone = tf_keras.models.clone_model(text_model)
        status = clone.load_weights(tmp_path / name)
        if status is not None:  # The clone has no optimizer.
            status.expect_partial()
        equal, loaded = np.testing.assert_array_equal, clone.get_weights()
        tf.nest.map_structure(equal, loaded, expected)


ELSEWHERE = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_text

texts = tf.constant(["the of and", "a", "in that is for", "the a the a"])
served = tf.saved_model.load("saved").signatures["serving_default"](texts)
assert "electra_tf" not in sys.modules
logits = {"served": served["logits"]}
import tf_keras
import electra_tf.keras

for name in ("model.keras", "saved"):
    model = tf_keras.models.load_model(name)
    logits[name] = model.predict(texts, verbose=0)
history = model.fit(texts, np.array([0, 1, 0, 1]), verbose=0)
assert np.isfinite(history.history["loss"]).all()
np.savez("logits.npz", **logits)
"""


@pytest.mark.heavy
def test_a_saved_model_needs_no_other_files(
    pretrained_folder, texts, tmp_path, run_python, pytestconfig
):
    """Load it in another process and directory, without the run's folder."""
    run = tmp_path / "run"
    shutil.copytree(pretrained_folder(model_hparam_overrides=ONE_BLOCK), run)
    model = classifier(
        Tokenizer.from_pretrained(str(run), max_seq_length=12),
        Encoder.from_pretrained(str(run)),
    )
    model.fit(texts, np.array([0, 1, 0, 1]), verbose=0)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    model.save(elsewhere / "model.keras")
    model.save(elsewhere / "saved")
    shutil.rmtree(run)
    (elsewhere / "program.py").write_text(ELSEWHERE)
    env = os.environ | {"PYTHONPATH": str(pytestconfig.rootpath)}
    run_python("program.py", cwd=elsewhere, env=env)
    expected = model.predict(texts, verbose=0)
    with np.load(elsewhere / "logits.npz") as archive:
        assert set(archive) == {"served", "model.keras", "saved"}
        same = dict.fromkeys(archive, expected)
        assert differences(archive, same, atol=1e-6) == []


@pytest.mark.heavy
@pytest.mark.multi_device
def test_fit_on_two_devices_equals_fit_on_one(on_two_devices):
    single, two = on_two_devices["fit"]
    np.testing.assert_allclose(two["loss"], single["loss"], atol=1e-5)
    assert single["loss"][-1] < single["loss"][0]
    for weights, others in zip(single["weights"], two["weights"], strict=True):
        np.testing.assert_allclose(others, weights, atol=1e-5)
    first, second = on_two_devices["dropout"]  # means by device
    assert np.isfinite([first, second]).all()
    assert first != pytest.approx(second, abs=1e-3)


def test_a_tokenizer_of_transformers_keeps_its_added_tokens(
    tmp_path, tiny_vocab
):
    vocab = tmp_path / "vocab.txt"
    vocab.write_bytes(pathlib.Path(tiny_vocab).read_bytes())
    count = len(vocab.read_text().splitlines())
    (tmp_path / "added_tokens.json").write_text(json.dumps({"[E1]": count}))
    made = Tokenizer(str(vocab), max_seq_length=8)
    again = Tokenizer.from_config(made.get_config())
    assert made.vocabulary[count:] == ["[E1]"] == again.vocabulary[count:]
    ids, ids_again = (
        tokenizer(tf.constant(["the [E1][MASK]"]))["input_ids"].numpy()[0]
        for tokenizer in (made, again)
    )
    assert {count, made.vocabulary.index("[MASK]")} <= set(ids)
    np.testing.assert_array_equal(ids_again, ids)
