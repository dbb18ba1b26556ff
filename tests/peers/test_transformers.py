# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of transformers give equal outputs, or an error names the field."""

import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints.formats import open_weights
from electra_tf.commands import convert_checkpoint
from electra_tf.modeling.activations import gelu
from electra_tf.prediction.loading import load_pretrained
from tests.conftest import differences, refused

BASE = {
    "vocab_size": 210,
    "embedding_size": 16,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
}
DISCRIMINATOR, MASKED_LM = "ElectraForPreTraining", "ElectraForMaskedLM"
TAGGER = "ElectraForTokenClassification"
CLASSIFIER = "ElectraForSequenceClassification"
POSITIONS = "position_embedding_type"  # of versions before 5
RULE = {"num_attention_heads": 1, "intermediate_size": 128}
# Class, fields of its config, options of saving.
COMPUTED = [
    *((DISCRIMINATOR, {"num_attention_heads": n}) for n in (1, 2, 8, 16, 32)),
    *((DISCRIMINATOR, {"intermediate_size": n}) for n in (8, 100, 128)),
    *((DISCRIMINATOR, {"num_hidden_layers": n}) for n in (1, 3)),
    *((DISCRIMINATOR, {"layer_norm_eps": e}) for e in (1e-5, 1e-3)),
    *(
        (DISCRIMINATOR, {"hidden_act": name})
        for name in (
            "gelu_python",
            "gelu_new",
            "gelu_fast",
            "gelu_pytorch_tanh",
            "relu",
            "tanh",
            "linear",
        )
    ),
    (DISCRIMINATOR, {"embedding_size": 32}),
    (DISCRIMINATOR, {"hidden_size": 48, "num_attention_heads": 6}),
    (DISCRIMINATOR, {"hidden_size": 256, "intermediate_size": 1024}),
    (DISCRIMINATOR, {"type_vocab_size": 1}),
    (DISCRIMINATOR, {"type_vocab_size": 3, "max_position_embeddings": 64}),
    (DISCRIMINATOR, {"pad_token_id": 3, "vocab_size": 256}),
    (DISCRIMINATOR, {"layer_norm_eps": 0.1, "hidden_act": "gelu_new"}),
    (DISCRIMINATOR, {}, {"max_shard_size": "10KB"}),
    (DISCRIMINATOR, {}, {"dtype": "float16"}),
    (DISCRIMINATOR, {}, {"dtype": "bfloat16", "max_shard_size": "10KB"}),
    (MASKED_LM, RULE),
    (MASKED_LM, {}),
    (MASKED_LM, {"num_attention_heads": 8, "layer_norm_eps": 1e-5}),
    (MASKED_LM, {**RULE, "num_attention_heads": 2}),
    (MASKED_LM, {**RULE, "intermediate_size": 96}),
    (MASKED_LM, {"hidden_act": "gelu_python", "embedding_size": 32}),
    (MASKED_LM, RULE, {"dtype": "float16"}),
    ("ElectraForCausalLM", {"num_attention_heads": 2}),
    ("ElectraModel", {"layer_norm_eps": 1e-6}),
    (TAGGER, {"num_labels": 7, "num_attention_heads": 2}),
    ("ElectraForQuestionAnswering", {"layer_norm_eps": 1e-5}),
    (CLASSIFIER, {"num_labels": 3, "num_attention_heads": 8}),
    ("ElectraForMultipleChoice", {"hidden_act": "relu"}),
]
# Class, fields of its config, and the name in the error.
REFUSED = [
    (DISCRIMINATOR, {"hidden_act": "silu"}, "hidden_act"),
    (DISCRIMINATOR, {"hidden_act": "mish"}, "hidden_act"),
    (DISCRIMINATOR, {"is_decoder": True}, "is_decoder"),
    ("ElectraForCausalLM", {"is_decoder": True}, "is_decoder"),
    (MASKED_LM, {"hidden_act": "relu"}, "hidden_act"),
    (MASKED_LM, {"hidden_act": "gelu_new"}, "hidden_act"),
    (MASKED_LM, {"tie_word_embeddings": False}, "generator_lm_head.weight"),
    (DISCRIMINATOR, {POSITIONS: "relative_key"}, POSITIONS),
    (TAGGER, {"hidden_act": "quick_gelu"}, "hidden_act"),
]
# Fields of a generator next to a discriminator, and the name in the error.
PAIRS = [
    (RULE, None),
    ({**RULE, "num_hidden_layers": 1}, None),
    ({**RULE, "num_attention_heads": 4}, "num_attention_heads"),
    ({**RULE, "layer_norm_eps": 1e-5}, "layer_norm_eps"),
    ({**RULE, "hidden_act": "gelu_new"}, "hidden_act"),
    ({**RULE, "intermediate_size": 96}, "intermediate"),
]


