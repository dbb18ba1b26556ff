# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders as people have them, whole, old, damaged or mixed up."""

import json
import pathlib
import re
import shutil
import sys
import types

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from configure.errors import UserError
from electra_tf.checkpoints.huggingface_names import Network
from electra_tf.checkpoints.huggingface_reader import is_huggingface
from electra_tf.checkpoints.huggingface_writer import write_huggingface
from electra_tf.checkpoints.weights import MemoryWeights

# --- what is missing or does not fit -----------------------------------------


def test_no_folder_and_nothing_in_it(tmp_path, hf_folder):
    assert "no such folder" in hf_folder(tmp_path / "nothing").refused()
    message = hf_folder(tmp_path).refused()
    assert "no config.json" in message and "generator/" in message


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("config.json", None, "no config.json.*download"),
        ("config.json", "{", "config.json: not readable as JSON"),
        ("model.safetensors", None, "no weights; expected model.safetensors"),
        (
            "model.safetensors",
            "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9",
            "git lfs pull",
        ),
    ],
)
def test_files_that_are_missing_or_others(name, text, words, one):
    (one / name).unlink() if text is None else (one / name).write_text(text)
    assert re.search(words, one.refused(), re.DOTALL)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model_type": "bert"}, "model_type is 'bert'; expected 'electra'"),
        *(
            ({"hidden_size": value}, f"hidden_size is {value!r}")
            for value in (0, -1, "256", 2.0, True, None)
        ),
        ({"num_attention_heads": 4}, "not a multiple of num_attention_heads 4"),
        *(
            ({key: value}, f"not fit its config.json.*{value}.*{key}")
            for key, value in (
                ("vocab_size", 300),
                ("max_position_embeddings", 512),
                ("intermediate_size", 6),
                ("hidden_size", 7),
            )
        ),
        ({"num_hidden_layers": 1}, r"layer\.1\..* num_hidden_layers 1"),
        ({"position_embedding_type": "relative_key"}, "is 'relative_key'"),
        ({"hidden_act": "silu"}, "hidden_act is 'silu'"),
    ],
)
def test_a_config_of_another_model_is_named(settings, words, one):
    one.set_config(**settings)
    assert re.search(words, one.refused(), re.DOTALL)


def test_missing_tensors_are_named_and_many_counted(one):
    values = one.tensors()
    del values["discriminator_predictions.dense.bias"]
    one.store(values)
    message = one.refused()
    assert "lacks tensors that ElectraForPreTraining of 2 layers" in message
    assert "\n  discriminator_predictions.dense.bias" in message
    one.set_config(num_hidden_layers=4)
    message = one.refused()
    assert "layer.2.attention.self.query.weight" in message
    assert "... and 25 more" in message


# --- damaged files -----------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 4, 100, 5000, -1])
def test_a_cut_file(kept, one):
    path = one / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    message = one.refused()
    assert f"{path}: not a whole safetensors file" in message
    assert "again" in message


def test_a_file_with_something_after_its_end(one):
    with open(one / "model.safetensors", "ab") as file:
        file.write(b"\0" * 8)
    assert "not a whole safetensors file" in one.refused()


def test_a_file_cut_after_it_was_opened(one):
    read = one.weights()
    path = one / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(UserError, match="not a whole safetensors file"):
        read.read("discriminator_predictions/dense/kernel")


# --- shards ------------------------------------------------------------------


@pytest.fixture
def sharded(one):
    values = one.tensors()
    (one / "model.safetensors").unlink()
    weight_map = {}
    for i, name in enumerate(sorted(values)):
        shard = f"model-0000{i % 3 + 1}-of-00003.safetensors"
        weight_map[name] = shard
    for shard in set(weight_map.values()):
        held = {n: v for n, v in values.items() if weight_map[n] == shard}
        save_file(held, one / shard, {"format": "pt"})
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    path = one / "model.safetensors.index.json"
    path.write_text(json.dumps(index))
    return one


def set_index(folder, change):
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    change(index["weight_map"])
    path.write_text(json.dumps(index))


def test_shards_are_read(sharded, assert_values, discriminator):
    assert_values(sharded.weights(), discriminator)
    assert is_huggingface(str(sharded))


