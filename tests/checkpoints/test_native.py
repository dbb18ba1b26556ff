# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import os

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from configure.errors import UserError
from electra_tf.checkpoints import tf2
from electra_tf.checkpoints.tf1 import write_tf1
from electra_tf.checkpoints.weights import MemoryWeights

NAMES = st.lists(
    st.from_regex(
        r"[A-Za-z0-9_.]{1,12}(/[A-Za-z0-9_.]{1,12}){0,3}", fullmatch=True
    ),
    min_size=1,
    max_size=6,
    unique=True,
).filter(lambda names: "global_step" not in names)


def weights(names=("electra/a", "electra/b/kernel"), slots=True, step=7):
    generator = np.random.default_rng(5)
    values = {}
    for name in names:
        for suffix in ("", "/adam_m", "/adam_v") if slots else ("",):
            values[name + suffix] = generator.normal(size=[3, 2]).astype("f4")
    values["global_step"] = np.asarray(step, np.int64)
    return MemoryWeights(values)


def as_dict(opened):
    return dict(iter(opened))


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, name
        assert found[name].tobytes() == value.tobytes(), name


@settings(max_examples=25, deadline=None)
@given(names=NAMES, slots=st.booleans())
def test_every_name_comes_back_with_its_bytes(tmp_path_factory, names, slots):
    source = weights(names, slots)
    prefix = str(tmp_path_factory.mktemp("native") / "model.ckpt-7")
    tf2.write_native(source, prefix)
    assert_equal(as_dict(tf2.open_native(prefix)), as_dict(source))


def test_a_directory_gives_its_newest(tmp_path):
    for step in (3, 9):
        tf2.write_native(
            weights(step=step), str(tmp_path / f"model.ckpt-{step}")
        )
    assert tf2.open_native(str(tmp_path)).global_step == 9


def test_nothing_of_another_name_is_left_behind(tmp_path):
    tf2.write_native(weights(), str(tmp_path / "model.ckpt-7"))
    assert sorted(os.listdir(tmp_path)) == [
        "checkpoint",
        "model.ckpt-7.data-00000-of-00001",
        "model.ckpt-7.index",
    ]


def test_an_existing_checkpoint_is_not_replaced_unasked(tmp_path):
    prefix = str(tmp_path / "model.ckpt")
    tf2.write_native(weights(), prefix)
    with pytest.raises(UserError, match="there is a checkpoint already"):
        tf2.write_native(weights(step=8), prefix)
    tf2.write_native(weights(step=8), prefix, overwrite=True)
    assert tf2.open_native(prefix).global_step == 8


def test_a_slot_without_variable_is_refused(tmp_path):
    lone = MemoryWeights({"electra/a/adam_m": np.zeros([2], "f4")})
    with pytest.raises(UserError, match="electra/a/adam_m has no variable"):
        tf2.write_native(lone, str(tmp_path / "model.ckpt"))


def test_state_that_is_not_weights_is_named_not_lost(tmp_path):
    path = tf.train.Checkpoint(
        model={"a": tf.Variable([1.0])},
        step=tf.Variable(2, dtype=tf.int64),
        interval=tf.Variable(3.0),
    ).write(str(tmp_path / "model.ckpt-2"))
    opened = tf2.open_native(path)
    assert list(opened.shapes) == ["a"]
    assert [key.split("/")[0] for key in opened.dropped] == ["interval"]


def test_a_cut_data_file_is_a_user_error(tmp_path):
    prefix = str(tmp_path / "model.ckpt")
    tf2.write_native(weights(), prefix)
    data = tmp_path / "model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:20])
    with pytest.raises(UserError, match="damaged, cut short or missing"):
        as_dict(tf2.open_native(prefix))


def test_other_checkpoints_are_refused_in_words(tmp_path):
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "model.ckpt"),
        tensor_names=["electra/a"],
        shape_and_slices=[""],
        tensors=[tf.zeros([2])],
    )
    with pytest.raises(UserError, match="not a checkpoint of this project"):
        tf2.open_native(str(tmp_path / "model.ckpt"))


def test_two_variables_of_one_name_are_refused():
    twins = [tf.Variable(1.0, name="x"), tf.Variable(2.0, name="x")]
    with pytest.raises(ValueError, match="Two variables are named x"):
        tf2.variables_by_name(twins)


def test_a_place_that_cannot_be_written_is_a_users_mistake(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot be written"):
        tf2.write_native(weights(), str(tmp_path / "file" / "model.ckpt"))


def test_data_files_of_a_replaced_checkpoint_do_not_stay(tmp_path):
    prefix = str(tmp_path / "model.ckpt")
    write_tf1(weights(), prefix, bytes_per_file=30)
    assert len(list(tmp_path.glob("*.data-*"))) > 1
    tf2.write_native(weights(), prefix, overwrite=True)
    assert [path.name for path in tmp_path.glob("*.data-*")] == [
        "model.ckpt.data-00000-of-00001"
    ]
    assert_equal(as_dict(tf2.open_native(prefix)), as_dict(weights()))
