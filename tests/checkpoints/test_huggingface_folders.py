# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading of Hugging Face folders in all forms, and refusal of damaged ones."""

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
HEAD_TABLE = "generator_lm_head.weight"
INDEX = "model.safetensors.index.json"
SHARD = "model-0000{}-of-00003.safetensors"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("", None, "missing config.json and weights; expected these"),
        ("config.json", "{", "config.json: not valid JSON"),
        ("model.safetensors", None, "no weights; expected model.safetensors"),
        ("model.safetensors", "version https://git-lfs.github", "git lfs pull"),
    ],
)
def test_a_missing_or_different_file_is_refused(name, text, message, single):
    if not name:
        shutil.rmtree(single)
        single.mkdir()
    elif text is None:
        (single / name).unlink()
    else:
        (single / name).write_text(text)
    assert re.search(message, single.refused(), re.DOTALL)


def test_a_missing_folder_is_refused(single):
    shutil.rmtree(single)
    assert "no such folder" in single.refused()


def test_pytorch_shards_are_refused(single):
    (single / "model.safetensors").unlink()
    (single / "pytorch_model.bin.index.json").write_text("{}")
    assert "PyTorch files in shards are not supported" in single.refused()


def test_the_path_of_a_weight_file_opens_its_folder(single):
    assert open_weights(str(single / "model.safetensors")).path == str(single)


def test_the_path_of_an_unread_file_is_refused(single):
    shutil.copy(single / "model.safetensors", single / "model_best.safetensors")
    message = "this folder is read from"
    refused(message, open_weights, str(single / "model_best.safetensors"))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model_type", "bert", "model_type is 'bert'; expected 'electra'"),
        ("hidden_size", 7, "not match its config.json.*7.*hidden_size"),
        (
            "num_attention_heads",
            4,
            r"a multiple of num_attention_heads \(4\)",
        ),
        ("num_hidden_layers", 1, r"layer\.1\..* num_hidden_layers is 1"),
        ("position_embedding_type", "relative_key", "is 'relative_key'"),
        ("layer_norm_eps", None, "layer_norm_eps is None; expected a number"),
    ],
)
def test_a_config_of_a_different_model_is_refused(key, value, message, single):
    single.update_config({key: value})
    assert re.search(message, single.refused(), re.DOTALL)


def test_some_missing_tensors_are_named_and_all_are_counted(single):
    single.update_config({"num_hidden_layers": 4})
    message = single.refused()
    assert "\n  electra.encoder.layer.2.attention.self.query.weight" in message
    assert "... and 24 more" in message


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:100],
        lambda content: content[:-1],
        lambda content: content + b"\0",
    ],
    ids=["empty", "cut in the header", "cut by a byte", "a byte longer"],
)
def test_a_damaged_file_is_refused_on_opening_and_on_reading(damage, single):
    opened, path = single.weights(), single / "model.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    message = single.refused()
    assert f"{path}: truncated or corrupt safetensors" in message
    assert "again" in message
    with pytest.raises(
        UserError, match="truncated or corrupt safetensors file"
    ):
        opened.read("discriminator_predictions/dense/kernel")


@pytest.fixture
def sharded(single):
    values = single.tensors()
    (single / "model.safetensors").unlink()
    files = {n: SHARD.format(i % 3 + 1) for i, n in enumerate(sorted(values))}
    for file in set(files.values()):
        shard = {n: v for n, v in values.items() if files[n] == file}
        save_file(shard, single / file, {"format": "pt"})
    (single / INDEX).write_text(json.dumps({"weight_map": files}))
    return single


def test_shards_are_read(sharded, discriminator):
    same_tensors(sharded.weights(), discriminator)
    assert open_weights(str(sharded)).kind == "huggingface"


def test_a_missing_shard_is_refused(sharded):
    (sharded / SHARD.format(2)).unlink()
    assert f"{SHARD.format(2)}: missing" in sharded.refused()


def test_an_index_without_a_weight_map_is_refused(sharded):
    (sharded / INDEX).write_text("{}")
    assert "no `weight_map`" in sharded.refused()


def redirect_bias(folder, choose_file):
    """Let an index name a different file for a tensor."""
    index = json.loads((folder / INDEX).read_text())
    files = index["weight_map"]
    files[BIAS] = choose_file(files)
    (folder / INDEX).write_text(json.dumps(index))


@pytest.mark.parametrize("file", ["../x", "/etc/passwd", "..", "", 3])
def test_an_index_that_leaves_the_folder_is_refused(file, sharded):
    redirect_bias(sharded, lambda files: file)
    message = f"{BIAS} is {file!r}; expected the name of a file in the folder"
    assert message in sharded.refused()


