# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizer files of a Hugging Face folder: our settings in its words."""

import os
from collections.abc import Mapping
from typing import Any

from configure.errors import UserError
from electra_tf.checkpoints.stored_tensors import read_json
from electra_tf.text.vocab import (
    CLS,
    MASK,
    PAD,
    SEP,
    SPECIAL_TOKENS,
    UNK,
    load_vocab,
)

VOCAB = "vocab.txt"
TOKENIZER_CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS_MAP = "special_tokens_map.json"
TOKENIZER = "tokenizer.json"

_NAMES = {
    "unk_token": UNK,
    "sep_token": SEP,
    "pad_token": PAD,
    "cls_token": CLS,
    "mask_token": MASK,
}
# Longer words become [UNK]. transformers' own default is 100.
_LONGEST_WORD = 200


def tokenizer_hparams(folder: str) -> dict[str, bool]:
    """Reads how a folder's text is to be split.

    Args:
      folder: with tokenizer_config.json, or without.

    Returns:
      `do_lower_case` and `strip_accents` where stated.

    Raises:
      UserError: if the file is not JSON.
    """
    path = os.path.join(folder, TOKENIZER_CONFIG)
    if not os.path.isfile(path):
        return {}
    config = read_json(path)
    lower = config.get("do_lower_case", True)
    hparams = {"do_lower_case": bool(lower)}
    # Null there means: as lower-casing says.
    if lower and config.get("strip_accents") is False:
        hparams["strip_accents"] = False
    return hparams


def tokenizer_notes(folder: str) -> dict[str, str]:
    """Names what of a folder's tokenizer has no counterpart here.

    Args:
      folder: of one model.

    Returns:
      Reasons by file and setting.
    """
    notes = {}
    path = os.path.join(folder, TOKENIZER_CONFIG)
    config = read_json(path) if os.path.isfile(path) else {}
    if config.get("strip_accents") and config.get("do_lower_case") is False:
        notes[f"{TOKENIZER_CONFIG}: strip_accents"] = (
            "strips accents without lower-casing; here they stay"
        )
    if config.get("tokenize_chinese_chars") is False:
        notes[f"{TOKENIZER_CONFIG}: tokenize_chinese_chars"] = (
            "false there; here Chinese characters are always words"
        )
    if not os.path.isfile(os.path.join(folder, VOCAB)) and os.path.isfile(
        os.path.join(folder, TOKENIZER)
    ):
        notes[TOKENIZER] = (
            f"holds the vocabulary; there is no {VOCAB}. `write_vocab` of"
            " electra_tf.checkpoints.huggingface_tokenizer makes one"
        )
    return notes


def write_vocab(folder: str, path: str) -> None:
    """Writes the vocabulary that is only in tokenizer.json, one token a line.

    Args:
      folder: of a model that transformers 5 or later saved.
      path: of the file to write; it must not exist.

    Raises:
      UserError: if there is no WordPiece vocabulary, its ids have gaps, or
        the file exists.
    """
    source = os.path.join(folder, TOKENIZER)
    model = read_json(source).get("model") or {}
    vocab = model.get("vocab")
    if not isinstance(vocab, dict) or model.get("type") != "WordPiece":
        raise UserError(f"{source}: no WordPiece vocabulary.")
    tokens = sorted(vocab, key=vocab.get)
    if [vocab[token] for token in tokens] != list(range(len(tokens))):
        raise UserError(f"{source}: the vocabulary's ids have gaps.")
    try:
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{token}\n" for token in tokens)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error}.") from error


def read_vocabulary(vocab_file: str, vocab_size: int) -> dict[str, int]:
    """Reads a vocabulary to be shipped with a model.

    Args:
      vocab_file: its path.
      vocab_size: rows of the model's table.

    Returns:
      From token to id.

    Raises:
      UserError: if it cannot be read, lacks a special token or has more
        tokens than the table rows.
    """
    vocab = load_vocab(vocab_file)
    missing = [token for token in SPECIAL_TOKENS if token not in vocab]
    if missing:
        raise UserError(f"{vocab_file} lacks {', '.join(missing)}.")
    needed = max(vocab.values()) + 1
    if needed > vocab_size:
        raise UserError(
            f"{vocab_file} has {needed} lines but the model's token table"
            f" {vocab_size} rows; give the vocabulary it was trained with."
        )
    return vocab


def tokenizer_files(
    vocab: Mapping[str, int], hparams: Mapping[str, Any], positions: int
) -> dict[str, dict[str, Any]]:
    """Makes the JSON files.

    Args:
      vocab: from token to id.
      hparams: `do_lower_case` and `strip_accents` count.
      positions: longest sequence.

    Returns:
      Contents by file name.
    """
    lower = bool(hparams.get("do_lower_case", True))
    strip = lower and bool(hparams.get("strip_accents", True))
    config = {
        "tokenizer_class": "ElectraTokenizer",
        "do_lower_case": lower,
        "strip_accents": strip,
        "tokenize_chinese_chars": True,
        "model_max_length": positions,
        **_NAMES,
    }
    return {
        TOKENIZER_CONFIG: config,
        SPECIAL_TOKENS_MAP: dict(_NAMES),
        TOKENIZER: _fast_tokenizer(vocab, lower, strip),
    }


def _fast_tokenizer(
    vocab: Mapping[str, int], lower: bool, strip: bool
) -> dict[str, Any]:
    """The `tokenizers` library's description of BERT's way to split text."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": vocab[token],
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token in sorted(SPECIAL_TOKENS, key=vocab.__getitem__)
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": strip,
            "lowercase": lower,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": _post_processor(vocab),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": UNK,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": _LONGEST_WORD,
            "vocab": dict(vocab),
        },
    }


def _post_processor(vocab: Mapping[str, int]) -> dict[str, Any]:
    """[CLS] A [SEP], and [CLS] A [SEP] B [SEP]."""

    def token(name: str, segment: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": segment}}

    def text(name: str, segment: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": segment}}

    single = [token(CLS, 0), text("A", 0), token(SEP, 0)]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, text("B", 1), token(SEP, 1)],
        "special_tokens": {
            name: {"id": name, "ids": [vocab[name]], "tokens": [name]}
            for name in (CLS, SEP)
        },
    }
