# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders as people have them: old, cut, mixed up, half there."""

import json
import pathlib
import shutil
import sys
import types

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from configure.errors import UserError
from electra_tf.checkpoints import huggingface as hf
from electra_tf.checkpoints.huggingface_names import Part, part_pairs
from electra_tf.checkpoints.weights import MemoryWeights

SIZES = {
    "vocab_size": 210,
    "type_vocab_size": 2,
    "max_position_embeddings": 12,
    "embedding_size": 4,
    "hidden_size": 6,
    "intermediate_size": 24,
    "number of labels": 3,
}
GENERATOR = {**SIZES, "hidden_size": 5, "intermediate_size": 20}


def arrays(part, sizes=SIZES, seed=0):
    random = np.random.RandomState(seed)
    projected = sizes["embedding_size"] != sizes["hidden_size"]
    return {
        name: random.randn(*pair.shape(sizes)).astype(np.float32)
        for pair in part_pairs(part, 2, projected)
        for name in pair.ours
    }


DISCRIMINATOR = arrays(Part("ElectraForPreTraining"))
WHOLE = {
    **arrays(Part("ElectraForMaskedLM", "generator", "electra"), GENERATOR, 1),
    **DISCRIMINATOR,
}


def written(folder, values=DISCRIMINATOR, **options):
    hf.write_huggingface(MemoryWeights(values), str(folder), **options)


@pytest.fixture
def one(tmp_path):
    """A discriminator's folder."""
    written(tmp_path / "one", part="discriminator")
    return tmp_path / "one"


@pytest.fixture
def both(tmp_path):
    """Generator and discriminator."""
    written(tmp_path / "both", WHOLE)
    return tmp_path / "both"


def tensors(folder):
    return load_file(folder / "model.safetensors")


def store(folder, values):
    save_file(values, folder / "model.safetensors", {"format": "pt"})


def set_config(folder, **values):
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps(config))


def refused(folder):
    with pytest.raises(UserError) as caught:
        hf.open_huggingface(str(folder))
    return str(caught.value)


def assert_values(read, values):
    assert set(read.specs) == set(values)
    for name, value in values.items():
        assert read.read(name).dtype == np.float32
        np.testing.assert_array_equal(read.read(name), value, name)


# --- what is missing ---------------------------------------------------------


def test_no_folder(tmp_path):
    assert "no such folder" in refused(tmp_path / "nothing")


def test_nothing_in_the_folder(tmp_path):
    message = refused(tmp_path)
    assert "no config.json" in message and "generator/" in message


def test_no_config(one):
    (one / "config.json").unlink()
    message = refused(one)
    assert "no config.json" in message and "download" in message


def test_a_config_that_is_not_json(one):
    (one / "config.json").write_text("{")
    assert "config.json: not readable as JSON" in refused(one)


def test_another_kind_of_model(one):
    set_config(one, model_type="bert")
    assert "model_type is 'bert'; expected 'electra'" in refused(one)


@pytest.mark.parametrize("value", [0, -1, "256", 2.0, True, None])
def test_a_size_that_is_none(value, one):
    set_config(one, hidden_size=value)
    assert f"hidden_size is {value!r}" in refused(one)


def test_heads_that_do_not_divide(one):
    set_config(one, num_attention_heads=4)
    assert "not a multiple of num_attention_heads 4" in refused(one)


def test_no_weights(one):
    (one / "model.safetensors").unlink()
    assert "no weights; expected model.safetensors" in refused(one)


def test_missing_tensors_are_named(one):
    values = tensors(one)
    del values["discriminator_predictions.dense.bias"]
    store(one, values)
    message = refused(one)
    assert "lacks tensors that ElectraForPreTraining of 2 layers" in message
    assert "\n  discriminator_predictions.dense.bias" in message


def test_many_missing_tensors_are_counted(one):
    set_config(one, num_hidden_layers=4)
    message = refused(one)
    assert "layer.2.attention.self.query.weight" in message
    assert "... and 24 more" in message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocab_size", 300),
        ("max_position_embeddings", 512),
        ("intermediate_size", 6),
        ("hidden_size", 7),
    ],
)
def test_a_config_of_other_sizes_is_named(key, value, one):
    set_config(one, **{key: value})
    message = refused(one)
    assert "does not fit its config.json" in message
    assert key in message and str(value) in message


# --- damaged files -----------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 4, 100, 5000, -1])
def test_a_cut_file(kept, one):
    path = one / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    message = refused(one)
    assert f"{path}: not a whole safetensors file" in message
    assert "again" in message


