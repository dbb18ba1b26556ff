# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizer files of a Hugging Face folder, made from a vocabulary.

Source: transformers 5 `BertTokenizer` and tokenizers 0.23.
"""

from collections.abc import Mapping
from typing import Any

from electra_tf.text.huggingface_tokenizer import (
    SPECIAL_NAMES,
    SPECIAL_TOKENS_MAP,
    TEMPLATES,
    TOKENIZER,
)
from electra_tf.text.tokenizer_settings import (
    LIBRARY,
    TOKENIZER_CONFIG,
    AddedToken,
    TokenizerSettings,
)
from electra_tf.text.vocabulary import CLS, SEP, SPECIAL_TOKENS, UNK

# Settings that `BertTokenizer` always uses, regardless of tokenizer.json.
_FIXED = {"clean_text": True, "max_word_length": 100}


def tokenizer_files(
    vocab: Mapping[str, int],
    hparams: Mapping[str, Any],
    positions: int,
    split_words_like_original: bool = False,
    settings: TokenizerSettings | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the contents of a tokenizer's JSON files, by file name.

    Args:
      vocab: ids of the wordpieces; added tokens may be missing.
      hparams: casing of the vocabulary.
      positions: maximum number of tokens in a sequence of the model.
      split_words_like_original: whether to split tagged words as the original
        does, which lower-cases words and keeps Chinese characters together.
      settings: settings of the tokenizer; None: the original's settings.
    """
    settings = settings or TokenizerSettings()
    hparams = {} if split_words_like_original else hparams
    lower = bool(hparams.get("do_lower_case", True))
    strip = settings.strips(lower, bool(hparams.get("strip_accents", True)))
    chinese = settings.tokenize_chinese_chars and not split_words_like_original
    config: dict[str, Any] = {
        "tokenizer_class": _tokenizer_class(settings),
        "do_lower_case": lower,
        "strip_accents": strip,
        "tokenize_chinese_chars": chinese,
        "model_max_length": positions,
        **SPECIAL_NAMES,
    }
    tokens = settings.added_tokens or tuple(
        AddedToken(token, vocab[token], special=True)
        for token in sorted(SPECIAL_TOKENS, key=vocab.__getitem__)
    )
    special_map: dict[str, Any] = dict(SPECIAL_NAMES)
    if settings.never_split:
        config["never_split"] = list(settings.never_split)
    if any(token.content not in SPECIAL_TOKENS for token in tokens):
        config["added_tokens_decoder"] = {
            str(token.id): _without_id(token) for token in tokens
        }
    additional = [
        token.content
        for token in tokens
        if token.special and token.content not in SPECIAL_TOKENS
    ]
    if additional:
        config["additional_special_tokens"] = additional
        special_map["additional_special_tokens"] = additional
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": settings.clean_text,
        "handle_chinese_chars": chinese,
        "strip_accents": strip,
        "lowercase": lower,
    }
    tokenizer = _tokenizer(vocab, tokens, normalizer, settings.max_word_length)
    return {
        TOKENIZER_CONFIG: config,
        SPECIAL_TOKENS_MAP: special_map,
        TOKENIZER: tokenizer,
    }


def _tokenizer_class(settings: TokenizerSettings) -> str:
    """Return the name of a transformers class that applies the settings.

    ELECTRA's class builds a tokenizer with fixed settings; the general class
    reads tokenizer.json.
    """
    is_fixed = all(getattr(settings, n) == v for n, v in _FIXED.items())
    if settings.characters != LIBRARY or is_fixed:
        return "ElectraTokenizer"
    return "PreTrainedTokenizerFast"


def _without_id(token: AddedToken) -> dict[str, Any]:
    fields = token.as_json()
    del fields["id"]
    return fields


def _tokenizer(
    vocab: Mapping[str, int],
    tokens: tuple[AddedToken, ...],
    normalizer: Mapping[str, Any],
    max_word_length: int,
) -> dict[str, Any]:
    """Return the content of tokenizer.json for the library `tokenizers`."""
    templates = {}
    for name, parts in TEMPLATES.items():
        templates[name] = [_piece(token, segment) for token, segment in parts]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [token.as_json() for token in tokens],
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            **templates,
            "special_tokens": {
                name: {"id": name, "ids": [vocab[name]], "tokens": [name]}
                for name in (CLS, SEP)
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": UNK,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": max_word_length,
            "vocab": dict(vocab),
        },
    }


def _piece(token: str, segment: int) -> dict[str, Any]:
    kind = "SpecialToken" if token in (CLS, SEP) else "Sequence"
    return {kind: {"id": token, "type_id": segment}}
