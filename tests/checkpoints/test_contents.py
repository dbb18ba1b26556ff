# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shapes tell the hparams, and hparams that do not fit are named."""

import pytest

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.contents import Contents
from electra_tf.checkpoints.formats import unseen_differences
from electra_tf.checkpoints.sizes import merged, resolve
from electra_tf.pretraining.model import PretrainingModel

OVERRIDES = "model_hparam_overrides"


def model_shapes(tiny_vocab, **hparams):
    config = PretrainingConfig.create(
        "m", "d", vocab_file=tiny_vocab, max_seq_length=16, **hparams
    )
    model = PretrainingModel(config)
    return {v.name.split(":")[0]: list(v.shape) for v in model.variables}


def test_sizes_equal_those_of_the_hparams(config_name, all_configs):
    config = all_configs[config_name]
    contents = Contents(config["shapes"])
    hparams = contents.hparams()
    inferred = resolve(hparams)
    assert inferred.encoder == contents.sizes.encoder
    assert inferred.embedding_size == contents.sizes.embedding_size
    contents.check_hparams(hparams)
    contents.check_hparams({"learning_rate": 1e-4})
    if config_name.startswith("pretrain/"):
        given = dict(config["hparams"])
        # Two towers are taken for Electric's; the variables are the same.
        assert inferred == contents.sizes == resolve(given)
        contents.check_hparams(given, "test")


def test_inferred_hparams_build_the_same(built_name, all_configs, tiny_vocab):
    shapes = all_configs[built_name]["shapes"]
    assert model_shapes(tiny_vocab, **Contents(shapes).hparams()) == shapes


@pytest.mark.parametrize("hidden, heads", [(64, 1), (200, 2), (130, 2)])
def test_any_hidden_size_makes_a_model(hidden, heads, tiny_vocab):
    overrides = {
        "hidden_size": hidden,
        "num_hidden_layers": 1,
        "num_attention_heads": heads,
        "intermediate_size": 50,
        "max_position_embeddings": 40,
        "type_vocab_size": 3,
    }
    sizes = {"vocab_size": 200, "embedding_size": 8, OVERRIDES: overrides}
    shapes = model_shapes(tiny_vocab, uniform_generator=True, **sizes)
    contents = Contents(shapes)
    assert model_shapes(tiny_vocab, **contents.hparams()) == shapes
    notes = "\n".join(contents.assumptions())
    assert f": {heads} assumed" in notes and "hidden_act" in notes


@pytest.mark.parametrize(
    ("objective", "hparams"),
    [
        ("replace_mlm", {}),
        ("replace_mlm", {"untied_generator": False}),
        ("all_tokens_mlm", {"uniform_generator": True}),
    ],
)
def test_a_second_masked_lm_tells_its_objective(tiny_vocab, objective, hparams):
    hparams = hparams | {"vocab_size": 200, "embedding_size": 8}
    hparams["objective"] = objective
    shapes = model_shapes(tiny_vocab, **hparams)
    contents = Contents(shapes)
    found = contents.hparams()
    assert found["objective"] == objective
    assert model_shapes(tiny_vocab, **found) == shapes
    assert contents.unknown == []
    assert "a masked LM of replaced tokens" in contents.description
    contents.check_hparams(hparams)
    other = {"objective": "electra", "electra_objective": True}
    with pytest.raises(UserError, match="masked LM: checkpoint True, .*objec"):
        contents.check_hparams(other)
    kept = contents.prefixes("discriminator", "PATH")
    part = Contents({n: s for n, s in shapes.items() if n.startswith(kept)})
    assert part.has("token_predictions/") and part.holds("discriminator")
    assert not part.generates
    part.check_hparams(hparams)