@pytest.fixture(scope="session")
def inputs():
    mask = np.ones([3, 12], np.int32)
    mask[1, 7:] = 0
    segments = np.zeros([3, 12], np.int32)
    segments[:, 5:] = mask[:, 5:]
    ids = np.random.RandomState(0).randint(0, 200, [3, 12]).astype(np.int32)
    return {"input_ids": ids, "input_mask": mask, "segment_ids": segments}


@pytest.fixture(scope="session")
def saved(tmp_path_factory, inputs, transformers):
    """Return the folder of all models, saved in one process."""
    root = tmp_path_factory.mktemp("saved")
    np.savez(root / "inputs.npz", **inputs)
    cases = []

    def add(name, architecture, config, **options):
        folder, seed = str(root / name), len(cases)
        stated = {n: v for n, v in config.items() if n == POSITIONS}
        case = {"folder": folder, "seed": seed, "stated": stated}
        case |= {"architecture": architecture, "config": {**BASE, **config}}
        cases.append(case | options)
        return folder

    for i, (architecture, config, *options) in enumerate(COMPUTED):
        add(f"computed{i}", architecture, config, **dict(*options))
    for i, (architecture, config, _) in enumerate(REFUSED):
        add(f"refused{i}", architecture, config)
    for i, (config, _) in enumerate(PAIRS):
        first = add(f"pair{i}/discriminator", DISCRIMINATOR, {})
        add(f"pair{i}/generator", MASKED_LM, config, tables_of=first)
    keywords = {"cases": cases, "inputs_path": str(root / "inputs.npz")}
    transformers(("save_models", keywords))
    return root


TASKS = {"kinds": {}, "reviews": {}, "grade": {}}
TASKS["facts"] = {"joint_prediction": False}


@pytest.fixture(scope="session")
def saved_again(tmp_path_factory, finetuned_folder, transformers):
    """Return by task the run, its conversion, and transformers' copy of it."""
    root, folders = tmp_path_factory.mktemp("again"), {}
    for task, hparams in TASKS.items():
        run, ours = finetuned_folder(task, **hparams), str(root / task)
        flags = ["--output_format=huggingface", "--drop_unrepresentable"]
        args = ["convert_checkpoint", run, ours, *flags]
        convert_checkpoint.main(convert_checkpoint.parse_flags(args))
        folders[task] = (run, ours, f"{ours}-again")
    pairs = [(ours, again) for _, ours, again in folders.values()]
    transformers(("save_again", {"folders": pairs}))
    return folders


@pytest.mark.parametrize("task", TASKS)
def test_fine_tuned_models_are_read_back_from_transformers(task, saved_again):
    run, converted, again = map(open_weights, saved_again[task])
    assert not os.path.exists(f"{again.path}/vocab.txt")
    vocabs = [pathlib.Path(w.vocab_file).read_bytes() for w in (run, again)]
    assert vocabs[0] == vocabs[1]
    assert again.heads == converted.heads and again.specs == converted.specs
    tensors, converted_tensors, expected = (
        {name: weights.read(name) for name in again.specs}
        for weights in (again, converted, run)
    )
    if task == "kinds":
        name = "electra/embeddings/token_type_embeddings"
        expected[name] = expected[name][[1, 1]]
    assert differences(tensors, converted_tensors) == []
    assert differences(tensors, expected) == []


