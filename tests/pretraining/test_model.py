# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The model's variables, sharing and draws; what a folder becomes."""

import json
import os
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.tf2 import variables_by_name
from electra_tf.pretraining.loading import export_parts, load_pretrained
from electra_tf.pretraining.model import PretrainingModel

CONFIGURATIONS = """
small small_electric small_untied_generator_False
small_mlm_electra_objective_False small_untied_generator_embeddings
small_uniform_generator small_two_tower_generator_electra
small_electric_untied_generator_embeddings debug_small debug_base
""".split()


@pytest.fixture
def features():
    random = np.random.RandomState(0)
    ids = random.randint(104, 200, [4, 16])
    ids[:, 0], ids[:, 15] = 101, 102
    return {
        "input_ids": tf.constant(ids, tf.int32),
        "input_mask": tf.ones([4, 16], tf.int32),
        "segment_ids": tf.zeros([4, 16], tf.int32),
    }


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_variables_are_named_as_the_originals(name, golden_dir, tmp_path):
    path = golden_dir / "variables_all_configs.json"
    recorded = json.loads(path.read_text())[f"pretrain/{name}"]
    config = PretrainingConfig.create(
        "m",
        str(tmp_path),
        vocab_file=str(golden_dir / "vocab.txt"),
        **recorded["hparams"],
    )
    variables = PretrainingModel(config).trainable_variables
    assert {v.name[:-2]: v.shape.as_list() for v in variables} == {
        v["name"]: v["shape"]
        for v in recorded["creation_order_model_variables"]
        if v["trainable"]
    }
    count = sum(int(tf.size(v)) for v in variables)
    assert count == recorded["n_params_trainable"]


def test_draws_depend_on_seed_and_step_only(tiny_config, features):
    model = PretrainingModel(tiny_config())

    def run(seed, step):
        out = model.compute(
            features, training=True, seed=tf.constant([seed, step])
        )
        return out["masked_lm_positions"].numpy(), float(out["total_loss"])

    (positions, loss), (again, same_loss) = run(1, 5), run(1, 5)
    np.testing.assert_array_equal(positions, again)
    assert loss == same_loss
    for other in (run(1, 6), run(2, 5)):
        assert (positions != other[0]).any() and loss != other[1]


def test_a_vocabulary_larger_than_the_table_is_refused(tiny_config):
    with pytest.raises(UserError, match=r"200 tokens .* model has 150"):
        PretrainingModel(tiny_config(vocab_size=150))


@pytest.fixture
def run_folder(tiny_config, tmp_path, save_run):
    """What a run leaves, without training: folder, config, model."""

    def make(**hparams):
        config = tiny_config(seed=3, **hparams)
        model = PretrainingModel(config)
        folder = save_run(str(tmp_path / "run"), config, model)
        return folder, config, model

    return make


def test_a_runs_folder_gives_its_weights_settings_and_tokenizer(run_folder):
    settings = {"temperature": 0.5, "do_lower_case": False}
    folder, _, model = run_folder(mask_prob=0.3, **settings)
    loaded = load_pretrained(folder)
    wanted = variables_by_name(model.variables)
    got = variables_by_name(loaded.model.variables)
    assert wanted.keys() == got.keys()
    for name, variable in wanted.items():
        np.testing.assert_array_equal(variable, got[name])
    assert loaded.config.mask_prob == 0.3
    assert loaded.config.temperature == 0.5
    assert loaded.tokenizer.tokenize("A") != loaded.tokenizer.tokenize("a")
    assert loaded.max_length == 32
    assert loaded.global_step == 7
    assert loaded.assumptions == ()
    assert loaded.lacks_generator() is loaded.lacks_discriminator() is None


@pytest.mark.parametrize("is_originals", [False, True])
def test_the_readmes_python_runs_as_it_stands(
    run_folder, tiny_vocab, tmp_path, monkeypatch, pytestconfig, is_originals
):
    golden = pytestconfig.rootpath / "tests" / "fixtures" / "golden"
    source = run_folder()[0]
    if is_originals:
        source = golden / "ckpt_v200_electra"
    shutil.copytree(source, tmp_path / "data" / "models" / "electra_small")
    shutil.copy(tiny_vocab, tmp_path / "data" / "vocab.txt")
    monkeypatch.chdir(tmp_path)
    readme = (pytestconfig.rootpath / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    names = {}
    exec(code, names)
    assert names["outputs"]["disc_probs"].shape == [1, len(names["tokens"])]
    assert np.isfinite(names["outputs"]["total_loss"].numpy())


@pytest.mark.parametrize("is_electric", [False, True])
def test_a_part_is_refused_for_what_it_lacks(run_folder, tmp_path, is_electric):
    _, config, model = run_folder(electric_objective=is_electric)
    export_parts(config, model, 7, str(tmp_path))
    discriminator = load_pretrained(str(tmp_path / "export" / "discriminator"))
    assert discriminator.is_electric is is_electric
    discriminator.require_discriminator("scoring")
    with pytest.raises(UserError, match="has no generator; fill-mask needs"):
        discriminator.require_generator("fill-mask")
    generator = load_pretrained(str(tmp_path / "export" / "generator"))
    generator.require_generator("fill-mask")
    with pytest.raises(UserError, match="has no discriminator; scoring needs"):
        generator.require_discriminator("scoring")


def test_what_was_assumed_without_settings_is_told(run_folder, tiny_vocab):
    folder, _, _ = run_folder()
    beside = ("config.json", "electra_config.json", "vocab.txt", "digests.json")
    for name in beside:
        os.remove(os.path.join(folder, name))
    with pytest.raises(UserError, match="--vocab_file"):
        load_pretrained(folder)
    loaded = load_pretrained(folder, tiny_vocab)
    assert any("num_attention_heads" in text for text in loaded.assumptions)
    overrides = {"num_attention_heads": 2}
    loaded = load_pretrained(
        folder, tiny_vocab, {"model_hparam_overrides": overrides}
    )
    assert loaded.assumptions == ()
    assert loaded.model.encoder_config.num_attention_heads == 2