def test_a_generator_alone_has_its_own_sizes(all_configs, tiny_vocab):
    shapes = all_configs["pretrain/small"]["shapes"]
    kept = ("generator", "electra/embeddings/")
    part = {n: s for n, s in shapes.items() if n.startswith(kept)}
    contents = Contents(part)
    hparams = contents.hparams()
    assert hparams[OVERRIDES]["hidden_size"] == 64
    assert hparams["generator_hidden_size"] == 1.0
    built = model_shapes(tiny_vocab, **hparams)
    assert {n: built[n] for n in part} == part
    assert "unknown without" in "\n".join(contents.assumptions())


@pytest.mark.parametrize(
    "hparam, value, words",
    [
        ("model_size", "base", "256, hparams 768"),
        ("embedding_size", 64, "128, hparams 64"),
        ("generator_layers", 0.5, "12, hparams 6"),
        ("untied_generator_embeddings", True, "embeddings, hparams none"),
        ("embedding_sharing", "token", "embeddings, hparams token"),
        ("max_position_embeddings", 1024, "512, hparams 1024"),
        ("intermediate_size", 99, "1024, hparams 99"),
        ("two_tower_generator", True, ""),
        ("uniform_generator", True, ""),
        ("untied_generator", False, ""),
        ("electra_objective", True, ""),
    ],
)
def test_a_mismatch_names_the_hparam(all_configs, hparam, value, words):
    name = "small"
    if hparam == "electra_objective":
        name = "small_mlm_electra_objective_False"
    given = {hparam: value}
    if hparam.startswith(("max_", "intermediate")):
        given = {OVERRIDES: given}
    with pytest.raises(UserError, match=f"checkpoint.* {words}.*{hparam}"):
        Contents(all_configs[f"pretrain/{name}"]["shapes"]).check_hparams(given)


def test_the_released_small_models_generator_is_named(all_configs):
    # The commonest trap: its generator has the discriminator's hidden size,
    # but the default is a quarter.
    shapes = all_configs["pretrain/small"]["shapes"]
    released = shapes | {
        name.replace("electra/encoder/", "generator/encoder/"): shape
        for name, shape in shapes.items()
        if name.startswith("electra/encoder/")
    }
    with pytest.raises(UserError, match="change generator_hidden_size to 1.0"):
        Contents(released).check_hparams({"generator_hidden_size": 0.25})
    shapes = all_configs["pretrain/base_paper_settings"]["shapes"]
    with pytest.raises(UserError, match="generator_hidden_size to 0.333"):
        Contents(shapes).check_hparams({"generator_hidden_size": 0.25}, "test")


def test_overrides_are_joined_unless_the_size_is_stated():
    inferred, given = {OVERRIDES: {"a": 1}}, {OVERRIDES: {"b": 2}}
    assert merged(inferred, given) == {OVERRIDES: {"a": 1, "b": 2}}
    given["model_size"] = "small"
    assert merged(inferred, given)[OVERRIDES] == {"b": 2}


def test_an_incomplete_checkpoint_and_another_models(all_configs):
    shapes = all_configs["pretrain/small"]["shapes"]
    shapes = {n: s for n, s in shapes.items() if "/encoder/layer_4/" not in n}
    with pytest.raises(UserError, match="lacks layer 4"):
        Contents(shapes).hparams()
    with pytest.raises(UserError, match="No encoder.*starts with conv/w"):
        Contents({"conv/w": [3, 3]}).hparams()


def test_what_shapes_do_not_show_is_compared_with_the_config_beside():
    overrides = {"hidden_size": 64, "num_attention_heads": 4}
    stored = {OVERRIDES: overrides, "do_lower_case": True}
    overrides = {"hidden_size": 64, "hidden_act": "relu"}
    given = {OVERRIDES: overrides, "do_lower_case": False}
    assert unseen_differences(stored, stored) == []
    assert unseen_differences({}, given) == []
    assert unseen_differences(stored, given) == [
        "num_attention_heads: 4 beside the checkpoint, 1 here",
        "hidden_act: gelu beside the checkpoint, relu here",
        "do_lower_case: True beside the checkpoint, False here",
    ]
