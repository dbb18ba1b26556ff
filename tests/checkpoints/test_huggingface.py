# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models in Hugging Face folders, and their heads, are read as written."""

import contextlib
import json
import os
import pathlib
import re

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import huggingface_layout as layout
from electra_tf.checkpoints.contents import HIDDEN, TOWERS, TaskHead
from electra_tf.checkpoints.huggingface_layout import Network
from electra_tf.checkpoints.huggingface_reader import open_huggingface
from electra_tf.checkpoints.huggingface_writer import write_huggingface
from electra_tf.checkpoints.weights import (
    MemoryWeights,
    select_part,
    select_tensors,
)
from electra_tf.modeling.activations import gelu
from electra_tf.pretraining.model import PretrainingModel
from tests.checkpoints.conftest import RandomWeights, arrays, same_tensors
from tests.conftest import refused


def noise(shapes):
    """Return random weights of these shapes, without slots and step."""
    return RandomWeights(shapes, slots=False, step=None)


@pytest.fixture(scope="session")
def scaled(of_config):
    """Return random weights of a configuration with axes divided by 16."""
    return lambda name: of_config(name, 16, slots=False, step=None)


def test_every_pretrained_model_is_read_as_written(pretrain_name, scaled, out):
    weights = scaled(pretrain_name)
    towers = {n for n in weights.specs if n.startswith(TOWERS)}
    report = out.write(weights, drop_unrepresentable=bool(towers))
    assert set(report.left_out) == towers
    parts = ["discriminator"] if towers else ["discriminator", "generator"]
    parts = [part for part in parts if weights.contents.holds(part)]
    assert sorted(path.name for path in out.iterdir()) == parts
    same_tensors(
        out.weights(), select_tensors(weights, lambda n: n not in towers)
    )


def test_every_tuned_model_is_read_as_written(finetune_name, scaled, out):
    weights, name = scaled(finetune_name), finetune_name
    head = {n for n in weights.specs if n.startswith("task_specific/")}
    written = head if name.endswith("_chunk") else set()
    if written:
        weights = MemoryWeights(dict(weights))
        weights.heads = {"chunk": TaskHead("tagging")}
        segments = weights.read("electra/embeddings/token_type_embeddings")
        segments[0] = segments[1]  # A written tagger has equal rows.
    if name.endswith("_nojoint"):
        written = {n for n in head if "/dense/" in n or "/dense_1/" in n}
        assert len(written) == 4 and len(head) == 8
    if written != head:
        message = out.write_refused(weights)
        assert "--drop_unrepresentable" in message
        is_joint = any("/qa_hidden/" in name for name in head)
        assert ("joint question-answering head" in message) is is_joint
    report = out.write(weights, drop_unrepresentable=True)
    assert set(report.left_out) == head - written
    rest = select_tensors(weights, lambda name: name not in head - written)
    same_tensors(out.weights(), rest)


@pytest.fixture
def with_objective(tiny_config):
    def make(objective):
        model = PretrainingModel(tiny_config(objective=objective))
        return noise({v.name[:-2]: v.shape for v in model.variables})

    return make


@pytest.mark.parametrize(
    ("part", "named"),
    [("all", "masked LM"), ("discriminator", "masked-LM head")],
)
def test_two_masked_lms_are_refused(part, named, with_objective, out):
    weights = with_objective("replace_mlm")
    assert named in out.write_refused(weights, part=part)


def test_a_discriminators_masked_lm_head_is_left_out(with_objective, out):
    weights = with_objective("all_tokens_mlm")
    report = out.write(weights, drop_unrepresentable=True)
    assert {n.split("/")[0] for n in report.left_out} == {"token_predictions"}
    assert out.weights().contents.discriminates


HALF = {"generator_hidden_size": 0.5}
MODELS = {
    "electra": HALF,
    "half the layers": {**HALF, "generator_layers": 0.5},
    "tied": {"untied_generator": False},
    "own embeddings": {**HALF, "untied_generator_embeddings": True},
    "masked LM": {"electra_objective": False},
    "uniform": {"uniform_generator": True},
    "cased": {**HALF, "do_lower_case": False},
    "accents": {**HALF, "strip_accents": False},
}