def test_an_index_that_names_a_different_shard_is_refused(sharded):
    redirect_bias(
        sharded, lambda files: ({*files.values()} - {files[BIAS]}).pop()
    )
    assert f"no tensor {BIAS}, which" in sharded.refused()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bits_are_widened_and_reported(dtype, single, discriminator):
    narrow = {name: v.astype(dtype) for name, v in single.tensors().items()}
    single.store(narrow)
    read = single.weights()
    expected = {n: v.astype(dtype) for n, v in discriminator.items()}
    expected = {n: v.astype(np.float32) for n, v in expected.items()}
    same_tensors(read, expected)
    ((name, reason),) = read.dropped.items()
    assert name == f"{np.dtype(dtype).name} values"
    assert f"{len(narrow)} " in reason and "float32" in reason


def test_quantized_tensors_are_refused(single):
    values = single.tensors()
    name = "discriminator_predictions.dense.weight"
    single.store({**values, name: values[name].astype(np.int8)})
    with pytest.raises(UserError, match="stored as I8.*quantization"):
        single.weights().read("discriminator_predictions/dense/kernel")


def test_older_names_and_constants_are_read(single, discriminator):
    """Read tensors without a prefix, with TensorFlow's names of norms."""
    values = {
        name.removeprefix("electra.")
        .replace("LayerNorm.weight", "LayerNorm.gamma")
        .replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in single.tensors().items()
    }
    single.store(values | {"embeddings.position_ids": np.arange(12)[None]})
    same_tensors(open_weights(str(single / "model.safetensors")), discriminator)
    assert not single.weights().dropped


@pytest.mark.parametrize("left_out", [(), (TABLE,)])
def test_a_tied_copy_of_the_table_is_read_as_the_table(left_out, both, whole):
    values = (both / "generator").tensors()
    values[HEAD_TABLE] = values[TABLE]
    stored = {name: v for name, v in values.items() if name not in left_out}
    (both / "generator").store(stored)
    same_tensors(both.weights(), whole)
    assert not both.weights().dropped


def test_an_untied_table_is_refused(both):
    values = (both / "generator").tensors()
    values[HEAD_TABLE] = values[TABLE] + 1
    (both / "generator").store(values)
    assert "differs from the table of token embeddings" in both.refused()


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("ElectraForTokenClassification", "chunk"),
        ("ElectraForQuestionAnswering", "squad"),
        ("ElectraModel", ""),
    ],
)
def test_heads_of_undeclared_classes_are_recognized(architecture, task, out):
    values = arrays(Network(architecture, task=task))
    segments = values["electra/embeddings/token_type_embeddings"]
    segments[0] = segments[1]  # A written tagger has equal rows.
    weights = MemoryWeights(values)
    weights.heads = {"chunk": TaskHead("tagging")}
    out.write(weights)
    out.update_config({"architectures": None, "electra_tf": None})
    same_tensors(out.weights(), values)
    if task == "squad":  # The rows are the layers of starts and ends.
        matrix = out.tensors()["qa_outputs.weight"]
        for row, layer in zip(matrix, ("dense", "dense_1"), strict=True):
            kernel = values[f"task_specific/squad/{layer}/kernel"]
            np.testing.assert_array_equal(row, kernel[:, 0])


@pytest.mark.parametrize(
    ("stored", "expected"),
    [("gelu_python", None), ("gelu_fast", "gelu_new"), ("relu", "relu")],
)
def test_settings_of_a_folder_are_read_and_written(stored, expected, single):
    single.update_config({"layer_norm_eps": 1e-5, "hidden_act": stored})
    read = single.weights()
    stated = read.hparams["model_hparam_overrides"]
    assert stated["layer_norm_eps"] == 1e-5
    assert stated.get("hidden_act") == expected and not read.dropped
    out = type(single)(single.parent / "again")
    out.write(read, part="discriminator")
    assert out.config()["layer_norm_eps"] == 1e-5
    assert out.config()["hidden_act"] == (expected or "gelu")


def test_a_generators_training_settings_are_replaced_and_reported(both):
    (both / "generator").update_config({"hidden_dropout_prob": 0.3})
    ((name, reason),) = both.weights().dropped.items()
    assert name == "generator's config.json: hidden_dropout_prob"
    assert reason.startswith("0.3 in the file")


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
    (both / "generator").update_config({name: value})
    assert f"{both}/generator/config.json: {name} is" in both.refused()


def test_a_generator_with_unusual_heads_is_read_alone_as_a_masked_lm(both):
    (both / "generator").update_config({"num_attention_heads": 5})
    read = (both / "generator").weights()
    assert read.contents.description == "a masked LM (no discriminator)"
    stated = read.hparams["model_hparam_overrides"]
    assert stated["num_attention_heads"] == 5


