# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders: what goes out comes back, to the bit."""

import json
import os

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.huggingface_names import Network
from electra_tf.checkpoints.huggingface_reader import (
    is_huggingface,
    open_huggingface,
)
from electra_tf.checkpoints.huggingface_writer import write_huggingface
from electra_tf.checkpoints.tf1 import open_tf1
from electra_tf.checkpoints.weights import (
    MemoryWeights,
    is_variable,
    selected,
    without_optimizer,
)

TOWERS = ("generator_ltr/", "generator_rtl/", "cloze_predictions/")


@pytest.fixture(scope="session")
def noise(random_weights):
    """Random weights of given shapes, without slots and step."""
    return lambda shapes: random_weights(shapes, slots=False, step=None)


@pytest.fixture(scope="session")
def scaled(all_configs, noise, smaller):
    """Weights of a recorded graph, every axis a sixteenth as long."""
    return lambda name: noise(
        {n: smaller(s, 16) for n, s in all_configs[name]["shapes"].items()}
    )


def test_every_pretraining_configuration_comes_back(
    pretrain_name, scaled, same_tensors, tmp_path
):
    weights = scaled(pretrain_name)
    towers = {n for n in weights.specs if n.startswith(TOWERS)}
    report = write_huggingface(
        weights, str(tmp_path), drop_unrepresentable=bool(towers)
    )
    assert set(report.left_out) == towers
    rest = selected(weights, lambda name: name not in towers)
    same_tensors(open_huggingface(str(tmp_path)), rest)


def test_every_fine_tuned_configuration_comes_back(
    finetune_name, scaled, same_tensors, tmp_path
):
    weights, name = scaled(finetune_name), finetune_name
    head = {n for n in weights.specs if n.startswith("task_specific/")}
    if name.endswith("_chunk"):
        kept = head
    elif name.endswith("_nojoint"):
        kept = {n for n in head if "/dense/" in n or "/dense_1/" in n}
        assert len(kept) == 4 and len(head) == 8
    else:
        kept = set()
    if kept != head:
        with pytest.raises(UserError, match="--drop_unrepresentable"):
            write_huggingface(weights, str(tmp_path))
        assert not list(tmp_path.iterdir())
    report = write_huggingface(
        weights, str(tmp_path), drop_unrepresentable=True
    )
    assert set(report.left_out) == head - kept
    rest = selected(weights, lambda name: name not in head - kept)
    same_tensors(open_huggingface(str(tmp_path)), rest)