def test_a_file_with_something_after_its_end(one):
    with open(one / "model.safetensors", "ab") as file:
        file.write(b"\0" * 8)
    assert "not a whole safetensors file" in refused(one)


def test_a_file_cut_after_it_was_opened(one):
    read = hf.open_huggingface(str(one))
    path = one / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(UserError, match="not a whole safetensors file"):
        read.read("discriminator_predictions/dense/kernel")


def test_a_git_lfs_pointer(one):
    (one / "model.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    )
    assert "git lfs pull" in refused(one)


# --- shards ------------------------------------------------------------------


@pytest.fixture
def sharded(one):
    values = tensors(one)
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


def test_shards_are_read(sharded):
    assert_values(hf.open_huggingface(str(sharded)), DISCRIMINATOR)
    assert hf.is_huggingface(str(sharded))


def test_a_missing_shard(sharded):
    (sharded / "model-00002-of-00003.safetensors").unlink()
    message = refused(sharded)
    assert "model-00002-of-00003.safetensors: missing" in message


def test_a_shard_without_a_tensor_of_the_index(sharded):
    name = "discriminator_predictions.dense.bias"
    set_index(
        sharded,
        lambda files: files.update(
            {name: next(f for f in files.values() if f != files[name])}
        ),
    )
    assert f"no tensor {name}, which" in refused(sharded)


@pytest.mark.parametrize("file", ["../x.safetensors", "/etc/passwd", 3])
def test_an_index_that_points_elsewhere(file, sharded):
    name = "discriminator_predictions.dense.bias"
    set_index(sharded, lambda files: files.update({name: file}))
    assert "is not the name of a file in the folder" in refused(sharded)


def test_an_index_without_a_map(sharded):
    (sharded / "model.safetensors.index.json").write_text("{}")
    assert "no `weight_map`" in refused(sharded)


# --- types -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bits_are_widened_and_said(dtype, one):
    narrow = {name: v.astype(dtype) for name, v in tensors(one).items()}
    store(one, narrow)
    read = hf.open_huggingface(str(one))
    expected = {
        name: value.astype(dtype).astype(np.float32)
        for name, value in DISCRIMINATOR.items()
    }
    assert_values(read, expected)
    (said,) = read.dropped.items()
    assert said[0] == f"{np.dtype(dtype).name} values"
    assert f"{len(narrow)} " in said[1] and "float32" in said[1]


def test_quantized_tensors_are_refused(one):
    values = tensors(one)
    name = "discriminator_predictions.dense.weight"
    values[name] = values[name].astype(np.int8)
    store(one, values)
    read = hf.open_huggingface(str(one))
    with pytest.raises(UserError, match="stored as I8.*quantization"):
        read.read("discriminator_predictions/dense/kernel")


# --- files of other ages and heads -------------------------------------------


def test_names_without_the_prefix(one):
    store(one, {n.removeprefix("electra."): v for n, v in tensors(one).items()})
    assert_values(hf.open_huggingface(str(one)), DISCRIMINATOR)


def test_layer_norms_under_tensorflows_names(one):
    def old(name):
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        return name.replace("LayerNorm.bias", "LayerNorm.beta")

    store(one, {old(name): v for name, v in tensors(one).items()})
    assert_values(hf.open_huggingface(str(one)), DISCRIMINATOR)


def test_constants_are_passed_over(one):
    values = tensors(one)
    values["electra.embeddings.position_ids"] = np.arange(12)[None]
    values["electra.embeddings.token_type_ids"] = np.zeros([1, 12], np.int64)
    store(one, values)
    read = hf.open_huggingface(str(one))
    assert_values(read, DISCRIMINATOR)
    assert not read.dropped


@pytest.mark.parametrize("kept", ["both", "the copy only"])
def test_a_tied_copy_of_the_table(kept, both):
    values = tensors(both / "generator")
    table = "electra.embeddings.word_embeddings.weight"
    values["generator_lm_head.weight"] = values[table]
    if kept != "both":
        del values[table]
    store(both / "generator", values)
    read = hf.open_huggingface(str(both))
    assert_values(read, WHOLE)
    assert not read.dropped


def test_a_table_that_is_not_tied_is_refused(both):
    values = tensors(both / "generator")
    table = values["electra.embeddings.word_embeddings.weight"]
    values["generator_lm_head.weight"] = table + 1
    store(both / "generator", values)
    assert "is not the table of token embeddings" in refused(both)


def test_a_sentence_classifiers_head_is_dropped_and_said(one):
    values = {n: v for n, v in tensors(one).items() if "_pred" not in n}
    values["classifier.dense.weight"] = np.zeros([6, 6], np.float32)
    values["classifier.out_proj.weight"] = np.zeros([2, 6], np.float32)
    store(one, values)
    set_config(one, architectures=["ElectraForSequenceClassification"])
    read = hf.open_huggingface(str(one))
    assert set(read.dropped) == set(n for n in values if "classifier" in n)
    assert all(n.startswith("electra/") for n in read.specs)
    assert hf.what_part(read) == "an encoder (no pre-training heads)"


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("ElectraForTokenClassification", "chunk"),
        ("ElectraForQuestionAnswering", "squad"),
        ("ElectraModel", ""),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_other_heads_are_read(architecture, task, declared, tmp_path):
    values = arrays(Part(architecture, task=task))
    written(tmp_path, values)
    if not declared:
        config = json.loads((tmp_path / "config.json").read_text())
        del config["architectures"], config["electra_tf"]
        (tmp_path / "config.json").write_text(json.dumps(config))
    assert_values(hf.open_huggingface(str(tmp_path)), values)


def test_the_rows_of_a_question_answerer_are_start_and_end(tmp_path):
    values = arrays(Part("ElectraForQuestionAnswering", task="squadv1"))
    written(tmp_path, values)
    matrix = tensors(tmp_path)["qa_outputs.weight"]
    head = "task_specific/squadv1"
    np.testing.assert_array_equal(
        matrix[0], values[f"{head}/dense/kernel"][:, 0]
    )
    np.testing.assert_array_equal(
        matrix[1], values[f"{head}/dense_1/kernel"][:, 0]
    )
    assert_values(hf.open_huggingface(str(tmp_path)), values)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("layer_norm_eps", 1e-5, "config.json: layer_norm_eps"),
        ("hidden_act", "gelu_new", "config.json: hidden_act"),
        ("is_decoder", True, "config.json: is_decoder"),
    ],
)
def test_settings_without_counterpart_are_said(key, value, said, one):
    set_config(one, **{key: value})
    assert list(hf.open_huggingface(str(one)).dropped) == [said]


