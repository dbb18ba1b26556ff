# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizer files of Hugging Face folders, read.

`tokenizer.json` is the library's description of the whole tokenizer; without
it `tokenizer_config.json`, `special_tokens_map.json` and `added_tokens.json`
say what differs from BERT's. What this project's tokenizer does not do is
refused by the field's name, and so are files that contradict each other.

Source: transformers 5 `TokenizersBackend` and `BertTokenizer`, and
  `BertTokenizerLegacy` for `never_split`; tokenizers 0.23 `AddedVocabulary`.
Differs: a field of tokenizer.json counts as in the library, even where
  `BertTokenizer` builds its tokenizer without looking at it.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

from configure.errors import UserError
from electra_tf.files import filesystem
from electra_tf.files.digests import check_digest
from electra_tf.files.json_files import read_json
from electra_tf.files.reading import read_text
from electra_tf.text.huggingface_tokens import (
    ADDED_TOKENS,
    CONFIG,
    SPECIAL_NAMES,
    SPECIAL_TOKENS_MAP,
    TOKENIZER,
    VOCAB,
    TokenizerFiles,
    added_tokens,
    declared_with_ids,
    json_part,
    numbered_tokens,
    read_token,
    refuse_field,
    show,
)
from electra_tf.text.tokenizer_settings import (
    LIBRARY,
    MARK,
    ORIGINAL,
    TOKENIZER_CONFIG,
    TokenizerSettings,
)

# Classes that split as BERT does, and those that only read tokenizer.json.
_CLASSES = (
    "BertTokenizer",
    "ElectraTokenizer",
    "DistilBertTokenizer",
    "PreTrainedTokenizer",
    "TokenizersBackend",
)
# Longest word in characters: if no file states it, and the most.
_MAX_WORD_LENGTH = 100
_MOST_WORD_LENGTH = 1000

# Fields that change ids and the values that this project's tokenizer has.
_CONFIG_VALUES: dict[str, tuple[Any, ...]] = {
    "word_tokenizer_type": (None, "basic"),
    "subword_tokenizer_type": (None, "wordpiece"),
    "do_basic_tokenize": (None, True),
    "do_word_tokenize": (None, True),
    "do_subword_tokenize": (None, True),
    "do_split_on_punc": (None, True),
    "split_special_tokens": (None, False),
    "wordpieces_prefix": (None, "##"),
    "add_bos_token": (None, False),
    "add_eos_token": (None, False),
    "padding_side": (None, "right"),
    "truncation_side": (None, "right"),
    "do_lower_case": (None, True, False),
    "strip_accents": (None, True, False),
    "tokenize_chinese_chars": (None, True, False),
    "clean_text": (None, True, False),
}
_TOKENIZER_VALUES: dict[str, tuple[Any, ...]] = {
    "model.type": ("WordPiece",),
    "model.unk_token": (None, "[UNK]"),
    "model.continuing_subword_prefix": (None, "##"),
    "normalizer.type": ("BertNormalizer",),
    "normalizer.lowercase": (None, True, False),
    "normalizer.strip_accents": (None, True, False),
    "normalizer.handle_chinese_chars": (None, True, False),
    "normalizer.clean_text": (None, True, False),
    "pre_tokenizer.type": ("BertPreTokenizer",),
    "truncation.direction": (None, "Right"),
    "padding.direction": (None, "Right"),
    "padding.pad_token": (None, "[PAD]"),
}
# The same setting in tokenizer_config.json and in tokenizer.json's normalizer.
_IN_NORMALIZER = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
    "clean_text": "clean_text",
}


