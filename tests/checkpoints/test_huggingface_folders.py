# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders as people have them, and the files that are in them."""

import json
import pathlib
import re
import shutil
import sys
import tracemalloc
import types

import hypothesis
import hypothesis.strategies as st
import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from configure.errors import UserError
from electra_tf.checkpoints.contents import TaskHead
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.huggingface_layout import Network
from electra_tf.checkpoints.huggingface_tokenizer_files import tokenizer_files
from electra_tf.checkpoints.huggingface_writer import (
    write_huggingface,
    write_safetensors,
)
from electra_tf.checkpoints.weights import MemoryWeights, TensorSpec
from electra_tf.text.huggingface_tokenizer import read_tokenizer
from electra_tf.text.vocabulary import load_vocab
from tests.checkpoints.conftest import RandomWeights, arrays, same_tensors
from tests.conftest import refused

BIAS = "discriminator_predictions.dense.bias"
TABLE = "electra.embeddings.word_embeddings.weight"
INDEX = "model.safetensors.index.json"
SHARD = "model-0000{}-of-00003.safetensors"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("", None, "no config.json and no weights, neither here"),
        ("config.json", "{", "config.json: not valid JSON"),
        ("model.safetensors", None, "no weights; expected model.safetensors"),
        ("model.safetensors", "version https://git-lfs.github", "git lfs pull"),
    ],
)
def test_files_that_are_missing_or_others(name, text, words, one):
    if not name:
        shutil.rmtree(one)
        assert "no such folder" in one.refused()
    elif text is None:
        (one / name).unlink()
    else:
        (one / name).write_text(text)
    one.mkdir(exist_ok=True)
    assert re.search(words, one.refused(), re.DOTALL)
    if words.startswith("no weights"):
        (one / "pytorch_model.bin.index.json").write_text("{}")
        assert "a PyTorch file in shards is not read" in one.refused()


def test_a_file_that_is_not_the_one_that_is_read_is_refused(one):
    named = str(one / "model.safetensors")
    assert open_weights(named).path == str(one)
    shutil.copy(named, one / "model_best.safetensors")
    words = "model.safetensors is what is read; put model_best.safetensors"
    refused(words, open_weights, str(one / "model_best.safetensors"))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("model_type", "bert", "model_type is 'bert'; expected 'electra'"),
        ("hidden_size", 7, "not fit its config.json.*7.*hidden_size"),
        ("num_attention_heads", 4, "not a multiple of num_attention_heads 4"),
        ("num_hidden_layers", 1, r"layer\.1\..* num_hidden_layers 1"),
        ("position_embedding_type", "relative_key", "is 'relative_key'"),
        ("layer_norm_eps", None, "layer_norm_eps is None; expected a number"),
    ],
)
def test_a_config_of_another_model_is_named(key, value, words, one):
    one.set_config(**{key: value})
    assert re.search(words, one.refused(), re.DOTALL)


def test_missing_tensors_are_named_and_many_counted(one):
    one.set_config(num_hidden_layers=4)
    message = one.refused()
    assert "\n  electra.encoder.layer.2.attention.self.query.weight" in message
    assert "... and 24 more" in message


@pytest.mark.parametrize("kept", [0, 100, -1, None])
def test_a_file_cut_or_with_something_after_its_end(kept, one):
    read, path = one.weights(), one / "model.safetensors"
    path.write_bytes((path.read_bytes() + b"\0" * (kept is None))[:kept])
    message = one.refused()
    assert f"{path}: not a whole safetensors file" in message
    assert "again" in message
    with pytest.raises(UserError, match="not a whole safetensors file"):
        read.read("discriminator_predictions/dense/kernel")


@pytest.fixture
def sharded(one):
    values = one.tensors()
    (one / "model.safetensors").unlink()
    files = {n: SHARD.format(i % 3 + 1) for i, n in enumerate(sorted(values))}
    for file in set(files.values()):
        held = {n: v for n, v in values.items() if files[n] == file}
        save_file(held, one / file, {"format": "pt"})
    (one / INDEX).write_text(json.dumps({"weight_map": files}))
    return one


def test_shards_are_read(sharded, discriminator):
    same_tensors(sharded.weights(), discriminator)
    assert open_weights(str(sharded)).kind == "huggingface"
    (sharded / SHARD.format(2)).unlink()
    assert f"{SHARD.format(2)}: missing" in sharded.refused()
    (sharded / INDEX).write_text("{}")
    assert "no `weight_map`" in sharded.refused()


