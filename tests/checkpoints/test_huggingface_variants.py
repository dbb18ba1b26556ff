# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders as people have them: old, narrow, with other heads."""

import json
import sys
import types

import ml_dtypes
import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.checkpoints.huggingface_names import Network

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


@pytest.mark.parametrize(
    ("key", "value"),
    [("position_embedding_type", "relative_key"), ("hidden_act", "silu")],
)
def test_settings_of_another_model_are_refused(key, value, one):
    one.set_config(**{key: value})
    assert f"{key} is {value!r}" in one.refused()


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
