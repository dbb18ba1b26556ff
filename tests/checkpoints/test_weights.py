# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Views of a checkpoint: one network of two, other position tables."""

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.checkpoints.weights import (
    describe_extension,
    extend_positions,
    select_part,
)


def scopes(weights):
    return sorted({name.split("/")[0] for name in weights.shapes})


def test_parts_together_are_the_whole(pretrain_name, of_config):
    whole = of_config(pretrain_name)
    parts = [
        select_part(whole, part)
        for part in ("discriminator", "generator")
        if whole.contents.holds(part)
    ]
    names = {name for part in parts for name in part.specs}
    assert names == set(whole.specs)
    for part in parts:
        assert set(part.dropped) == set(whole.specs) - set(part.specs)
        assert part.global_step == 1234
        assert len(part.slots) == 2 * len(part.shapes)
    assert select_part(whole, "all") is whole


def test_tied_embeddings_are_in_both(of_config):
    whole = of_config("pretrain/small")
    name = "electra/embeddings/word_embeddings"
    for part in ("discriminator", "generator"):
        found = select_part(whole, part)
        assert {name, f"{name}/adam_v"} <= found.specs.keys()
    theirs = {n for n in found.shapes if n.startswith("electra/")}
    assert all(n.startswith("electra/embeddings/") for n in theirs)
    assert len(theirs) == 5


@pytest.mark.parametrize(
    "name, expected",
    [
        ("small", "electra generator generator_predictions"),
        (
            "small_untied_generator_embeddings",
            "generator generator_predictions",
        ),
        (
            "small_electric",
            "cloze_predictions electra generator_ltr generator_rtl",
        ),
        (
            "small_electric_untied_generator_embeddings",
            "cloze_predictions generator_ltr generator_rtl",
        ),
        ("small_untied_generator_False", "electra generator_predictions"),
        ("small_mlm_electra_objective_False", "electra generator_predictions"),
    ],
)
def test_every_kind_of_generator(name, expected, of_config):
    part = select_part(of_config(f"pretrain/{name}"), "generator")
    assert scopes(part) == expected.split()


def test_a_fine_tuned_model_is_a_discriminator_with_its_head(of_config):
    whole = of_config("finetune/small_squad")
    assert select_part(whole, "discriminator").specs == whole.specs
    encoder = select_part(whole, "encoder")
    assert scopes(encoder) == ["electra"]
    assert "task_specific/squad/dense/kernel" in encoder.dropped


@pytest.mark.parametrize(
    "name, part, other",
    [
        ("pretrain/small_uniform_generator", "generator", "a discriminator"),
        ("finetune/small_cola", "generator", "a fine-tuned model"),
        (
            "pretrain/small_mlm_electra_objective_False",
            "discriminator",
            "a masked LM",
        ),
    ],
)
def test_a_part_that_is_not_there_is_refused(name, part, other, of_config):
    whole = of_config(name)
    assert not whole.contents.holds(part)
    with pytest.raises(UserError, match=f"no {part}: it is {other}"):
        select_part(whole, part)
    with pytest.raises(UserError, match="expected one of all, discriminator"):
        select_part(whole, "decoder")


@pytest.mark.parametrize("part", ["discriminator", "generator"])
def test_one_part_for_the_other_is_refused(part, of_config):
    alone = select_part(of_config("pretrain/small"), part)
    (other,) = {"discriminator", "generator"} - {part}
    with pytest.raises(UserError, match=f"it is a {part}.*--part={part}"):
        select_part(alone, other)
    assert select_part(alone, part).specs == alone.specs


# Position tables of another length.

TABLE = "electra/embeddings/position_embeddings"
OWN = "generator/embeddings/position_embeddings"
SHAPES = {TABLE: [4, 2], OWN: [4, 3], "electra/other": [4, 2]}


@pytest.fixture
def source(random_weights):
    return random_weights(SHAPES)


def test_new_rows_repeat_the_table_and_their_slots_are_zero(source):
    source.hparams = {"model_hparam_overrides": {"hidden_size": 8}}
    longer = extend_positions(source, 10)
    old, new = source.read(TABLE), longer.read(TABLE)
    assert new.shape == longer.specs[TABLE].shape == (10, 2)
    np.testing.assert_array_equal(new, np.concatenate([old, old, old[:2]]))
    assert longer.read(OWN).shape == (10, 3)
    for slot in ("/adam_m", "/adam_v"):
        new = longer.read(TABLE + slot)
        np.testing.assert_array_equal(new[:4], source.read(TABLE + slot))
        np.testing.assert_array_equal(new[4:], np.zeros([6, 2]))
    assert longer.hparams["model_hparam_overrides"] == {
        "hidden_size": 8,
        "max_position_embeddings": 10,
    }
    assert source.hparams["model_hparam_overrides"] == {"hidden_size": 8}


def test_a_shorter_table_is_cut_and_everything_else_stays(source):
    shorter = extend_positions(source, 3)
    for name in source.specs:
        value = source.read(name)
        kept = value[:3] if "position_embeddings" in name else value
        np.testing.assert_array_equal(shorter.read(name), kept)
        assert shorter.specs[name].dtype == source.specs[name].dtype
    assert shorter.global_step == 1234
    assert list(shorter.specs) == list(source.specs)


def test_it_is_said_and_mistakes_are_refused(source, random_weights):
    for length, words in (
        (6, "extended from 4 to 6 rows: rows 4 and up repeat"),
        (2, "cut from 4 to 2 rows"),
        (4, "4 rows already"),
    ):
        assert words in describe_extension(source, length)
    with pytest.raises(UserError, match="at least 1"):
        extend_positions(source, 0)
    with pytest.raises(UserError, match="no position_embeddings"):
        extend_positions(random_weights({"a": [1]}), 5)
