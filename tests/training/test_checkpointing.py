# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.training import checkpointing


class Tables(tf.Module):
    def __init__(self, rows, extra=False):
        super().__init__()
        self.table = tf.Variable(
            tf.ones([rows, 4]), name="electra/embeddings/word_embeddings"
        )
        if extra:
            self.extra = tf.Variable(
                tf.ones([2]), name="generator/encoder/layer_1/bias"
            )


class Slots(tf.Module):
    def __init__(self, model):
        super().__init__()
        self.targets = [model.table]
        self.m = {
            "electra/embeddings/word_embeddings": tf.Variable(
                tf.zeros_like(model.table),
                name="electra/embeddings/word_embeddings/adam_m",
            )
        }


def checkpoints(directory, model):
    return checkpointing.Checkpoints(
        str(directory),
        model=model,
        optimizer=Slots(model),
        step=tf.Variable(3, dtype=tf.int64, name="global_step"),
        position={},
        keep=5,
    )


def test_a_checkpoint_is_named_by_its_step(tmp_path):
    path = checkpoints(tmp_path, Tables(6)).save()
    assert path == str(tmp_path / "model.ckpt-3")
    assert checkpoints(tmp_path, Tables(6)).latest == path


def test_other_shapes_name_the_variable_and_the_hparam(tmp_path):
    path = checkpoints(tmp_path, Tables(6)).save()
    with pytest.raises(UserError) as raised:
        checkpoints(tmp_path, Tables(7)).restore(path)
    message = str(raised.value)
    assert "electra/embeddings/word_embeddings" in message
    assert "checkpoint [6, 4], this model [7, 4]" in message
    assert "vocab_size" in message


def test_missing_and_unexpected_variables_are_named(tmp_path):
    path = checkpoints(tmp_path, Tables(6)).save()
    with pytest.raises(UserError, match="generator/encoder/layer_1/bias"):
        checkpoints(tmp_path, Tables(6, extra=True)).restore(path)
    path = checkpoints(tmp_path / "b", Tables(6, extra=True)).save()
    with pytest.raises(UserError, match="generator_layers"):
        checkpoints(tmp_path / "b", Tables(6)).restore(path)


def test_weights_alone_can_be_read_back(tmp_path):
    model = Tables(6)
    model.table.assign(tf.random.stateless_normal([6, 4], [1, 2]))
    path = checkpoints(tmp_path, model).save()
    other, step = Tables(6), tf.Variable(0, dtype=tf.int64)
    checkpointing.restore_model(path, other, step)
    assert (other.table.numpy() == model.table.numpy()).all()
    assert int(step.numpy()) == 3


def test_an_original_checkpoint_cannot_be_continued(golden_dir):
    path = str(golden_dir / "ckpt_pretrain_tiny" / "model.ckpt-50")
    assert checkpointing.is_name_based(path)
    with pytest.raises(UserError, match="TensorFlow 1"):
        checkpointing.check_shapes(path, Tables(6).variables)


def test_changes_are_told_as_they_read_back_from_json():
    before = {"a": [1, 2], "b": 1.0, "gone": 1}
    now = {"a": (1, 2), "b": 2.0, "new": 3}
    names = ("a", "b", "gone", "new")
    assert checkpointing.changed(before, now, names) == ["b: 1.0 -> 2.0"]


def test_a_spoiled_config_is_a_user_error(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config\.json is not JSON"):
        checkpointing.read_config(str(tmp_path))