def answers_of(folder, inputs, vocab):
    """Return this project's outputs under transformers' names."""
    loaded, weights = load_pretrained(folder, vocab), open_weights(folder)
    model, sizes = loaded.model, loaded.model.encoder_config
    features = {name: tf.constant(value) for name, value in inputs.items()}
    features["segment_ids"] %= sizes.type_vocab_size
    outputs = {}
    if loaded.lacks_generator() is None:
        logits, encoded = model.generator_logits(features)
        outputs = {"logits": logits, "hidden": encoded[0].sequence_output}
    if model.discriminator and not loaded.lacks_discriminator(with_head=False):
        hidden = model.discriminator(
            *(features[n] for n in ("input_ids", "input_mask", "segment_ids"))
        ).sequence_output
        outputs["hidden"] = hidden
        if loaded.lacks_discriminator() is None:
            outputs["logits"] = model.discriminator_head(hidden)
    scope = f"task_specific/{(weights.contents.tasks or ('',))[0]}"
    if f"{scope}/hidden/bias" in weights.specs:
        first = outputs["hidden"][:, 0] @ weights.read(f"{scope}/hidden/kernel")
        first = gelu(first + weights.read(f"{scope}/hidden/bias"))
        logits = first @ weights.read(f"{scope}/dense/kernel")
        return outputs | {
            "logits": logits + weights.read(f"{scope}/dense/bias")
        }
    layers = {"dense": "logits"}
    if f"{scope}/dense_1/bias" in weights.specs:
        layers = {"dense": "start_logits", "dense_1": "end_logits"}
    for layer, name in layers.items():
        if f"{scope}/{layer}/bias" in weights.specs:
            kernel = weights.read(f"{scope}/{layer}/kernel")
            bias = weights.read(f"{scope}/{layer}/bias")
            logits = outputs["hidden"] @ kernel + bias
            outputs[name] = logits if name == "logits" else logits[..., 0]
    return outputs


def assert_same(folder, outputs, mask):
    with np.load(f"{folder}/answers.npz") as expected:
        names = set(expected) & set(outputs)
        assert "hidden" in names and len(names) == len(outputs)
        for name in names:
            values, real = expected[name], mask.astype(bool)
            real = real if values.shape[:2] == mask.shape else slice(None)
            error = np.abs(np.asarray(outputs[name])[real] - values[real])
            assert (error <= 1e-5 * np.maximum(1, np.abs(values[real]))).all()


@pytest.mark.parametrize(
    "i", range(len(COMPUTED)), ids=[f"{c[0]}-{c[1:]}" for c in COMPUTED]
)
def test_a_folder_gives_the_outputs_of_transformers(
    i, saved, inputs, tiny_vocab
):
    folder = str(saved / f"computed{i}")
    actual = answers_of(folder, inputs, tiny_vocab)
    assert_same(folder, actual, inputs["input_mask"])
    headless = ("ElectraModel", "ElectraForMultipleChoice")
    assert (len(actual) == 1) is (COMPUTED[i][0] in headless)


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_a_model_that_would_compute_different_outputs_is_refused(i, saved):
    refused(REFUSED[i][-1], open_weights, str(saved / f"refused{i}"))


@pytest.mark.parametrize("i", range(len(PAIRS)))
def test_a_generator_next_to_its_discriminator_is_computed_or_refused(
    i, saved, inputs, tiny_vocab
):
    folder, (_, named) = saved / f"pair{i}", PAIRS[i]
    if named:
        refused(named, load_pretrained, str(folder), tiny_vocab)
        return
    loaded = load_pretrained(str(folder), tiny_vocab)
    features = {name: tf.constant(value) for name, value in inputs.items()}
    logits, encoded = loaded.model.generator_logits(features)
    actual = {"logits": logits, "hidden": encoded[0].sequence_output}
    assert_same(folder / "generator", actual, inputs["input_mask"])
