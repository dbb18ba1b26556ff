# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sizes beside the weights."""

import json

import pytest

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.contents import Contents, resolve
from electra_tf.checkpoints.formats import (
    ELECTRA_CONFIG,
    config_text,
    read_electra_config,
    write_electra_config,
)


def test_inferred_hparams_come_back(config_name, all_configs, tmp_path):
    hparams = Contents(all_configs[config_name]["shapes"]).hparams()
    write_electra_config(str(tmp_path / "new"), hparams)
    read = read_electra_config(str(tmp_path / "new"))
    assert {name: read[name] for name in hparams} == hparams
    assert resolve(read) == resolve(hparams)


def test_a_whole_config_leaves_out_what_is_not_the_models(tmp_path):
    config = PretrainingConfig.create(
        "m", "secret_folder", model_size="base", do_lower_case=False
    )
    write_electra_config(str(tmp_path), config.as_dict())
    text = (tmp_path / ELECTRA_CONFIG).read_text()
    assert "secret_folder" not in text
    assert "learning_rate" not in text
    read = read_electra_config(str(tmp_path))
    assert (read["model_size"], read["embedding_size"]) == ("base", 768)
    assert read["do_lower_case"] is False


def test_other_programs_find_their_keys():
    contents = json.loads(config_text({"model_size": "large"}))
    assert contents["format_version"] == 1
    expected = {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "embedding_size": 1024,
        "vocab_size": 30522,
        "max_position_embeddings": 512,
        "do_lower_case": True,
        "strip_accents": True,
    }
    assert {k: contents[k] for k in expected} == expected


@pytest.mark.parametrize(
    "name", ["bert_config.json", "config.json", ELECTRA_CONFIG]
)
def test_keys_of_other_programs_are_understood(name, tmp_path):
    keys = {
        "vocab_size": 35000,
        "embedding_size": 128,
        "hidden_size": 256,
        "num_hidden_layers": 12,
        "num_attention_heads": 4,
        "layer_norm_eps": 1e-12,
        "architectures": ["ElectraForPreTraining"],
    }
    (tmp_path / name).write_text(json.dumps(keys))
    sizes = resolve(read_electra_config(str(tmp_path)))
    assert (sizes.vocab_size, sizes.embedding_size) == (35000, 128)
    assert sizes.encoder.hidden_size == 256


def test_a_runs_own_config_is_understood(tmp_path, tiny_config):
    assert read_electra_config(str(tmp_path)) == {}
    config = tiny_config(generator_hidden_size=0.5)
    (tmp_path / "config.json").write_text(config.to_json())
    read = read_electra_config(str(tmp_path))
    assert read["generator_hidden_size"] == 0.5
    assert read["model_hparam_overrides"]["num_attention_heads"] == 2
    assert "model_name" not in read


@pytest.mark.parametrize(
    "change, words",
    [
        ({}, "not valid JSON"),
        ({"format_version": 2}, "format_version is 2"),
        ({"hidden_size": 512}, "hidden_size is 512, but `hparams` make it 256"),
        ({"hparams": []}, "expected a JSON object"),
        ({"hparams": {"modl_size": "base"}}, "model_size"),
    ],
)
def test_a_file_that_cannot_be_is_refused_by_name(change, words, tmp_path):
    text = json.dumps({**json.loads(config_text({})), **change})
    (tmp_path / ELECTRA_CONFIG).write_text(text if change else text[:40])
    with pytest.raises(UserError, match=f"(?s){ELECTRA_CONFIG}.*{words}"):
        read_electra_config(str(tmp_path))


def test_guesses_are_written_but_not_read_as_facts(tmp_path):
    hparams = {
        "model_hparam_overrides": {"num_attention_heads": 1, "hidden_size": 64},
        "do_lower_case": True,
    }
    guesses = ["num_attention_heads", "do_lower_case"]
    write_electra_config(str(tmp_path), hparams, guesses)
    contents = json.loads((tmp_path / ELECTRA_CONFIG).read_text())
    assert contents["num_attention_heads"] == 1
    assert contents["assumed"] == sorted(guesses)
    read = read_electra_config(str(tmp_path))
    assert read["model_hparam_overrides"] == {"hidden_size": 64}
    assert "do_lower_case" not in read
    assert read["strip_accents"] is True