@pytest.mark.parametrize(
    ("key", "value"),
    [("position_embedding_type", "relative_key"), ("hidden_act", "silu")],
)
def test_settings_of_another_model_are_refused(key, value, one):
    set_config(one, **{key: value})
    assert f"{key} is {value!r}" in refused(one)


# --- generator and discriminator ---------------------------------------------


def test_a_part_in_the_others_folder(both):
    shutil.rmtree(both / "discriminator")
    shutil.copytree(both / "generator", both / "discriminator")
    message = refused(both)
    assert "discriminator holds ElectraForMaskedLM; expected the d" in message


def test_a_generator_that_claims_to_be_a_discriminator(both):
    set_config(both / "generator", architectures=["ElectraForPreTraining"])
    message = refused(both / "generator")
    assert "lacks tensors that ElectraForPreTraining" in message


def test_parts_of_different_models(both, tmp_path):
    other = {name: value + 1 for name, value in WHOLE.items()}
    written(tmp_path / "other", other)
    shutil.rmtree(both / "generator")
    shutil.copytree(tmp_path / "other" / "generator", both / "generator")
    message = refused(both)
    assert "are not of one model; read one part alone" in message
    assert "word_embeddings" in message


def test_parts_of_different_vocabularies(both):
    values = tensors(both / "generator")
    for name in ("electra.embeddings.word_embeddings.weight",):
        values[name] = values[name][:-10]
    values["generator_lm_head.bias"] = values["generator_lm_head.bias"][:-10]
    store(both / "generator", values)
    set_config(both / "generator", vocab_size=200)
    assert "are not of one model" in refused(both)


def test_a_generator_as_wide_as_its_own_tables_may_have_them(tmp_path):
    sizes = {**GENERATOR, "hidden_size": 4}
    part = Part("ElectraForMaskedLM", "generator", "generator")
    values = {**arrays(part, sizes, 1), **DISCRIMINATOR}
    written(tmp_path, values)
    # As transformers would have saved it, without our mark.
    set_config(tmp_path / "generator", electra_tf=None)
    read = hf.open_huggingface(str(tmp_path))
    assert_values(read, values)
    assert read.hparams["untied_generator_embeddings"] is True


