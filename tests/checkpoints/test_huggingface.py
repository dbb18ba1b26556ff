# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders: what goes out comes back to the bit; heads of tasks."""

import contextlib
import json
import os
import pathlib

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
from electra_tf.modeling.layers import gelu
from electra_tf.pretraining.model import PretrainingModel
from tests.checkpoints.conftest import RandomWeights, arrays, same_tensors
from tests.conftest import refused


def noise(shapes):
    """Random weights of given shapes, without slots and step."""
    return RandomWeights(shapes, slots=False, step=None)


@pytest.fixture(scope="session")
def scaled(of_config):
    """The same of a configuration, every axis a sixteenth as long."""
    return lambda name: of_config(name, 16, slots=False, step=None)


def test_every_pretrained_comes_back(pretrain_name, scaled, out):
    weights = scaled(pretrain_name)
    towers = {n for n in weights.specs if n.startswith(TOWERS)}
    report = out.write(weights, drop_unrepresentable=bool(towers))
    assert set(report.left_out) == towers
    parts = ["discriminator"] if towers else ["discriminator", "generator"]
    held = [part for part in parts if weights.contents.holds(part)]
    assert sorted(path.name for path in out.iterdir()) == held
    same_tensors(
        out.weights(), select_tensors(weights, lambda n: n not in towers)
    )


def test_every_tuned_model_comes_back(finetune_name, scaled, out):
    weights, name = scaled(finetune_name), finetune_name
    head = {n for n in weights.specs if n.startswith("task_specific/")}
    kept = head if name.endswith("_chunk") else set()
    if kept:
        weights = MemoryWeights(dict(weights))
        weights.heads = {"chunk": TaskHead("tagging")}
        segments = weights.read("electra/embeddings/token_type_embeddings")
        segments[0] = segments[1]  # as taggers are written
    if name.endswith("_nojoint"):
        kept = {n for n in head if "/dense/" in n or "/dense_1/" in n}
        assert len(kept) == 4 and len(head) == 8
    if kept != head:
        said = out.write_refused(weights)
        assert "--drop_unrepresentable" in said
        joint = any("/qa_hidden/" in name for name in head)
        assert ("joint question-answering head" in said) is joint
    report = out.write(weights, drop_unrepresentable=True)
    assert set(report.left_out) == head - kept
    rest = select_tensors(weights, lambda name: name not in head - kept)
    same_tensors(out.weights(), rest)


def test_a_second_masked_lm_has_no_place_there(tiny_config, out):
    def weights(objective):
        model = PretrainingModel(tiny_config(objective=objective))
        return noise({v.name[:-2]: v.shape for v in model.variables})

    replace_mlm = weights("replace_mlm")
    for part in ("all", "discriminator"):
        assert "masked LM" in out.write_refused(replace_mlm, part=part)
    report = out.write(weights("all_tokens_mlm"), drop_unrepresentable=True)
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
def test_a_config_builds_the_same(name, tiny_config, tiny_vocab, out):
    def shapes_of(config):
        variables = PretrainingModel(config).variables
        return {v.name[:-2]: tuple(v.shape) for v in variables}

    config = tiny_config(**MODELS[name])
    shapes = shapes_of(config)
    out.write(noise(shapes), vocab_file=tiny_vocab, hparams=config.as_dict())
    read = out.weights()
    # What a folder cannot say: the length of examples; that a discriminator
    # alone had no other generator.
    stated = {**read.hparams, "max_seq_length": 16}
    stated["uniform_generator"] = name == "uniform"
    stated["vocab_file"] = read.vocab_file
    again = PretrainingConfig.create("again", "data", **stated)
    assert shapes_of(again) == shapes
    assert not read.dropped
    for key in ("do_lower_case", "strip_accents", "embedding_size"):
        assert getattr(again, key) == getattr(config, key)
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
    out.set_config(num_attention_heads=4)  # then it is read as a masked LM
    again = type(out)(out.parent / "again")
    again.write(out.weights())
    assert (again / "generator").config()["num_attention_heads"] == 4


@st.composite
def models(draw):
    """Shapes of a discriminator, a masked LM, or a generator with either."""
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
        return {name: p.shape(sizes) for p in pairs for name in p.ours}

    kind = draw(st.sampled_from(["whole", "tied", "own", "disc", "mlm"]))
    first, found = sizes(), {}
    if kind != "mlm":
        found |= shapes(Network("ElectraForPreTraining"), first)
    if kind in ("tied", "mlm"):
        found |= shapes(Network("ElectraForMaskedLM"), first)
    if kind in ("whole", "own"):
        second, scope = sizes(), "generator" if kind == "own" else "electra"
        if kind == "own":
            second["embedding_size"] = second["hidden_size"]
        generator = Network("ElectraForMaskedLM", "generator", scope)
        found |= shapes(generator, second)
    return found


@hypothesis.given(shapes=models())
@hypothesis.settings(max_examples=40)
def test_any_model_comes_back(tmp_path_factory, shapes):
    folder = str(tmp_path_factory.mktemp("any"))
    weights = noise(shapes)
    write_huggingface(weights, folder)
    same_tensors(open_huggingface(folder), weights)


class Interrupted(MemoryWeights):
    """Other values, until the generator's last tensor."""

    def read(self, name):
        if name == "generator_predictions/output_bias":
            raise KeyboardInterrupt
        return super().read(name) + 1


