# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Position tables of another length."""

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.checkpoints.weights import describe_extension, extend_positions

TABLE = "electra/embeddings/position_embeddings"
OWN = "generator/embeddings/position_embeddings"
SHAPES = {TABLE: [4, 2], OWN: [4, 3], "electra/other": [4, 2]}


@pytest.fixture
def source(random_weights):
    return random_weights(SHAPES)


def test_new_rows_repeat_the_table_from_its_start(source):
    longer = extend_positions(source, 10)
    old, new = source.read(TABLE), longer.read(TABLE)
    assert new.shape == longer.specs[TABLE].shape == (10, 2)
    np.testing.assert_array_equal(new, np.concatenate([old, old, old[:2]]))
    assert longer.read(OWN).shape == (10, 3)


def test_slots_of_new_rows_are_zero(source):
    for slot in ("/adam_m", "/adam_v"):
        new = extend_positions(source, 6).read(TABLE + slot)
        np.testing.assert_array_equal(new[:4], source.read(TABLE + slot))
        np.testing.assert_array_equal(new[4:], np.zeros([2, 2]))


def test_a_shorter_table_is_cut_slots_too(source):
    shorter = extend_positions(source, 3)
    for slot in ("", "/adam_m", "/adam_v"):
        np.testing.assert_array_equal(
            shorter.read(TABLE + slot), source.read(TABLE + slot)[:3]
        )


def test_everything_else_stays(source):
    longer = extend_positions(source, 6)
    assert longer.specs["electra/other"] == source.specs["electra/other"]
    np.testing.assert_array_equal(
        longer.read("electra/other"), source.read("electra/other")
    )
    assert longer.global_step == 1234
    assert list(longer.specs) == list(source.specs)


def test_stated_hparams_follow_and_the_sources_stay(source):
    source.hparams = {"model_hparam_overrides": {"hidden_size": 8}}
    longer = extend_positions(source, 6)
    assert longer.hparams["model_hparam_overrides"] == {
        "hidden_size": 8,
        "max_position_embeddings": 6,
    }
    assert source.hparams["model_hparam_overrides"] == {"hidden_size": 8}


@pytest.mark.parametrize(
    "length, words",
    [
        (6, "extended from 4 to 6 rows: rows 4 and up repeat"),
        (2, "cut from 4 to 2 rows"),
        (4, "4 rows already"),
    ],
)
def test_it_is_said(source, length, words):
    assert words in describe_extension(source, length)


def test_mistakes_are_refused(source, random_weights):
    with pytest.raises(UserError, match="at least 1"):
        extend_positions(source, 0)
    with pytest.raises(UserError, match="no position_embeddings"):
        extend_positions(random_weights({"a": [1]}), 5)