@pytest.mark.parametrize(
    ("name", "folders"),
    [
        ("small", ["discriminator", "generator"]),
        ("small_untied_generator_False", ["discriminator", "generator"]),
        ("small_mlm_electra_objective_False", ["generator"]),
        ("small_uniform_generator", ["discriminator"]),
    ],
)
def test_each_network_gets_its_folder(scaled, name, folders, tmp_path):
    write_huggingface(scaled(f"pretrain/{name}"), str(tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == folders


@pytest.mark.parametrize("part", ["discriminator", "generator"])
@pytest.mark.parametrize(
    "name",
    [
        "small",
        "small_untied_generator_False",
        "small_untied_generator_embeddings",
    ],
)
def test_a_part_goes_directly_into_the_folder(scaled, part, name, tmp_path):
    weights = scaled(f"pretrain/{name}")
    write_huggingface(weights, str(tmp_path), part=part)
    assert (tmp_path / "model.safetensors").is_file()
    read = open_huggingface(str(tmp_path))
    found = read.contents.description
    assert part in found or "masked LM" in found
    head = f"{part}_predictions/"
    assert any(n.startswith(head) for n in read.specs)
    assert not any("_predictions/" in n and head not in n for n in read.specs)
    for name in read.specs:
        np.testing.assert_array_equal(read.read(name), weights.read(name))


def test_slots_are_refused_dropped_or_stripped_before(
    scaled, tmp_path, same_tensors
):
    plain = scaled("pretrain/small_uniform_generator")
    values = dict(plain)
    for name in plain.specs:
        values[f"{name}/adam_m"] = values[f"{name}/adam_v"] = plain.read(name)
    values["global_step"] = np.array(7, np.int64)
    weights = MemoryWeights(values)
    with pytest.raises(UserError, match="Adam slots.*--strip_optimizer"):
        write_huggingface(weights, str(tmp_path / "a"))
    assert not (tmp_path / "a").exists()
    report = write_huggingface(
        weights, str(tmp_path / "b"), drop_unrepresentable=True
    )
    assert list(report.left_out) == ["Adam slots"]
    stripped = without_optimizer(weights)
    report = write_huggingface(stripped, str(tmp_path / "c"))
    assert not report.left_out
    assert report.notes["global_step"].startswith("7;")
    same_tensors(open_huggingface(str(tmp_path / "c")), plain)


MODELS = {
    "electra": {"generator_hidden_size": 0.5},
    "half the layers": {"generator_hidden_size": 0.5, "generator_layers": 0.5},
    "tied": {"untied_generator": False},
    "own embeddings": {
        "generator_hidden_size": 0.5,
        "untied_generator_embeddings": True,
    },
    "masked LM": {"electra_objective": False},
    "uniform": {"uniform_generator": True},
    "cased": {"generator_hidden_size": 0.5, "do_lower_case": False},
    "accents": {"generator_hidden_size": 0.5, "strip_accents": False},
}


@pytest.mark.parametrize("name", MODELS)
def test_what_the_config_states_builds_the_same_model(
    noise, name, tiny_config, tiny_vocab, tmp_path
):
    from electra_tf.pretraining.model import PretrainingModel

    config = tiny_config(**MODELS[name])
    shapes = {
        v.name[:-2]: tuple(v.shape) for v in PretrainingModel(config).variables
    }
    folder = str(tmp_path / "out")
    write_huggingface(
        noise(shapes), folder, vocab_file=tiny_vocab, hparams=config.as_dict()
    )
    read = open_huggingface(folder)
    # What a folder cannot say: the length of examples; that a discriminator
    # alone had no other generator.
    stated = {**read.hparams, "max_seq_length": 16}
    stated["uniform_generator"] = name == "uniform"
    again = PretrainingConfig.create(
        "again", str(tmp_path), vocab_file=read.vocab_file, **stated
    )
    model = PretrainingModel(again)
    assert {v.name[:-2]: tuple(v.shape) for v in model.variables} == shapes
    assert not read.dropped
    for key in ("do_lower_case", "strip_accents", "embedding_size"):
        assert getattr(again, key) == getattr(config, key)
    overrides = again.model_hparam_overrides
    assert overrides["num_attention_heads"] == 2
    with open(read.vocab_file, "rb") as one, open(tiny_vocab, "rb") as other:
        assert one.read() == other.read()


def test_a_generator_alone_is_that_of_a_discriminator_of_its_size(
    scaled, tmp_path
):
    weights = scaled("pretrain/small")
    write_huggingface(weights, str(tmp_path), part="generator")
    assert open_huggingface(str(tmp_path)).hparams == {
        "model_size": "small",
        "vocab_size": 1907,
        "embedding_size": 8,
        "generator_hidden_size": 1.0,
        "generator_layers": 1.0,
        "model_hparam_overrides": {
            "hidden_size": 4,
            "num_hidden_layers": 12,
            "max_position_embeddings": 32,
        },
    }


def test_settings_that_shapes_do_not_show_come_back(scaled, tmp_path):
    weights = scaled("pretrain/small_uniform_generator")
    overrides = {
        "num_attention_heads": 2,
        "hidden_act": "relu",
        "hidden_dropout_prob": 0.2,
        "attention_probs_dropout_prob": 0.0,
        "initializer_range": 0.01,
    }
    write_huggingface(
        weights, str(tmp_path), hparams={"model_hparam_overrides": overrides}
    )
    stated = open_huggingface(str(tmp_path)).hparams
    for name, value in overrides.items():
        assert stated["model_hparam_overrides"][name] == value
    config = json.loads((tmp_path / "discriminator/config.json").read_text())
    assert config["hidden_act"] == "relu"
    assert config["layer_norm_eps"] == 1e-12
    assert config["architectures"] == ["ElectraForPreTraining"]


def test_a_generators_heads_follow_the_originals_rule(
    hf_folder, arrays, tmp_path
):
    network = Network("ElectraForMaskedLM", "generator", "electra")
    values = arrays(network, hidden_size=128, intermediate_size=512)
    folder = hf_folder(tmp_path)
    overrides = {"model_hparam_overrides": {"num_attention_heads": 12}}
    folder.write(values, part="generator", hparams=overrides)
    config = json.loads((folder / "config.json").read_text())
    assert config["num_attention_heads"] == 2
    folder.set_config(num_attention_heads=4)
    dropped = folder.weights().dropped
    assert "4 there" in dropped["generator's config.json: num_attention_heads"]


def test_a_real_checkpoint_comes_back(golden_dir, tmp_path, same_tensors):
    weights = open_tf1(str(golden_dir / "ckpt_pretrain_tiny"))
    write_huggingface(
        without_optimizer(weights),
        str(tmp_path),
        vocab_file=str(golden_dir / "vocab.txt"),
        hparams={"model_hparam_overrides": {"num_attention_heads": 4}},
    )
    read = open_huggingface(str(tmp_path))
    same_tensors(read, selected(weights, is_variable))
    assert read.hparams["generator_hidden_size"] == 0.5
    assert read.hparams["model_hparam_overrides"] == {
        "hidden_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
    }


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
def test_any_model_comes_back(tmp_path_factory, noise, same_tensors, shapes):
    folder = str(tmp_path_factory.mktemp("any"))
    weights = noise(shapes)
    write_huggingface(weights, folder)
    same_tensors(open_huggingface(folder), weights)


def test_a_folder_is_told_from_others(scaled, tmp_path):
    assert not is_huggingface(str(tmp_path))
    assert not is_huggingface(str(tmp_path / "nothing"))
    weights = scaled("pretrain/small")
    write_huggingface(weights, str(tmp_path))
    assert is_huggingface(str(tmp_path))
    assert is_huggingface(str(tmp_path / "generator"))
    file = str(tmp_path / "generator" / "model.safetensors")
    assert open_huggingface(file).contents.description == (
        "a generator (no discriminator)"
    )


class Interrupted(MemoryWeights):
    """Other values, until the generator's last tensor."""

    def read(self, name):
        if name == "generator_predictions/output_bias":
            raise KeyboardInterrupt
        return super().read(name) + 1


def test_an_interrupted_write_leaves_what_was_there(
    scaled, tmp_path, same_tensors
):
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
    assert sorted(files) == ["config.json"] * 2 + ["model.safetensors"] * 2


def test_existing_files_are_replaced_only_when_asked(
    scaled, tmp_path, tiny_vocab, same_tensors
):
    weights = scaled("pretrain/small")
    write_huggingface(weights, str(tmp_path), vocab_file=tiny_vocab)
    with pytest.raises(UserError, match="exists.*--overwrite"):
        write_huggingface(weights, str(tmp_path))
    other = MemoryWeights({name: value + 1 for name, value in weights})
    write_huggingface(other, str(tmp_path), overwrite=True)
    read = open_huggingface(str(tmp_path))
    same_tensors(read, other)
    assert read.vocab_file is None  # the earlier model's went with it


def test_the_report_names_folders_and_remarks(scaled, tmp_path):
    weights = scaled("pretrain/small_electric")
    report = write_huggingface(
        weights,
        str(tmp_path),
        drop_unrepresentable=True,
        hparams={"electric_objective": True},
    )
    text = str(report)
    assert f"{tmp_path}/discriminator: ElectraForPreTraining, 203 tenso" in text
    assert "electric_objective: " in text
    assert "left out: generator_ltr/" in text
    assert "... and 381 more" in text