def test_a_missing_shard(sharded):
    (sharded / "model-00002-of-00003.safetensors").unlink()
    message = sharded.refused()
    assert "model-00002-of-00003.safetensors: missing" in message


def test_a_shard_without_a_tensor_of_the_index(sharded):
    name = "discriminator_predictions.dense.bias"
    set_index(
        sharded,
        lambda files: files.update(
            {name: next(f for f in files.values() if f != files[name])}
        ),
    )
    assert f"no tensor {name}, which" in sharded.refused()


@pytest.mark.parametrize("file", ["../x.safetensors", "/etc/passwd", 3])
def test_an_index_that_points_elsewhere(file, sharded):
    name = "discriminator_predictions.dense.bias"
    set_index(sharded, lambda files: files.update({name: file}))
    assert "is not the name of a file in the folder" in sharded.refused()


def test_an_index_without_a_map(sharded):
    (sharded / "model.safetensors.index.json").write_text("{}")
    assert "no `weight_map`" in sharded.refused()


# --- types -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bits_are_widened_and_said(dtype, one, assert_values, discriminator):
    narrow = {name: v.astype(dtype) for name, v in one.tensors().items()}
    one.store(narrow)
    read = one.weights()
    expected = {
        name: value.astype(dtype).astype(np.float32)
        for name, value in discriminator.items()
    }
    assert_values(read, expected)
    (said,) = read.dropped.items()
    assert said[0] == f"{np.dtype(dtype).name} values"
    assert f"{len(narrow)} " in said[1] and "float32" in said[1]


def test_quantized_tensors_are_refused(one):
    values = one.tensors()
    name = "discriminator_predictions.dense.weight"
    values[name] = values[name].astype(np.int8)
    one.store(values)
    read = one.weights()
    with pytest.raises(UserError, match="stored as I8.*quantization"):
        read.read("discriminator_predictions/dense/kernel")


# --- files of other ages and heads -------------------------------------------


def test_names_without_the_prefix(one, assert_values, discriminator):
    one.store({n.removeprefix("electra."): v for n, v in one.tensors().items()})
    assert_values(one.weights(), discriminator)


def test_layer_norms_under_tensorflows_names(one, assert_values, discriminator):
    def old(name):
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        return name.replace("LayerNorm.bias", "LayerNorm.beta")

    one.store({old(name): v for name, v in one.tensors().items()})
    assert_values(one.weights(), discriminator)


def test_constants_are_passed_over(one, assert_values, discriminator):
    values = one.tensors()
    values["electra.embeddings.position_ids"] = np.arange(12)[None]
    values["electra.embeddings.token_type_ids"] = np.zeros([1, 12], np.int64)
    one.store(values)
    read = one.weights()
    assert_values(read, discriminator)
    assert not read.dropped


@pytest.mark.parametrize("kept", ["both", "the copy only"])
def test_a_tied_copy_of_the_table(kept, both, assert_values, whole):
    values = (both / "generator").tensors()
    table = "electra.embeddings.word_embeddings.weight"
    values["generator_lm_head.weight"] = values[table]
    if kept != "both":
        del values[table]
    (both / "generator").store(values)
    read = both.weights()
    assert_values(read, whole)
    assert not read.dropped


def test_a_table_that_is_not_tied_is_refused(both):
    values = (both / "generator").tensors()
    table = values["electra.embeddings.word_embeddings.weight"]
    values["generator_lm_head.weight"] = table + 1
    (both / "generator").store(values)
    assert "is not the table of token embeddings" in both.refused()


def test_a_sentence_classifiers_head_is_dropped_and_said(one):
    values = {n: v for n, v in one.tensors().items() if "_pred" not in n}
    values["classifier.dense.weight"] = np.zeros([6, 6], np.float32)
    values["classifier.out_proj.weight"] = np.zeros([2, 6], np.float32)
    one.store(values)
    one.set_config(architectures=["ElectraForSequenceClassification"])
    read = one.weights()
    assert set(read.dropped) == set(n for n in values if "classifier" in n)
    assert all(n.startswith("electra/") for n in read.specs)
    assert read.contents.description == "an encoder (no pre-training heads)"


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("ElectraForTokenClassification", "chunk"),
        ("ElectraForQuestionAnswering", "squad"),
        ("ElectraModel", ""),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_other_heads_are_read(
    architecture, task, declared, tmp_path, hf_folder, arrays, assert_values
):
    values = arrays(Network(architecture, task=task))
    folder = hf_folder(tmp_path)
    folder.write(values)
    if not declared:
        config = json.loads((folder / "config.json").read_text())
        del config["architectures"], config["electra_tf"]
        (folder / "config.json").write_text(json.dumps(config))
    assert_values(folder.weights(), values)