@pytest.mark.parametrize("file", [None, "../x", "/etc/passwd", "..", "", 3])
def test_an_index_that_points_elsewhere(file, sharded):
    index = json.loads((sharded / INDEX).read_text())
    files, words = index["weight_map"], "is not the name of a file in the fol"
    if file is None:  # another shard
        file = next(f for f in files.values() if f != files[BIAS])
        words = f"no tensor {BIAS}, which"
    files[BIAS] = file
    (sharded / INDEX).write_text(json.dumps(index))
    assert words in sharded.refused()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bits_are_widened_and_said(dtype, one, discriminator):
    narrow = {name: v.astype(dtype) for name, v in one.tensors().items()}
    one.store(narrow)
    read = one.weights()
    expected = {n: v.astype(dtype) for n, v in discriminator.items()}
    expected = {n: v.astype(np.float32) for n, v in expected.items()}
    same_tensors(read, expected)
    ((what, said),) = read.dropped.items()
    assert what == f"{np.dtype(dtype).name} values"
    assert f"{len(narrow)} " in said and "float32" in said


def test_quantized_tensors_are_refused(one):
    values = one.tensors()
    name = "discriminator_predictions.dense.weight"
    one.store({**values, name: values[name].astype(np.int8)})
    with pytest.raises(UserError, match="stored as I8.*quantization"):
        one.weights().read("discriminator_predictions/dense/kernel")


def test_older_names_and_constants(one, discriminator):
    """Without a prefix, with TensorFlow's norms, with numbers of positions."""
    values = {
        name.removeprefix("electra.")
        .replace("LayerNorm.weight", "LayerNorm.gamma")
        .replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in one.tensors().items()
    }
    one.store(values | {"embeddings.position_ids": np.arange(12)[None]})
    same_tensors(open_weights(str(one / "model.safetensors")), discriminator)
    assert not one.weights().dropped


def test_a_tied_copy_of_the_table(both, whole):
    values = (both / "generator").tensors()
    values["generator_lm_head.weight"] = values[TABLE]
    alone = {name: v for name, v in values.items() if name != TABLE}
    for tied in (values, alone):
        (both / "generator").store(tied)
        same_tensors(both.weights(), whole)
        assert not both.weights().dropped
    values["generator_lm_head.weight"] = values[TABLE] + 1
    (both / "generator").store(values)
    assert "is not the table of token embeddings" in both.refused()


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("ElectraForTokenClassification", "chunk"),
        ("ElectraForQuestionAnswering", "squad"),
        ("ElectraModel", ""),
    ],
)
def test_other_heads_are_known_undeclared(architecture, task, out):
    values = arrays(Network(architecture, task=task))
    segments = values["electra/embeddings/token_type_embeddings"]
    segments[0] = segments[1]  # as a tagger's are written
    weights = MemoryWeights(values)
    weights.heads = {"chunk": TaskHead("tagging")}
    out.write(weights)
    out.set_config(architectures=None, electra_tf=None)
    same_tensors(out.weights(), values)
    if task == "squad":  # the rows are start and end
        matrix = out.tensors()["qa_outputs.weight"]
        for row, layer in zip(matrix, ("dense", "dense_1"), strict=True):
            kernel = values[f"task_specific/squad/{layer}/kernel"]
            np.testing.assert_array_equal(row, kernel[:, 0])


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("gelu_python", None), ("gelu_fast", "gelu_new"), ("relu", "relu")],
)
def test_settings_of_a_folder_are_the_models(theirs, ours, one):
    one.set_config(layer_norm_eps=1e-5, hidden_act=theirs)
    read = one.weights()
    stated = read.hparams["model_hparam_overrides"]
    assert stated["layer_norm_eps"] == 1e-5
    assert stated.get("hidden_act") == ours and not read.dropped
    out = type(one)(one.parent / "again")
    out.write(read, part="discriminator")
    assert out.config()["layer_norm_eps"] == 1e-5
    assert out.config()["hidden_act"] == (ours or "gelu")


def test_a_generators_training_settings_give_way_and_are_said(both):
    (both / "generator").set_config(hidden_dropout_prob=0.3)
    ((name, said),) = both.weights().dropped.items()
    assert name == "generator's config.json: hidden_dropout_prob"
    assert said.startswith("0.3 there")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_attention_heads", 5),
        ("layer_norm_eps", 1e-5),
        ("hidden_act", "relu"),
        ("is_decoder", True),
    ],
)
def test_a_generator_that_cannot_be_computed_is_refused(name, value, both):
    (both / "generator").set_config(**{name: value})
    assert f"{both}/generator/config.json: {name} is" in both.refused()
    if name == "num_attention_heads":  # alone it is a masked LM
        read = (both / "generator").weights()
        assert read.contents.description == "a masked LM (no discriminator)"
        stated = read.hparams["model_hparam_overrides"]
        assert stated["num_attention_heads"] == 5