def is_tokenizer(folder: str) -> bool:
    """Return whether a vocabulary's folder holds files of transformers."""
    if any(
        filesystem.exists(os.path.join(folder, name))
        for name in (TOKENIZER_CONFIG, SPECIAL_TOKENS_MAP, ADDED_TOKENS)
    ):
        return True
    for name, keys in ((CONFIG, ("model_type",)), (TOKENIZER, ("model",))):
        path = os.path.join(folder, name)
        if filesystem.exists(path):
            content = read_json(path)
            model = content.get("model")
            is_bpe = isinstance(model, dict) and model.get("type") == "BPE"
            if all(key in content for key in keys) and not is_bpe:
                return True
    return False


def read_tokenizer(
    folder: str, vocab_file: str | None = None
) -> TokenizerSettings:
    """Read the settings of a folder's tokenizer.

    Args:
      vocab_file: the vocabulary; default: the folder's vocab.txt, else that
        in tokenizer.json. Without any there are no added tokens.

    Raises:
      UserError: a field asks for what this project's tokenizer does not do, or
        two files contradict each other.
    """
    found = TokenizerFiles(folder)
    if MARK in found.config:
        return _read_native(found, vocab_file)
    _check_config(found)
    if found.whole:
        _check_whole(found)
    stated = _merge_normalizers(found)
    if _describes_words(found, stated):
        # As a tagger's words are split; the tokenizer itself is the original's.
        casing = ("do_lower_case", "strip_accents")
        return TokenizerSettings(**{n: stated.get(n) for n in casing})
    model = json_part(found.whole, "model")
    limit = _word_limit(found, TOKENIZER, "model.", model)
    vocab = _read_vocabulary(found, vocab_file)
    chinese = stated.get("tokenize_chinese_chars")
    clean = stated.get("clean_text")
    known = bool(found.config or found.whole)
    lower = stated.get("do_lower_case")
    return TokenizerSettings(
        LIBRARY,
        True if known and lower is None else lower,
        stated.get("strip_accents"),
        clean is None or clean,
        chinese is None or chinese,
        limit,
        added_tokens(found, vocab) if vocab else (),
        _never_split(found, vocab) if vocab else (),
    )


def vocabulary_text(path: str) -> str:
    """Return the vocabulary of a tokenizer.json, one token a line.

    Added tokens that the model itself does not know are not part of it.
    """
    content = read_json(path)
    _check_values(path, content, _TOKENIZER_VALUES)
    vocab = _model_vocab(path, content)
    return "".join(f"{token}\n" for token in vocab)


# Fields.


def _check_values(
    path: str,
    content: Mapping[str, Any],
    table: Mapping[str, tuple[Any, ...]],
) -> None:
    """Refuse fields that are stated and not among a table's values."""
    for field, values in table.items():
        name, _, inner = field.partition(".")
        value = (
            json_part(content, name).get(inner) if inner else content.get(name)
        )
        if not any(value is v or value == v for v in values) or (
            isinstance(value, int) and not isinstance(value, bool)
        ):
            shown = [show(v) for v in values if v is not None]
            if value == "Sequence":
                value = f"Sequence of {', '.join(_types(content[name]))}"
            refuse_field(path, field, value, " or ".join(shown))


def _types(sequence: Mapping[str, Any]) -> list[str]:
    """Return the types of the parts of a sequence."""
    parts = sequence.get("normalizers") or sequence.get("pretokenizers") or ()
    return [str(p.get("type") if isinstance(p, dict) else p) for p in parts]


def _check_config(found: TokenizerFiles) -> None:
    path = os.path.join(found.folder, TOKENIZER_CONFIG)
    _check_values(path, found.config, _CONFIG_VALUES)
    kind = found.config.get("tokenizer_class")
    if kind and str(kind).removesuffix("Fast") not in _CLASSES:
        expected = f"one of {', '.join(_CLASSES)}"
        refuse_field(path, "tokenizer_class", kind, expected)
    for name, content in (
        (TOKENIZER_CONFIG, found.config),
        (SPECIAL_TOKENS_MAP, found.special),
    ):
        for field, expected in SPECIAL_NAMES.items():
            if content.get(field) is not None:
                token = read_token(name, field, content[field])
                if token.content != expected:
                    found.refuse(name, field, token.content, repr(expected))