@pytest.mark.parametrize("name", MODELS)
def test_a_read_config_builds_the_same_model(
    name, tiny_config, tiny_vocab, out
):
    def shapes_of(config):
        variables = PretrainingModel(config).variables
        return {v.name[:-2]: tuple(v.shape) for v in variables}

    config = tiny_config(**MODELS[name])
    shapes = shapes_of(config)
    out.write(noise(shapes), vocab_file=tiny_vocab, hparams=config.as_dict())
    read = out.weights()
    # A folder states neither the length of examples nor that a discriminator
    # had no generator.
    stated = {**read.hparams, "max_seq_length": 16}
    stated["uniform_generator"] = name == "uniform"
    stated["vocab_file"] = read.vocab_file
    again = PretrainingConfig.create("again", "data", **stated)
    assert shapes_of(again) == shapes
    assert not read.dropped
    assert again.do_lower_case == config.do_lower_case
    assert again.strip_accents == config.strip_accents
    assert again.embedding_size == config.embedding_size
    assert again.model_hparam_overrides["num_attention_heads"] == 2
    vocab = pathlib.Path(read.vocab_file).read_bytes()
    assert vocab == pathlib.Path(tiny_vocab).read_bytes()


def test_a_generator_alone_has_the_originals_heads(out):
    network = Network("ElectraForMaskedLM", "generator", "electra")
    values = arrays(network, hidden_size=128, intermediate_size=512)
    overrides = {"model_hparam_overrides": {"num_attention_heads": 12}}
    out.write(values, part="generator", hparams=overrides)
    same_tensors(out.weights(), values)
    assert out.config()["num_attention_heads"] == 2
    out.update_config({"num_attention_heads": 4})  # as a masked LM has
    again = type(out)(out.parent / "again")
    again.write(out.weights())
    assert (again / "generator").config()["num_attention_heads"] == 4


@st.composite
def models(draw):
    """Return the shapes of a discriminator, a masked LM, or a generator."""
    tables = {
        "vocab_size": draw(st.integers(1, 7)),
        "type_vocab_size": draw(st.integers(1, 3)),
        "max_position_embeddings": draw(st.integers(1, 5)),
        "embedding_size": draw(st.integers(1, 4)),
    }

    def sizes():
        return tables | {
            "hidden_size": draw(st.integers(1, 4)),
            "intermediate_size": draw(st.integers(1, 5)),
            "num_hidden_layers": draw(st.integers(1, 2)),
        }

    def shapes(network, sizes):
        pairs = network.pairs(sizes)
        return {
            name: p.variable_shape(sizes) for p in pairs for name in p.variables
        }

    kind = draw(st.sampled_from(["whole", "tied", "own", "disc", "mlm"]))
    first, variables = sizes(), {}
    if kind != "mlm":
        variables |= shapes(Network("ElectraForPreTraining"), first)
    if kind in ("tied", "mlm"):
        variables |= shapes(Network("ElectraForMaskedLM"), first)
    if kind in ("whole", "own"):
        second, scope = sizes(), "generator" if kind == "own" else "electra"
        if kind == "own":
            second["embedding_size"] = second["hidden_size"]
        generator = Network("ElectraForMaskedLM", "generator", scope)
        variables |= shapes(generator, second)
    return variables


@hypothesis.given(shapes=models())
@hypothesis.settings(max_examples=40)
def test_any_model_is_read_as_written(tmp_path_factory, shapes):
    folder = str(tmp_path_factory.mktemp("any"))
    weights = noise(shapes)
    write_huggingface(weights, folder)
    same_tensors(open_huggingface(folder), weights)


class Interrupted(MemoryWeights):
    """Changed values whose reading fails at the generator's last tensor."""

    def read(self, name):
        if name == "generator_predictions/output_bias":
            raise KeyboardInterrupt
        return super().read(name) + 1


def test_an_interrupted_write_leaves_no_folder(scaled, tmp_path):
    weights = Interrupted(dict(scaled("pretrain/small")))
    with pytest.raises(KeyboardInterrupt):
        write_huggingface(weights, str(tmp_path / "a" / "b"))
    assert not list(tmp_path.iterdir())