def test_settings_of_the_generator_alone_are_said(both):
    set_config(both / "generator", hidden_dropout_prob=0.3)
    dropped = hf.open_huggingface(str(both)).dropped
    (key,) = dropped
    assert key == "generator's config.json: hidden_dropout_prob"
    assert dropped[key].startswith("0.3 there")


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
    values = {n: Tensor(v) for n, v in tensors(one).items()}
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


def test_a_pytorch_file_is_read_as_tensors_only(pickled):
    read = hf.open_huggingface(str(pickled.path))
    assert_values(read, DISCRIMINATOR)
    assert len(pickled.calls) == 2
    assert all(options["weights_only"] is True for options in pickled.calls)


def test_a_pytorch_file_without_pytorch(pickled, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    message = refused(pickled.path)
    assert "only PyTorch reads this file" in message
    assert "pip install torch" in message and "save_pretrained" in message


def test_a_pytorch_file_with_other_objects(pickled):
    def load(path, **options):
        raise ValueError("Weights only load failed.\nlong story")

    pickled.torch.load = load
    message = refused(pickled.path)
    assert "as tensors alone (ValueError: Weights only load failed.)" in message
    assert "not loaded" in message


def test_a_pytorch_file_in_shards(one):
    (one / "model.safetensors").rename(one / "pytorch_model.bin.index.json")
    assert "a PyTorch file in shards is not read" in refused(one)


# --- writing -----------------------------------------------------------------


def write_refused(folder, values=WHOLE, **options):
    with pytest.raises(UserError) as caught:
        written(folder, values, **options)
    assert not pathlib.Path(folder).exists()
    return str(caught.value)


def test_a_part_that_is_not_there(tmp_path):
    folder = tmp_path / "out"
    message = write_refused(folder, DISCRIMINATOR, part="generator")
    assert "holds a discriminator (no generator); there is no gen" in message
    masked_lm = arrays(Part("ElectraForMaskedLM"))
    message = write_refused(folder, masked_lm, part="discriminator")
    assert "a masked LM (no discriminator); there is no discrim" in message
    assert "part is 'encoder'" in write_refused(folder, part="encoder")
    assert "no ELECTRA" in write_refused(folder, {"a": np.zeros(2)})


def test_a_variable_that_is_missing_or_of_another_shape(tmp_path):
    values = dict(WHOLE)
    del values["generator/encoder/layer_1/output/dense/bias"]
    name = "electra/encoder/layer_0/output/dense/bias"
    values[name] = np.zeros(7, np.float32)
    message = write_refused(tmp_path / "out", values)
    assert f"{name}: float32 [7], expected float32 [6]" in message
    values[name] = WHOLE[name]
    message = write_refused(tmp_path / "out", values)
    assert "layer_1/output/dense/bias: missing" in message
    values = {**WHOLE, name: WHOLE[name].astype(np.float64)}
    assert "float64 [6]" in write_refused(tmp_path / "out", values)


def test_hparams_of_another_model(tmp_path):
    out = tmp_path / "out"
    message = write_refused(out, hparams={"vocab_size": 99})
    assert "vocab_size is 210 by the weights' shapes but 99" in message
    overrides = {"model_hparam_overrides": {"num_attention_heads": 5}}
    assert "not a multiple" in write_refused(out, hparams=overrides)


def test_an_activation_the_generators_head_cannot_have(tmp_path):
    hparams = {"model_hparam_overrides": {"hidden_act": "relu"}}
    message = write_refused(tmp_path / "out", hparams=hparams)
    assert "hidden_act relu of generator_predictions" in message
    written(tmp_path / "out", part="discriminator", hparams=hparams)


def test_a_vocabulary_of_another_model(tmp_path, tiny_vocab):
    long = tmp_path / "long.txt"
    lines = pathlib.Path(tiny_vocab).read_text().splitlines()
    long.write_text("\n".join(lines + [f"w{i}" for i in range(11)]) + "\n")
    message = write_refused(tmp_path / "out", vocab_file=str(long))
    assert "211 lines but the model's token table 210 rows" in message
    long.write_text("\n".join(lines[:50]))
    assert "lacks" in write_refused(tmp_path / "out", vocab_file=str(long))


def test_a_remote_folder():
    with pytest.raises(UserError, match="local disk only"):
        written("gs://bucket/model")


def test_layers_that_the_config_does_not_count_are_refused(one):
    set_config(one, num_hidden_layers=1)
    with pytest.raises(UserError, match=r"layer\.1\..* num_hidden_layers 1"):
        hf.open_huggingface(str(one))