def test_the_rows_of_a_question_answerer_are_start_and_end(
    tmp_path, hf_folder, arrays, assert_values
):
    values = arrays(Network("ElectraForQuestionAnswering", task="squadv1"))
    folder = hf_folder(tmp_path)
    folder.write(values)
    matrix = folder.tensors()["qa_outputs.weight"]
    head = "task_specific/squadv1"
    np.testing.assert_array_equal(
        matrix[0], values[f"{head}/dense/kernel"][:, 0]
    )
    np.testing.assert_array_equal(
        matrix[1], values[f"{head}/dense_1/kernel"][:, 0]
    )
    assert_values(folder.weights(), values)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("layer_norm_eps", 1e-5, "config.json: layer_norm_eps"),
        ("hidden_act", "gelu_new", "config.json: hidden_act"),
        ("is_decoder", True, "config.json: is_decoder"),
    ],
)
def test_settings_without_counterpart_are_said(key, value, said, one):
    one.set_config(**{key: value})
    assert list(one.weights().dropped) == [said]


# --- pytorch_model.bin -------------------------------------------------------


class Tensor:
    """As much of a torch.Tensor as is used."""

    def __init__(self, value, dtype="torch.float32"):
        self.value, self.dtype, self.shape = value, dtype, value.shape

    def float(self):
        return self

    def numpy(self):
        return self.value


@pytest.fixture
def pickled(one, monkeypatch):
    """A folder with pytorch_model.bin, and a stand-in for PyTorch."""
    values = {n: Tensor(v) for n, v in one.tensors().items()}
    (one / "model.safetensors").unlink()
    (one / "pytorch_model.bin").write_bytes(b"zip")
    calls = []

    def load(path, **options):
        calls.append(options)
        if options.get("mmap"):
            raise RuntimeError("mmap can only be used with files of 1.6")
        return values

    torch = types.SimpleNamespace(load=load)
    monkeypatch.setitem(sys.modules, "torch", torch)
    return types.SimpleNamespace(path=one, torch=torch, calls=calls)


def test_a_pytorch_file_is_read_as_tensors_only(
    pickled, assert_values, discriminator
):
    read = pickled.path.weights()
    assert_values(read, discriminator)
    assert len(pickled.calls) == 2
    assert all(options["weights_only"] is True for options in pickled.calls)