def test_only_tensors_of_pytorch_files_are_read(
    single, discriminator, monkeypatch
):
    def tensor(value):
        """Return a stand-in for the used part of a torch.Tensor."""
        double = types.SimpleNamespace(dtype="torch.float32", shape=value.shape)
        double.float, double.numpy = lambda: double, lambda: value
        return double

    def load(path, weights_only, mmap=False, **options):
        assert weights_only
        if mmap:
            raise RuntimeError("mmap can only be used with files of 1.6")
        return values

    def fail(path, **options):
        raise ValueError("Weights only load failed.\nlong story")

    values = {n: tensor(v) for n, v in single.tensors().items()}
    (single / "model.safetensors").unlink()
    (single / "pytorch_model.bin").write_bytes(b"zip")
    torch = types.SimpleNamespace(load=load)
    monkeypatch.setitem(sys.modules, "torch", torch)
    same_tensors(single.weights(), discriminator)
    torch.load = fail
    assert "(ValueError: Weights only load failed.)" in single.refused()
    monkeypatch.setitem(sys.modules, "torch", None)
    assert re.search("requires PyTorch, which.*torch", single.refused())


def test_a_generator_in_the_discriminators_folder_is_refused(both):
    shutil.rmtree(both / "discriminator")
    shutil.copytree(both / "generator", both / "discriminator")
    message = both.refused()
    assert (
        "discriminator contains ElectraForMaskedLM; expected the d" in message
    )


def test_a_wrong_class_is_refused_for_missing_tensors(both):
    generator = both / "generator"
    generator.update_config({"architectures": ["ElectraForPreTraining"]})
    message = "lacks tensors of ElectraForPreTraining"
    assert message in generator.refused()


@pytest.mark.parametrize("rows", [210, 200])
def test_parts_of_different_models_are_refused(rows, both):
    generator = both / "generator"
    values = generator.tensors()
    values[TABLE] = values[TABLE][:rows] + 1
    values["generator_lm_head.bias"] = values["generator_lm_head.bias"][:rows]
    generator.store(values)
    generator.update_config({"vocab_size": rows})
    message = both.refused()
    assert "not belong to one model. Convert the networks separately" in message
    assert "word_embeddings" in message


def test_a_generator_as_wide_as_its_tables_may_have_separate_tables(
    out, discriminator
):
    part = Network("ElectraForMaskedLM", "generator", "generator")
    narrow = arrays(part, seed=1, hidden_size=4, intermediate_size=20)
    values = {**narrow, **discriminator}
    out.write(values)
    # transformers saves it without this project's mark.
    (out / "generator").update_config({"electra_tf": None})
    read = out.weights()
    same_tensors(read, values)
    assert read.hparams["untied_generator_embeddings"] is True


def test_variables_of_no_network_are_refused(out):
    message = out.write_refused({"a": np.zeros(2)})
    assert "not a recognized ELECTRA checkpoint" in message


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("{tmp_path}/file/in", "cannot be written"),
        ("gs://bucket/model", "local path for"),
    ],
)
def test_a_folder_that_cannot_be_made_is_refused(
    folder, message, discriminator, tmp_path
):
    (tmp_path / "file").touch()
    weights = MemoryWeights(discriminator)
    refused(message, write_huggingface, weights, folder.format(**locals()))


SHAPED = "electra/encoder/layer_0/output/dense/bias"
MISSING = "generator/encoder/layer_1/output/dense/bias"


@pytest.mark.parametrize(
    ("change", "hparams", "message"),
    [
        ({SHAPED: np.zeros(7, "f4")}, {}, "checkpoint [7], model [6]"),
        (
            {MISSING: None},
            {},
            f"lacks variables of ElectraForMaskedLM:\n  {MISSING}",
        ),
        (
            {},
            {"vocab_size": 99},
            "is 210 according to the weights' shapes, but 99",
        ),
        ({}, {"hidden_act": "relu"}, "hidden_act is relu, which the original"),
    ],
)
def test_variables_that_do_not_fit_are_refused(
    change, hparams, message, out, whole
):
    values = {n: v for n, v in (whole | change).items() if v is not None}
    hparams = {"model_hparam_overrides": hparams}
    options = {"hparams": hparams, "drop_unrepresentable": not change}
    assert message in out.write_refused(values, **options)


def test_a_discriminator_may_have_any_activation(out, whole):
    hparams = {"model_hparam_overrides": {"hidden_act": "relu"}}
    out.write(whole, part="discriminator", hparams=hparams)
    assert out.config()["hidden_act"] == "relu"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda lines: [*lines, *(f"w{i}" for i in range(11))],
            "211 tokens, but the model has 210",
        ),
        (lambda lines: lines[:50], "missing"),
    ],
    ids=["longer", "shorter"],
)
def test_a_vocabulary_that_does_not_fit_is_refused(
    change, message, out, whole, tmp_path, tiny_vocab
):
    path = tmp_path / "changed.txt"
    lines = pathlib.Path(tiny_vocab).read_text().splitlines()
    path.write_text("\n".join(change(lines)) + "\n")
    assert message in out.write_refused(whole, vocab_file=str(path))


