# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes, casing and vocabulary are the pre-trained model's."""

import pathlib
import shutil

import pytest

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.build import resolve_start


@pytest.fixture
def pretrained(tmp_path, pretrained_folder, long_sizes):
    """A model's folder as pre-training leaves it, where tuning looks for it."""
    sizes = long_sizes | {"max_position_embeddings": 40}
    source = pretrained_folder(
        max_seq_length=16, do_lower_case=False, model_hparam_overrides=sizes
    )
    return pathlib.Path(shutil.copytree(source, tmp_path / "models" / "small"))


def _create(tmp_path, **hparams):
    settings = {"task_names": ["cola"], "max_seq_length": 16, **hparams}
    return FinetuningConfig.create("small", str(tmp_path), **settings)


def test_what_is_not_stated_comes_from_the_model(pretrained, tmp_path):
    given = {"hidden_dropout_prob": 0.0}
    start = resolve_start(_create(tmp_path, model_hparam_overrides=given))
    found = start.config
    assert found.embedding_size == 8 and found.vocab_size == 200
    overrides = found.model_hparam_overrides
    assert overrides["num_attention_heads"] == 2
    assert overrides["hidden_dropout_prob"] == 0.0
    assert found.do_lower_case is False
    assert found.vocab_file == str(pretrained / "vocab.txt")
    assert any("do_lower_case = False" in note for note in start.notes)
    # What follows from the task is still there.
    assert found.num_train_epochs == 3.0 and found.task_names == ["cola"]
    start = resolve_start(_create(tmp_path, do_lower_case=True))
    assert start.config.do_lower_case is True
    assert any("pre-trained with False" in note for note in start.notes)
    elsewhere = shutil.copytree(pretrained, tmp_path / "elsewhere")
    (pretrained / "vocab.txt").write_text("of another model\n")
    found = resolve_start(_create(tmp_path, init_checkpoint=str(elsewhere)))
    assert found.config.vocab_file == str(elsewhere / "vocab.txt")
    assert found.config.do_lower_case is False


def test_what_does_not_fit_a_model_is_refused(pretrained, tmp_path, golden_dir):
    with pytest.raises(UserError, match="max_seq_length"):
        resolve_start(_create(tmp_path, max_seq_length=64))
    config = _create(tmp_path, vocab_file=str(golden_dir / "vocab.txt"))
    with pytest.raises(UserError, match="30522 tokens but the model has 200"):
        resolve_start(config)


def test_random_weights_need_no_folder(tmp_path, tiny_vocab):
    given = {"init_checkpoint": None, "vocab_file": tiny_vocab}
    config = _create(tmp_path, vocab_size=200, **given)
    start = resolve_start(config)
    assert start.weights is None and start.config == config
    with pytest.raises(UserError, match="200 tokens, but vocab_size is 30522"):
        resolve_start(_create(tmp_path, **given))


def test_another_vocabulary_is_refused(pretrained, tmp_path, tiny_vocab):
    tokens = pathlib.Path(tiny_vocab).read_text().splitlines()
    other = tmp_path / "other.txt"
    tokens[150], tokens[151] = tokens[151], tokens[150]
    other.write_text("\n".join(tokens))
    with pytest.raises(UserError, match=r"other.txt:151: found .*vocab_file"):
        resolve_start(_create(tmp_path, vocab_file=str(other)))
    # Where the model's own is not known, the size says something.
    for name in ("vocab.txt", "config.json", "digests.json"):
        (pretrained / name).unlink()
    assert resolve_start(_create(tmp_path, vocab_file=str(other)))
    other.write_text("\n".join(tokens[:190]))
    with pytest.raises(UserError, match="190 tokens, but vocab_size is 200"):
        resolve_start(_create(tmp_path, vocab_file=str(other)))
    sized = {"vocab_file": str(other), "vocab_size": 200}
    assert resolve_start(_create(tmp_path, **sized))