def _check_whole(found: TokenizerFiles) -> None:
    """Check the tokenizer.json, its vocabulary and added tokens apart."""
    path = os.path.join(found.folder, TOKENIZER)
    _check_values(path, found.whole, _TOKENIZER_VALUES)
    processor = json_part(found.whole, "post_processor")
    kind = processor.get("type")
    if kind == "BertProcessing":
        names = [processor.get("cls"), processor.get("sep")]
        right = [n[0] if isinstance(n, list) and n else n for n in names] == [
            SPECIAL_NAMES["cls_token"],
            SPECIAL_NAMES["sep_token"],
        ]
    elif kind == "TemplateProcessing":
        right = all(
            _template(processor.get(name)) == parts
            for name, parts in TEMPLATES.items()
        )
    else:
        right = found.whole.get("post_processor") is None
    if not right:
        shown = json.dumps(found.whole["post_processor"], ensure_ascii=False)
        expected = "[CLS] A [SEP] and [CLS] A [SEP] B [SEP], segments 0 and 1"
        refuse_field(path, "post_processor", shown[:80], expected)


# What a post-processor puts together: token or sequence, and its segment.
TEMPLATES = {
    "single": [("[CLS]", 0), ("A", 0), ("[SEP]", 0)],
    "pair": [("[CLS]", 0), ("A", 0), ("[SEP]", 0), ("B", 1), ("[SEP]", 1)],
}


def _template(parts: Any) -> list[tuple[Any, Any]] | None:
    try:
        return [
            (piece["id"], piece["type_id"])
            for part in parts
            for piece in part.values()
        ]
    except (AttributeError, KeyError, TypeError):
        return None


def _merge_normalizers(found: TokenizerFiles) -> dict[str, bool | None]:
    """Return the settings of normalization that the two files agree on."""
    config, normalizer = found.config, found.normalizer
    if not found.whole:
        if config.get("clean_text") is False:
            found.refuse(
                TOKENIZER_CONFIG,
                "clean_text",
                False,
                "true, for transformers passes it over; state it in normalizer"
                f" of {TOKENIZER}",
            )
        return {name: config.get(name) for name in _IN_NORMALIZER}
    stated: dict[str, bool | None] = {}
    for name, inner in _IN_NORMALIZER.items():
        value = normalizer.get(inner)
        usual = None if name == "strip_accents" else True
        stated[name] = usual if value is None else value
    lower = stated["do_lower_case"]
    for name, value in stated.items():
        other = config.get(name)
        follows = lower if name == "strip_accents" else None
        # Null means: as lower-casing says.
        one = follows if value is None else value
        two = follows if other is None and name in config else other
        if two is not None and one != two:
            raise UserError(
                f"{found.folder}: {name} is {show(other)} in"
                f" {TOKENIZER_CONFIG}, but normalizer.{_IN_NORMALIZER[name]} is"
                f" {show(value)} in {TOKENIZER}. Correct one of them, or save"
                " the tokenizer again."
            )
    return stated


def _describes_words(found: TokenizerFiles, stated: Mapping[str, Any]) -> bool:
    """Return whether this project wrote how its tagger splits words."""
    kinds = found.model.get("architectures") or [None]
    return (
        MARK in found.model
        and kinds[0] == "ElectraForTokenClassification"
        and stated.get("tokenize_chinese_chars") is False
    )


# Vocabulary and tokens.


def _read_lines(path: str) -> list[str]:
    check_digest(path)
    lines = read_text(path).split("\n")
    return [line.strip() for line in (lines if lines[-1] else lines[:-1])]