def test_a_pytorch_file_without_pytorch(pickled, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    message = pickled.path.refused()
    assert "only PyTorch reads this file" in message
    assert "pip install torch" in message and "save_pretrained" in message


def test_a_pytorch_file_with_other_objects(pickled):
    def load(path, **options):
        raise ValueError("Weights only load failed.\nlong story")

    pickled.torch.load = load
    message = pickled.path.refused()
    assert "as tensors alone (ValueError: Weights only load failed.)" in message
    assert "not loaded" in message


def test_a_pytorch_file_in_shards(one):
    (one / "model.safetensors").rename(one / "pytorch_model.bin.index.json")
    assert "a PyTorch file in shards is not read" in one.refused()


# --- generator and discriminator ---------------------------------------------


def test_a_part_in_the_others_folder(both):
    shutil.rmtree(both / "discriminator")
    shutil.copytree(both / "generator", both / "discriminator")
    message = both.refused()
    assert "discriminator holds ElectraForMaskedLM; expected the d" in message


def test_a_generator_that_claims_to_be_a_discriminator(both):
    (both / "generator").set_config(architectures=["ElectraForPreTraining"])
    message = (both / "generator").refused()
    assert "lacks tensors that ElectraForPreTraining" in message


def test_parts_of_different_models(both, tmp_path, hf_folder, whole):
    other = {name: value + 1 for name, value in whole.items()}
    hf_folder(tmp_path / "other").write(other)
    shutil.rmtree(both / "generator")
    shutil.copytree(tmp_path / "other" / "generator", both / "generator")
    message = both.refused()
    assert "are not of one model; read one part alone" in message
    assert "word_embeddings" in message


def test_parts_of_different_vocabularies(both):
    values = (both / "generator").tensors()
    for name in ("electra.embeddings.word_embeddings.weight",):
        values[name] = values[name][:-10]
    values["generator_lm_head.bias"] = values["generator_lm_head.bias"][:-10]
    (both / "generator").store(values)
    (both / "generator").set_config(vocab_size=200)
    assert "are not of one model" in both.refused()


def test_a_generator_as_wide_as_its_own_tables_may_have_them(
    tmp_path, hf_folder, arrays, assert_values, discriminator
):
    part = Network("ElectraForMaskedLM", "generator", "generator")
    narrow = arrays(part, seed=1, hidden_size=4, intermediate_size=20)
    values = {**narrow, **discriminator}
    folder = hf_folder(tmp_path)
    folder.write(values)
    # As transformers would have saved it, without our mark.
    (folder / "generator").set_config(electra_tf=None)
    read = folder.weights()
    assert_values(read, values)
    assert read.hparams["untied_generator_embeddings"] is True


def test_settings_of_the_generator_alone_are_said(both):
    (both / "generator").set_config(hidden_dropout_prob=0.3)
    dropped = both.weights().dropped
    (key,) = dropped
    assert key == "generator's config.json: hidden_dropout_prob"
    assert dropped[key].startswith("0.3 there")


# --- writing -----------------------------------------------------------------


@pytest.fixture
def out(tmp_path, hf_folder):
    return hf_folder(tmp_path / "out")


def test_a_part_that_is_not_there(out, arrays, discriminator, whole):
    message = out.write_refused(discriminator, part="generator")
    assert "holds a discriminator (no generator); there is no gen" in message
    masked_lm = arrays(Network("ElectraForMaskedLM"))
    message = out.write_refused(masked_lm, part="discriminator")
    assert "a masked LM (no discriminator); there is no discrim" in message
    assert "part is 'encoder'" in out.write_refused(whole, part="encoder")
    assert "no ELECTRA" in out.write_refused({"a": np.zeros(2)})


def test_a_variable_that_is_missing_or_of_another_shape(out, whole):
    values = dict(whole)
    del values["generator/encoder/layer_1/output/dense/bias"]
    name = "electra/encoder/layer_0/output/dense/bias"
    values[name] = np.zeros(7, np.float32)
    message = out.write_refused(values)
    assert f"{name}: float32 [7], expected float32 [6]" in message
    values[name] = whole[name]
    message = out.write_refused(values)
    assert "layer_1/output/dense/bias: missing" in message
    values = {**whole, name: whole[name].astype(np.float64)}
    assert "float64 [6]" in out.write_refused(values)


def test_hparams_of_another_model(out, whole):
    message = out.write_refused(whole, hparams={"vocab_size": 99})
    assert "vocab_size is 210 by the weights' shapes but 99" in message
    overrides = {"model_hparam_overrides": {"num_attention_heads": 5}}
    assert "not a multiple" in out.write_refused(whole, hparams=overrides)


def test_an_activation_the_generators_head_cannot_have(out, whole):
    hparams = {"model_hparam_overrides": {"hidden_act": "relu"}}
    message = out.write_refused(whole, hparams=hparams)
    assert "hidden_act relu of generator_predictions" in message
    out.write(whole, part="discriminator", hparams=hparams)


def test_a_vocabulary_of_another_model(out, whole, tmp_path, tiny_vocab):
    long = tmp_path / "long.txt"
    lines = pathlib.Path(tiny_vocab).read_text().splitlines()
    long.write_text("\n".join(lines + [f"w{i}" for i in range(11)]) + "\n")
    message = out.write_refused(whole, vocab_file=str(long))
    assert "211 lines but the model's token table 210 rows" in message
    long.write_text("\n".join(lines[:50]))
    assert "lacks" in out.write_refused(whole, vocab_file=str(long))


def test_a_remote_folder(discriminator):
    with pytest.raises(UserError, match="local disk only"):
        write_huggingface(MemoryWeights(discriminator), "gs://bucket/model")