def test_an_interrupted_write_changes_no_earlier_model(scaled, tmp_path):
    weights = scaled("pretrain/small")
    other = Interrupted(dict(weights))
    write_huggingface(weights, str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        write_huggingface(other, str(tmp_path), overwrite=True)
    same_tensors(open_huggingface(str(tmp_path)), weights)
    files = [name for _, _, names in os.walk(tmp_path) for name in names]
    names = ("config.json", "digests.json", "model.safetensors")
    assert sorted(files) == [name for name in names for _ in range(2)]


def test_a_kill_leaves_a_complete_model_or_none(scaled, out, monkeypatch):
    def killed(source, target):
        if str(target) == str(out / "generator" / "config.json"):
            raise KeyboardInterrupt
        return rename(source, target)

    rename = os.replace
    monkeypatch.setattr(os, "replace", killed)
    weights = scaled("pretrain/small")
    with contextlib.suppress(KeyboardInterrupt):
        out.write(weights)
    if out.exists():
        same_tensors(out.weights(), weights)


def test_overwrite_replaces_all_files_of_a_model(scaled, out, tiny_vocab):
    weights = scaled("pretrain/small")
    out.write(weights, vocab_file=tiny_vocab)
    refused("exists.*--overwrite", out.write, weights)
    other = MemoryWeights({name: value + 1 for name, value in weights})
    out.write(other, overwrite=True)
    read = out.weights()
    same_tensors(read, other)
    assert read.vocab_file is None  # The earlier vocabulary is removed.
    alone = select_part(other, "discriminator")
    out.write(alone, overwrite=True)  # The earlier generator is removed.
    same_tensors(out.weights(), alone)


LABELS = ("bad", "neutral", "good")
SEGMENTS = "electra.embeddings.token_type_embeddings.weight"


@pytest.fixture
def tagger(out, tiny_vocab):
    """Return the weights of a tagger, and write them to `out`."""
    weights = MemoryWeights(
        arrays(Network("ElectraForTokenClassification", task="pos"))
    )
    weights.heads = {"pos": TaskHead("tagging", LABELS)}
    out.write(weights, vocab_file=tiny_vocab, hparams={"do_lower_case": False})
    return weights


def read_tokenizer_config(folder):
    return json.loads((folder / "tokenizer_config.json").read_text())


def test_a_tagger_is_written_with_segment_1_in_all_rows(tagger, out):
    config = out.config()
    assert config["id2label"] == dict(zip("012", LABELS, strict=True))
    values = dict(tagger)
    table = values["electra/embeddings/token_type_embeddings"]
    assert (out.tensors()[SEGMENTS] == table[1]).all()
    values["electra/embeddings/token_type_embeddings"] = table[[1, 1]]
    same_tensors(out.weights(), values)
    assert out.weights().heads == tagger.heads


def test_a_tagger_splits_words_like_the_original(tagger, out):
    tokenizer = read_tokenizer_config(out)
    assert tokenizer["do_lower_case"] is True
    assert tokenizer["tokenize_chinese_chars"] is False


def test_a_tagger_of_transformers_has_segment_0_and_its_tokenizer(tagger, out):
    tensors = out.tensors()
    tensors[SEGMENTS][0] += 1
    out.update_config({"electra_tf": None})
    out.without_digests().store(tensors)
    (out / "tokenizer.json").unlink()
    config = {"do_lower_case": False, "tokenizer_class": "BertTokenizer"}
    (out / "tokenizer_config.json").write_text(json.dumps(config))
    again = out.parent / "again"
    write_huggingface(open_huggingface(str(out)), str(again))
    table = load_file(again / "model.safetensors")[SEGMENTS]
    np.testing.assert_array_equal(table, tensors[SEGMENTS][[0, 0]])
    tokenizer = read_tokenizer_config(again)
    assert tokenizer["do_lower_case"] is False
    assert tokenizer["tokenize_chinese_chars"] is True


@pytest.mark.parametrize("kind", layout.PROBLEMS)
def test_a_written_head_contains_a_shifted_identity(kind, out):
    values = arrays(Network("ElectraModel"), hidden_size=64)
    random = np.random.RandomState(2)
    head = {"kernel": random.randn(64, 3) / 8, "bias": random.randn(3)}
    head = {n: v.astype(np.float32) for n, v in head.items()}
    for name, value in head.items():
        values[f"task_specific/own/dense/{name}"] = value
    weights = MemoryWeights(values)
    weights.heads = {"own": TaskHead(kind, LABELS)}
    report = out.write(weights)
    assert not report.left_out and "rounding" in str(report.notes)
    assert out.config()["problem_type"] == layout.PROBLEMS[kind]
    tensors = out.tensors()
    norm = "electra/encoder/layer_1/output/LayerNorm"
    gamma, beta = values[f"{norm}/gamma"], values[f"{norm}/beta"]
    # Layer norms give such outputs, from typical values to extremes.
    normal = random.randn(100, 64)
    normal[:64] = 1e3 * np.eye(64) * random.choice([-1, 1], 64)
    deviation = normal.std(1, keepdims=True)
    normal = (normal - normal.mean(1, keepdims=True)) / deviation
    vectors = (normal * gamma + beta).astype(np.float32)

    def check(tensors, kernel):
        values = {name: v.astype(np.float32) for name, v in tensors.items()}
        inner = vectors @ values["classifier.dense.weight"].T
        inner += values["classifier.dense.bias"]
        np.testing.assert_array_equal(gelu(tf.constant(inner)), inner)
        logits = inner @ values["classifier.out_proj.weight"].T
        logits += values["classifier.out_proj.bias"]
        expected = vectors @ kernel + head["bias"]
        np.testing.assert_allclose(logits, expected, rtol=0, atol=3e-5)

    check(tensors, head["kernel"])
    read = out.weights()
    assert read.heads == weights.heads
    same_tensors(read, values)
    # In float16 the last bias still cancels the shift.
    half = out.parent / "half"
    write_huggingface(weights, str(half), half_precision=True)
    kernel = head["kernel"].astype(np.float16).astype(np.float32)
    check(load_file(half / "model.safetensors"), kernel)
    name = "task_specific/own/dense/bias"
    bias = open_huggingface(str(half)).read(name)
    np.testing.assert_array_equal(bias, head["bias"])
    # A bias that transformers trained is not the recorded one.
    tensors["classifier.out_proj.bias"] += 1
    out.without_digests().store(tensors)
    moved = out.weights().read(name) - head["bias"]
    np.testing.assert_allclose(moved, 1, rtol=1e-5)


@pytest.mark.parametrize("large", [65520.0, -1e5, 3e38])
def test_values_beyond_half_precision_are_refused(out, large):
    values = arrays(Network(layout.SENTENCES, task="own", first_layer=HIDDEN))
    values["task_specific/own/dense/kernel"][0, 0] = large
    weights = MemoryWeights(values)
    weights.heads = {"own": TaskHead("classification", LABELS)}
    folder = str(out.parent / "half")
    refused(
        re.escape(f"the value {large:g} is too large for float16"),
        lambda: write_huggingface(weights, folder, half_precision=True),
    )
    assert not os.path.exists(folder)


def test_a_head_of_two_layers_is_the_head_of_transformers(out):
    values = arrays(Network(layout.SENTENCES, task="own", first_layer=HIDDEN))
    weights = MemoryWeights(values)
    weights.heads = {"own": TaskHead("classification", LABELS)}
    report = out.write(weights)
    assert not report.left_out and "classifier.dense" not in report.notes
    tensors, scope = out.tensors(), "task_specific/own"
    for layer, name in (("dense", HIDDEN), ("out_proj", "dense")):
        kernel = tensors[f"classifier.{layer}.weight"].T
        np.testing.assert_array_equal(kernel, values[f"{scope}/{name}/kernel"])
        bias = tensors[f"classifier.{layer}.bias"]
        np.testing.assert_array_equal(bias, values[f"{scope}/{name}/bias"])
    read = out.weights()
    assert read.heads == weights.heads
    same_tensors(read, values)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (TaskHead("classification", (), "mean"), "pooling is mean"),
        (TaskHead("parsing"), "no head for a task of type parsing"),
        (None, "shapes do not distinguish a tagger from a classifier"),
    ],
)
def test_a_head_that_transformers_lacks_is_refused(head, reason, out):
    network = Network("ElectraForTokenClassification", task="own")
    weights = MemoryWeights(arrays(network))
    weights.heads = {"own": head} if head else {}
    assert reason in out.write_refused(weights)
