# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a path holds is told from its content; what is wrong, in words."""

import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints import formats, tf1, tf2
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.huggingface_writer import write_huggingface
from electra_tf.checkpoints.weights import MemoryWeights

SHAPES = {"electra/a": [3, 2], "electra/b": [4]}


@pytest.fixture
def written(tmp_path, random_weights):
    prefix = str(tmp_path / "model.ckpt-1234")
    tf1.write_tf1(random_weights(SHAPES), prefix)
    return prefix


def test_each_format_is_told_by_prefix_file_and_folder(
    written, tmp_path, random_weights, same_tensors
):
    ours = str(tmp_path / "ours" / "model.ckpt-1234")
    tf2.write_native(random_weights(SHAPES), ours)
    for prefix, kind in ((written, "tf1"), (ours, "native")):
        files = [f"{prefix}.index", f"{prefix}.data-00000-of-00001"]
        for path in (prefix, os.path.dirname(prefix), *files):
            weights = open_weights(path)
            assert weights.kind == kind
            same_tensors(weights, random_weights(SHAPES))


def test_hugging_face_folders_and_files(golden_dir, tmp_path):
    source = open_weights(str(golden_dir / "ckpt_v200_electra"))
    folder = tmp_path / "hf"
    write_huggingface(source, str(folder), drop_unrepresentable=True)
    part = folder / "generator"
    for path in (folder, part, part / "model.safetensors"):
        assert open_weights(str(path)).kind == "huggingface"
    (folder / "generator" / "model.safetensors").unlink()
    with pytest.raises(UserError, match="no weights"):
        open_weights(str(part))


def test_config_and_vocabulary_beside_it_come_along(written, tiny_vocab):
    folder = pathlib.Path(written).parent
    hparams = {"model_size": "base", "vocab_size": 200}
    formats.write_electra_config(str(folder), hparams)
    vocab = folder / "vocab.txt"
    vocab.write_text(pathlib.Path(tiny_vocab).read_text())
    weights = open_weights(written)
    assert weights.hparams["model_size"] == "base"
    assert weights.vocab_file == str(vocab)


def test_a_wrong_prefix_offers_the_nearest(tmp_path):
    for step in range(1000, 13000, 1000):
        (tmp_path / f"model.ckpt-{step}.index").write_bytes(b"")
    with pytest.raises(UserError) as caught:
        open_weights(str(tmp_path / "model.ckpt-9001"))
    assert f"Nearest in {tmp_path} (of 12): model" in str(caught.value)
    offered = str(caught.value).split("): ")[1].split(", ")
    assert offered[0] == "model.ckpt-9000"
    assert len(offered) == 5
    with pytest.raises(UserError, match="Nearest in .*: model.ckpt-"):
        open_weights(str(tmp_path / "electra_small"))


def test_an_empty_folder_and_a_missing_one_are_said(tmp_path):
    with pytest.raises(UserError, match="no checkpoint in this directory"):
        open_weights(str(tmp_path))
    with pytest.raises(UserError, match="There is no directory .*nowhere"):
        open_weights(str(tmp_path / "nowhere" / "model.ckpt"))


def test_a_missing_index_is_a_copy_in_part(written):
    os.remove(written + ".index")
    with pytest.raises(UserError, match="copied in part.*1234.index"):
        open_weights(written)
    with pytest.raises(UserError, match=r"copied in part\. Copy .*\.index"):
        open_weights(os.path.dirname(written))


def test_a_missing_data_file_is_named(tmp_path, random_weights):
    prefix = str(tmp_path / "many")
    tf1.write_tf1(random_weights(SHAPES), prefix, bytes_per_file=16)
    files = sorted(tmp_path.glob("many.data-*"))
    files[2].unlink()
    with pytest.raises(UserError, match=f"{files[2].name} is missing"):
        open_weights(prefix)


@pytest.mark.parametrize("content", [b"", None, b"not a table" * 50])
def test_a_damaged_index_is_unreadable(written, content):
    index = pathlib.Path(written + ".index")
    index.write_bytes(index.read_bytes()[:40] if content is None else content)
    with pytest.raises(UserError, match="unreadable .* copy the checkpoint"):
        open_weights(written)


def test_a_foreign_tensorflow_2_checkpoint_is_refused(tmp_path):
    path = tf.train.Checkpoint(x=tf.Variable(1.0)).write(str(tmp_path / "x"))
    with pytest.raises(UserError, match="of another project: keyed by its"):
        open_weights(path)


def test_two_kinds_in_one_folder_have_to_be_told_apart(written):
    folder = pathlib.Path(written).parent
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(UserError, match="give the path"):
        open_weights(str(folder))
    assert open_weights(written).kind == "tf1"


def test_what_an_estimator_leaves_besides_is_kept(tmp_path):
    values = {
        "global_step": np.asarray(7, np.int64),
        "signal_early_stopping/STOP": np.asarray(False),
        "electra/a": np.ones([2], np.float32),
    }
    tf1.write_tf1(MemoryWeights(values), str(tmp_path / "x"))
    weights = open_weights(str(tmp_path / "x"))
    assert weights.specs.keys() == values.keys()
    assert weights.global_step == 7


def test_several_without_a_newest_are_listed(tmp_path, random_weights):
    for name in ("a", "b"):
        tf1.write_tf1(random_weights(SHAPES), str(tmp_path / name))
    (tmp_path / "checkpoint").unlink()
    with pytest.raises(UserError, match=r"several checkpoints \(a, b\)"):
        open_weights(str(tmp_path))
    (tmp_path / "b.index").unlink()
    assert open_weights(str(tmp_path)).path == str(tmp_path / "a")


def test_a_moved_folder_is_found_by_its_own_files(tmp_path, random_weights):
    tf1.write_tf1(random_weights(SHAPES), str(tmp_path / "m"))
    state = 'model_checkpoint_path: "/long/gone/m"\n'
    (tmp_path / "checkpoint").write_text(state)
    (tmp_path / "n.index").write_bytes((tmp_path / "m.index").read_bytes())
    assert open_weights(str(tmp_path)).path == str(tmp_path / "m")