def test_pytorch_reads_its_files_tensors_only(one, discriminator, monkeypatch):
    def tensor(value):
        """As much of a torch.Tensor as is used."""
        made = types.SimpleNamespace(dtype="torch.float32", shape=value.shape)
        made.float, made.numpy = lambda: made, lambda: value
        return made

    def load(path, weights_only, mmap=False, **options):
        assert weights_only
        if mmap:
            raise RuntimeError("mmap can only be used with files of 1.6")
        return values

    def fail(path, **options):
        raise ValueError("Weights only load failed.\nlong story")

    values = {n: tensor(v) for n, v in one.tensors().items()}
    (one / "model.safetensors").unlink()
    (one / "pytorch_model.bin").write_bytes(b"zip")
    torch = types.SimpleNamespace(load=load)
    monkeypatch.setitem(sys.modules, "torch", torch)
    same_tensors(one.weights(), discriminator)
    torch.load = fail
    assert "(ValueError: Weights only load failed.)" in one.refused()
    monkeypatch.setitem(sys.modules, "torch", None)
    assert re.search("only PyTorch reads this file.*torch", one.refused())


def test_a_part_in_the_others_folder(both):
    shutil.rmtree(both / "discriminator")
    shutil.copytree(both / "generator", both / "discriminator")
    message = both.refused()
    assert "discriminator holds ElectraForMaskedLM; expected the d" in message
    (both / "generator").set_config(architectures=["ElectraForPreTraining"])
    message = (both / "generator").refused()
    assert "lacks tensors that ElectraForPreTraining" in message


@pytest.mark.parametrize("rows", [210, 200])
def test_parts_of_different_models(rows, both):
    generator = both / "generator"
    values = generator.tensors()
    values[TABLE] = values[TABLE][:rows] + 1
    values["generator_lm_head.bias"] = values["generator_lm_head.bias"][:rows]
    generator.store(values)
    generator.set_config(vocab_size=rows)
    message = both.refused()
    assert "are not of one model; read one part alone" in message
    assert "word_embeddings" in message


def test_a_generator_as_wide_as_its_own_tables_may_own_them(out, discriminator):
    part = Network("ElectraForMaskedLM", "generator", "generator")
    narrow = arrays(part, seed=1, hidden_size=4, intermediate_size=20)
    values = {**narrow, **discriminator}
    out.write(values)
    # As transformers would have saved it, without our mark.
    (out / "generator").set_config(electra_tf=None)
    read = out.weights()
    same_tensors(read, values)
    assert read.hparams["untied_generator_embeddings"] is True


def test_what_cannot_be_written_is_said(out, discriminator, tmp_path):
    assert "no ELECTRA" in out.write_refused({"a": np.zeros(2)})
    (tmp_path / "file").touch()
    for place, words in (
        (f"{tmp_path}/file/in", "cannot be written"),
        ("gs://bucket/model", "local disk only"),
    ):
        with pytest.raises(UserError, match=words):
            write_huggingface(MemoryWeights(discriminator), place)


SHAPED = "electra/encoder/layer_0/output/dense/bias"
LACKED = "generator/encoder/layer_1/output/dense/bias"


@pytest.mark.parametrize(
    ("change", "hparams", "words"),
    [
        ({SHAPED: np.zeros(7, "f4")}, {}, "checkpoint [7], model [6]"),
        ({LACKED: None}, {}, f"lacks\n  {LACKED}"),
        ({}, {"vocab_size": 99}, "is 210 by the weights' shapes but 99"),
        ({}, {"hidden_act": "relu"}, "relu of generator_predictions"),
    ],
)
def test_what_does_not_fit_is_refused(change, hparams, words, out, whole):
    values = {n: v for n, v in (whole | change).items() if v is not None}
    hparams = {"model_hparam_overrides": hparams}
    options = {"hparams": hparams, "drop_unrepresentable": not change}
    assert words in out.write_refused(values, **options)
    if "relu" in words:  # the generator's head has no activation
        out.write(whole, part="discriminator", hparams=hparams)


