# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders that are half there: what is missing is named."""

import json

import pytest
from safetensors.numpy import save_file

from configure.errors import UserError
from electra_tf.checkpoints.huggingface_reader import is_huggingface

# --- what is missing ---------------------------------------------------------


def test_no_folder(tmp_path, hf_folder):
    assert "no such folder" in hf_folder(tmp_path / "nothing").refused()


def test_nothing_in_the_folder(tmp_path, hf_folder):
    message = hf_folder(tmp_path).refused()
    assert "no config.json" in message and "generator/" in message


def test_no_config(one):
    (one / "config.json").unlink()
    message = one.refused()
    assert "no config.json" in message and "download" in message


def test_a_config_that_is_not_json(one):
    (one / "config.json").write_text("{")
    assert "config.json: not readable as JSON" in one.refused()


def test_another_kind_of_model(one):
    one.set_config(model_type="bert")
    assert "model_type is 'bert'; expected 'electra'" in one.refused()


@pytest.mark.parametrize("value", [0, -1, "256", 2.0, True, None])
def test_a_size_that_is_none(value, one):
    one.set_config(hidden_size=value)
    assert f"hidden_size is {value!r}" in one.refused()


def test_heads_that_do_not_divide(one):
    one.set_config(num_attention_heads=4)
    assert "not a multiple of num_attention_heads 4" in one.refused()


def test_no_weights(one):
    (one / "model.safetensors").unlink()
    assert "no weights; expected model.safetensors" in one.refused()


def test_missing_tensors_are_named(one):
    values = one.tensors()
    del values["discriminator_predictions.dense.bias"]
    one.store(values)
    message = one.refused()
    assert "lacks tensors that ElectraForPreTraining of 2 layers" in message
    assert "\n  discriminator_predictions.dense.bias" in message


def test_many_missing_tensors_are_counted(one):
    one.set_config(num_hidden_layers=4)
    message = one.refused()
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
    one.set_config(**{key: value})
    message = one.refused()
    assert "does not fit its config.json" in message
    assert key in message and str(value) in message


def test_layers_that_the_config_does_not_count_are_refused(one):
    one.set_config(num_hidden_layers=1)
    with pytest.raises(UserError, match=r"layer\.1\..* num_hidden_layers 1"):
        one.weights()


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


def test_a_git_lfs_pointer(one):
    (one / "model.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    )
    assert "git lfs pull" in one.refused()


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
