# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizer files: the same settings in another project's words."""

import json
import pathlib

import pytest

from configure.errors import UserError
from electra_tf.checkpoints import huggingface_config as tokenizers
from electra_tf.text.vocab import load_vocab


@pytest.fixture
def folder(tmp_path, tiny_vocab):
    """A folder with the tokenizer's files, made with given settings."""

    def make(**hparams):
        files = tokenizers.tokenizer_files(load_vocab(tiny_vocab), hparams, 64)
        for name, content in files.items():
            (tmp_path / name).write_text(json.dumps(content))
        return tmp_path

    return make


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("strip", [True, False])
def test_settings_come_back(lower, strip, folder):
    path = folder(do_lower_case=lower, strip_accents=strip)
    stated = tokenizers.tokenizer_hparams(str(path))
    assert stated["do_lower_case"] is lower
    # Only a lower-casing tokenizer strips accents.
    assert stated.get("strip_accents", True) is (strip or not lower)
    config = json.loads((path / "tokenizer_config.json").read_text())
    assert config["strip_accents"] is (lower and strip)
    normalizer = json.loads((path / "tokenizer.json").read_text())["normalizer"]
    assert normalizer["lowercase"] is lower
    assert normalizer["strip_accents"] is (lower and strip)


def test_files_name_the_tokenizer_and_its_special_tokens(folder):
    path = folder()
    config = json.loads((path / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "ElectraTokenizer"
    assert config["model_max_length"] == 64
    special = json.loads((path / "special_tokens_map.json").read_text())
    assert special == {
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
    }
    assert special.items() <= config.items()


def test_a_folder_without_settings_states_none(tmp_path):
    assert tokenizers.tokenizer_hparams(str(tmp_path)) == {}
    assert tokenizers.tokenizer_notes(str(tmp_path)) == {}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"do_lower_case": False, "strip_accents": True}, "strip_accents"),
        ({"tokenize_chinese_chars": False}, "tokenize_chinese_chars"),
    ],
)
def test_settings_without_counterpart_are_said(config, said, tmp_path):
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (name,) = tokenizers.tokenizer_notes(str(tmp_path))
    assert name == f"tokenizer_config.json: {said}"


def test_a_vocabulary_only_in_json_is_said_and_can_be_written(
    folder, tiny_vocab, tmp_path
):
    path = folder()
    assert (
        "write_vocab" in tokenizers.tokenizer_notes(str(path))["tokenizer.json"]
    )
    out = tmp_path / "vocab.txt"
    tokenizers.write_vocab(str(path), str(out))
    assert out.read_bytes() == pathlib.Path(tiny_vocab).read_bytes()
    assert not tokenizers.tokenizer_notes(str(path))
    with pytest.raises(UserError, match="cannot be written"):
        tokenizers.write_vocab(str(path), str(out))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"type": "BPE", "vocab": {"a": 0}}, "no WordPiece vocabulary"),
        ({"type": "WordPiece", "vocab": {"a": 0, "b": 2}}, "gaps"),
        (None, "no WordPiece vocabulary"),
    ],
)
def test_other_vocabularies_are_refused(model, said, tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model}))
    with pytest.raises(UserError, match=said):
        tokenizers.write_vocab(str(tmp_path), str(tmp_path / "vocab.txt"))