def test_an_interrupted_write_changes_nothing(scaled, tmp_path):
    weights = scaled("pretrain/small")
    other = Interrupted(dict(weights))
    with pytest.raises(KeyboardInterrupt):
        write_huggingface(other, str(tmp_path / "a" / "b"))
    assert not list(tmp_path.iterdir())
    write_huggingface(weights, str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        write_huggingface(other, str(tmp_path), overwrite=True)
    same_tensors(open_huggingface(str(tmp_path)), weights)
    files = [name for _, _, names in os.walk(tmp_path) for name in names]
    names = ("config.json", "digests.json", "model.safetensors")
    assert sorted(files) == [name for name in names for _ in range(2)]


def test_a_kill_leaves_no_half_a_model(scaled, out, monkeypatch):
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


def test_files_are_replaced_if_asked(scaled, out, tiny_vocab):
    weights = scaled("pretrain/small")
    out.write(weights, vocab_file=tiny_vocab)
    refused("exists.*--overwrite", out.write, weights)
    other = MemoryWeights({name: value + 1 for name, value in weights})
    out.write(other, overwrite=True)
    read = out.weights()
    same_tensors(read, other)
    assert read.vocab_file is None  # the earlier model's went with it
    alone = select_part(other, "discriminator")
    out.write(alone, overwrite=True)  # and so does its generator
    same_tensors(out.weights(), alone)


LABELS = ("bad", "neutral", "good")
SEGMENTS = "electra.embeddings.token_type_embeddings.weight"


def test_a_tagger_has_its_own_segments(out, tiny_vocab):
    values = arrays(Network("ElectraForTokenClassification", task="pos"))
    weights = MemoryWeights(values)
    weights.heads = {"pos": TaskHead("tagging", LABELS)}
    out.write(weights, vocab_file=tiny_vocab, hparams={"do_lower_case": False})
    config = out.config()
    assert config["id2label"] == dict(zip("012", LABELS, strict=True))
    table = values["electra/embeddings/token_type_embeddings"]
    assert (out.tensors()[SEGMENTS] == table[1]).all()
    tokenizer = json.loads((out / "tokenizer_config.json").read_text())
    assert tokenizer["do_lower_case"] is True
    assert tokenizer["tokenize_chinese_chars"] is False
    read = out.weights()
    assert read.heads == weights.heads
    values["electra/embeddings/token_type_embeddings"] = table[[1, 1]]
    same_tensors(read, values)
    # One that transformers trained has its own segments and tokenizer.
    theirs = out.tensors()
    theirs[SEGMENTS][0] += 1
    out.set_config(electra_tf=None)
    out.without_digests().store(theirs)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (out / name).unlink()
    config = {"do_lower_case": False, "tokenizer_class": "BertTokenizer"}
    (out / "tokenizer_config.json").write_text(json.dumps(config))
    again = out.parent / "again"
    write_huggingface(open_huggingface(str(out)), str(again))
    table = load_file(again / "model.safetensors")[SEGMENTS]
    np.testing.assert_array_equal(table, theirs[SEGMENTS][[0, 0]])
    tokenizer = json.loads((again / "tokenizer_config.json").read_text())
    assert tokenizer["do_lower_case"] is False
    assert tokenizer["tokenize_chinese_chars"] is True


@pytest.mark.parametrize("kind", layout.PROBLEMS)
def test_a_head_passes_a_shifted_identity(kind, out):
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
    there = out.tensors()
    norm = "electra/encoder/layer_1/output/LayerNorm"
    gamma, beta = values[f"{norm}/gamma"], values[f"{norm}/beta"]
    # What a layer norm gives, its extremes too.
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

    check(there, head["kernel"])
    read = out.weights()
    assert read.heads == weights.heads
    same_tensors(read, values)
    # Rounded, it still takes back what was added.
    half = out.parent / "half"
    write_huggingface(weights, str(half), half_precision=True)
    kernel = head["kernel"].astype(np.float16).astype(np.float32)
    check(load_file(half / "model.safetensors"), kernel)
    name = "task_specific/own/dense/bias"
    found = open_huggingface(str(half)).read(name)
    np.testing.assert_array_equal(found, head["bias"])
    # Trained on in transformers, it is no longer the bias that was.
    there["classifier.out_proj.bias"] += 1
    out.without_digests().store(there)
    moved = out.weights().read(name) - head["bias"]
    np.testing.assert_allclose(moved, 1, rtol=1e-5)


def test_a_head_of_two_layers_is_transformers_own(out):
    values = arrays(Network(layout.SENTENCES, task="own", first=HIDDEN))
    weights = MemoryWeights(values)
    weights.heads = {"own": TaskHead("classification", LABELS)}
    report = out.write(weights)
    assert not report.left_out and "classifier.dense" not in report.notes
    there, ours = out.tensors(), "task_specific/own"
    for theirs, name in (("dense", HIDDEN), ("out_proj", "dense")):
        for part, name_there in (("kernel", "weight"), ("bias", "bias")):
            held = there[f"classifier.{theirs}.{name_there}"]
            value = values[f"{ours}/{name}/{part}"].T
            np.testing.assert_array_equal(held, value)
    read = out.weights()
    assert read.heads == weights.heads
    same_tensors(read, values)


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (TaskHead("classification", (), "mean"), "pooling is mean"),
        (TaskHead("parsing"), "no head for a task of type parsing"),
        (None, "shapes do not tell a tagger from a classifier"),
    ],
)
def test_a_head_that_transformers_lacks_is_refused(head, why, out):
    network = Network("ElectraForTokenClassification", task="own")
    weights = MemoryWeights(arrays(network))
    weights.heads = {"own": head} if head else {}
    assert why in out.write_refused(weights)