def test_a_vocabulary_of_another_model(out, whole, tmp_path, tiny_vocab):
    long = tmp_path / "long.txt"
    lines = pathlib.Path(tiny_vocab).read_text().splitlines()
    long.write_text("\n".join(lines + [f"w{i}" for i in range(11)]) + "\n")
    message = out.write_refused(whole, vocab_file=str(long))
    assert "211 tokens but the model has 210" in message
    long.write_text("\n".join(lines[:50]))
    assert "lacks" in out.write_refused(whole, vocab_file=str(long))


@hypothesis.given(
    shapes=st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=8).filter(
            lambda name: name != "__metadata__"
        ),
        st.lists(st.integers(0, 4), max_size=3),
        max_size=6,
    )
)
def test_the_library_reads_what_is_written(tmp_path_factory, shapes):
    path = str(tmp_path_factory.mktemp("files") / "model.safetensors")
    random = np.random.RandomState(0)
    # All bits there are: NaN, infinite and denormal numbers, too.
    values = {
        name: random.randint(0, 256, [*shape, 4], np.uint8)
        .view(np.float32)
        .reshape(shape)
        .T
        for name, shape in shapes.items()
    }
    specs = {n: TensorSpec(v.shape, v.dtype) for n, v in values.items()}
    write_safetensors(path, specs, values.__getitem__)
    read = load_file(path)
    assert set(read) == set(values)
    for name, value in values.items():
        assert read[name].tobytes() == value.tobytes()
        assert read[name].shape == value.shape
    with safe_open(path, framework="np") as file:
        assert file.metadata() == {"format": "pt"}


def test_a_model_passes_through_little_memory(out):
    sizes = {"hidden_size": 256, "intermediate_size": 1024, "vocab_size": 1000}
    sizes |= {"max_position_embeddings": 512, "num_hidden_layers": 12}
    sizes |= {"type_vocab_size": 2, "embedding_size": 256}
    large = RandomWeights(
        {
            name: pair.shape(sizes)
            for pair in Network("ElectraForPreTraining").pairs(sizes)
            for name in pair.ours
        },
        slots=False,
        step=None,
    )
    tracemalloc.start()
    write_huggingface(large, str(out), part="discriminator")
    read = out.weights()
    assert all(np.array_equal(value, large.read(name)) for name, value in read)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.25 * sum(s.size_in_bytes for s in large.specs.values())


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("strip", [True, False])
def test_settings_come_back(lower, strip, tmp_path, tiny_vocab):
    hparams = {"do_lower_case": lower, "strip_accents": strip}
    files = tokenizer_files(load_vocab(tiny_vocab), hparams, 64)
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    stated = read_tokenizer(str(tmp_path)).hparams
    (tmp_path / "tokenizer_config.json").unlink()
    assert read_tokenizer(str(tmp_path)).hparams == stated
    assert stated["do_lower_case"] is lower
    # Only a lower-casing tokenizer strips accents.
    assert stated.get("strip_accents", True) is (strip or not lower)
    config = files["tokenizer_config.json"]
    normalizer = files["tokenizer.json"]["normalizer"]
    assert normalizer["lowercase"] is lower
    for stated in (config, normalizer):
        assert stated["strip_accents"] is (lower and strip)
    assert config["tokenizer_class"] == "ElectraTokenizer"
    assert config["model_max_length"] == 64
    special = files["special_tokens_map.json"]
    names = ("unk", "sep", "pad", "cls", "mask")
    assert special == {f"{n}_token": f"[{n.upper()}]" for n in names}
    assert special.items() <= config.items()


def test_a_vocabulary_only_in_json_is_read(one, out, tiny_vocab):
    vocab, expected = load_vocab(tiny_vocab), pathlib.Path(tiny_vocab)
    files = tokenizer_files(vocab, {"do_lower_case": False}, 64)
    (one / "tokenizer.json").write_text(json.dumps(files["tokenizer.json"]))
    read = one.weights()
    assert pathlib.Path(read.vocab_file).read_bytes() == expected.read_bytes()
    assert read.hparams["do_lower_case"] is False
    out.write(read, part="discriminator")
    assert (out / "vocab.txt").read_bytes() == expected.read_bytes()


SPLIT = "tokenizer_config.json"


def test_tokenizers_of_the_same_words_are_read(one):
    for usual in ("BertTokenizerFast", "ElectraTokenizer", None):
        (one / SPLIT).write_text(json.dumps({"tokenizer_class": usual}))
        assert read_tokenizer(str(one)).hparams