def _model_vocab(path: str, content: Mapping[str, Any]) -> dict[str, int]:
    """Return the tokens and ids of tokenizer.json's model, in order."""
    vocab = json_part(content, "model").get("vocab")
    ids = sorted(vocab.values()) if isinstance(vocab, dict) and vocab else None
    if ids != list(range(len(ids or ()))):
        raise UserError(
            f"{path}: the ids of model.vocab have gaps; expected each number"
            " from 0 once. Save the tokenizer again."
        )
    return dict(sorted(vocab.items(), key=lambda item: item[1]))


def _read_vocabulary(
    found: TokenizerFiles, vocab_file: str | None
) -> dict[str, int] | None:
    """Return the vocabulary that both files of it agree on."""
    path = vocab_file or os.path.join(found.folder, VOCAB)
    whole = os.path.join(found.folder, TOKENIZER)
    if not filesystem.exists(path):
        return _model_vocab(whole, found.whole) if found.whole else None
    tokens = _read_lines(path)
    vocab: dict[str, int] = {}
    for number, token in enumerate(tokens):
        vocab.setdefault(token, number)
    if not found.whole:
        return vocab
    model = _model_vocab(whole, found.whole)
    for number, token in enumerate(model):
        line = tokens[number] if number < len(tokens) else None
        if line != token.strip():
            raise UserError(
                f"{path}:{number + 1}: {line!r}, but model.vocab of {whole}"
                f" has {token!r} for id {number}. Keep the one that the model"
                " was trained with; delete the other."
            )
    if len(tokens) > len(model):
        raise UserError(
            f"{path}:{len(model) + 1}: {tokens[len(model)]!r}, but model.vocab"
            f" of {whole} ends before. Keep the one that the model was trained"
            " with; delete the other."
        )
    return vocab


def _never_split(
    found: TokenizerFiles, vocab: Mapping[str, int]
) -> tuple[str, ...]:
    field = "never_split"
    entries = found.config.get(field) or []
    if not isinstance(entries, list) or not all(
        isinstance(entry, str) for entry in entries
    ):
        expected = "a list of tokens"
        found.refuse(TOKENIZER_CONFIG, field, entries, expected)
    for entry in entries:
        if entry not in vocab:
            found.refuse(
                TOKENIZER_CONFIG, field, entry, f"tokens of {VOCAB}, no others"
            )
    return tuple(sorted(set(entries)))


def _read_native(
    found: TokenizerFiles, vocab_file: str | None
) -> TokenizerSettings:
    """Read the settings that this project put beside a vocabulary."""
    config, mark = found.config, found.config[MARK]
    path = os.path.join(found.folder, TOKENIZER_CONFIG)
    check_digest(path)
    _check_values(path, config, _CONFIG_VALUES)
    casing = (config.get("do_lower_case"), config.get("strip_accents"))
    characters = mark.get("characters") if isinstance(mark, dict) else None
    if characters == ORIGINAL:
        return TokenizerSettings(ORIGINAL, *casing)
    if characters != LIBRARY:
        expected = f"characters {ORIGINAL!r} or {LIBRARY!r}"
        found.refuse(TOKENIZER_CONFIG, MARK, mark, expected)
    vocab = _read_vocabulary(found, vocab_file) or {}
    declared = declared_with_ids(found).get(TOKENIZER_CONFIG, [])
    return TokenizerSettings(
        LIBRARY,
        *casing,
        config.get("clean_text") is not False,
        config.get("tokenize_chinese_chars") is not False,
        _word_limit(found, TOKENIZER_CONFIG, "", config),
        numbered_tokens(found, declared, vocab),
        _never_split(found, vocab),
    )


def _word_limit(
    found: TokenizerFiles, name: str, lead: str, content: Mapping[str, Any]
) -> int:
    """Return the characters of the longest word that is looked up."""
    field = "max_input_chars_per_word"
    limit = content.get(field, _MAX_WORD_LENGTH)
    if type(limit) is not int or not 1 <= limit <= _MOST_WORD_LENGTH:
        expected = f"a number from 1 to {_MOST_WORD_LENGTH}"
        found.refuse(name, lead + field, limit, expected)
    return limit