@hypothesis.given(
    shapes=st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=8).filter(
            lambda name: name != "__metadata__"
        ),
        st.lists(st.integers(0, 4), max_size=3),
        max_size=6,
    )
)
def test_the_library_reads_written_files(tmp_path_factory, shapes):
    path = str(tmp_path_factory.mktemp("files") / "model.safetensors")
    random = np.random.RandomState(0)
    # Random bits include NaN, infinite and denormal numbers.
    values = {
        name: random.randint(0, 256, [*shape, 4], np.uint8)
        .view(np.float32)
        .reshape(shape)
        .T
        for name, shape in shapes.items()
    }
    specs = {n: TensorSpec(v.shape, v.dtype) for n, v in values.items()}
    write_safetensors(path, specs, values.__getitem__)
    same_tensors(MemoryWeights(load_file(path)), values)
    with safe_open(path, framework="np") as file:
        assert file.metadata() == {"format": "pt"}


def test_a_model_is_written_and_read_in_a_quarter_of_its_size(out):
    sizes = {"hidden_size": 256, "intermediate_size": 1024, "vocab_size": 1000}
    sizes |= {"max_position_embeddings": 512, "num_hidden_layers": 12}
    sizes |= {"type_vocab_size": 2, "embedding_size": 256}
    large = RandomWeights(
        {
            name: pair.variable_shape(sizes)
            for pair in Network("ElectraForPreTraining").pairs(sizes)
            for name in pair.variables
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


CASINGS = [(lower, strip) for lower in (True, False) for strip in (True, False)]


@pytest.mark.parametrize(("lower", "strip"), CASINGS)
def test_casing_is_read_from_either_file(lower, strip, tmp_path, tiny_vocab):
    hparams = {"do_lower_case": lower, "strip_accents": strip}
    files = tokenizer_files(load_vocab(tiny_vocab), hparams, 64)
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    casing = read_tokenizer(str(tmp_path)).hparams
    (tmp_path / "tokenizer_config.json").unlink()
    assert read_tokenizer(str(tmp_path)).hparams == casing
    assert casing["do_lower_case"] is lower
    # Only a lower-casing tokenizer strips accents.
    assert casing.get("strip_accents", True) is (strip or not lower)


@pytest.mark.parametrize(("lower", "strip"), CASINGS)
def test_both_tokenizer_files_state_the_casing(lower, strip, tiny_vocab):
    hparams = {"do_lower_case": lower, "strip_accents": strip}
    files = tokenizer_files(load_vocab(tiny_vocab), hparams, 64)
    config = files["tokenizer_config.json"]
    normalizer = files["tokenizer.json"]["normalizer"]
    assert config["do_lower_case"] is normalizer["lowercase"] is lower
    assert config["strip_accents"] is (lower and strip)
    assert normalizer["strip_accents"] is (lower and strip)


def test_tokenizer_files_state_class_length_and_special_tokens(tiny_vocab):
    files = tokenizer_files(load_vocab(tiny_vocab), {}, 64)
    config = files["tokenizer_config.json"]
    assert config["tokenizer_class"] == "ElectraTokenizer"
    assert config["model_max_length"] == 64
    special = files["special_tokens_map.json"]
    names = ("unk", "sep", "pad", "cls", "mask")
    assert special == {f"{n}_token": f"[{n.upper()}]" for n in names}
    assert special.items() <= config.items()


def test_a_vocabulary_in_tokenizer_json_only_is_read(single, out, tiny_vocab):
    vocab, expected = load_vocab(tiny_vocab), pathlib.Path(tiny_vocab)
    files = tokenizer_files(vocab, {"do_lower_case": False}, 64)
    (single / "tokenizer.json").write_text(json.dumps(files["tokenizer.json"]))
    read = single.weights()
    assert pathlib.Path(read.vocab_file).read_bytes() == expected.read_bytes()
    assert read.hparams["do_lower_case"] is False
    out.write(read, part="discriminator")
    assert (out / "vocab.txt").read_bytes() == expected.read_bytes()


@pytest.mark.parametrize(
    "name", ["BertTokenizerFast", "ElectraTokenizer", None]
)
def test_tokenizer_classes_with_equal_words_are_read(name, single):
    config = json.dumps({"tokenizer_class": name})
    (single / "tokenizer_config.json").write_text(config)
    assert read_tokenizer(str(single)).hparams
