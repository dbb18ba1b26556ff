# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading of the tokenizer files in Hugging Face folders.

`tokenizer.json` describes the whole tokenizer for the library. Without this
file, `tokenizer_config.json`, `special_tokens_map.json` and `added_tokens.json`
contain the differences from BERT's tokenizer. Unsupported settings and files
that contradict each other raise errors that name the field.

Source: transformers 5 `TokenizersBackend` and `BertTokenizer`, and
  `BertTokenizerLegacy` for `never_split`; tokenizers 0.23 `AddedVocabulary`.
Differs: all fields of tokenizer.json apply, as in the library, whereas
  `BertTokenizer` ignores some.
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

# Supported values of tokenizer_class: classes that split text as BERT does, and
# classes that read tokenizer.json.
_CLASSES = (
    "BertTokenizer",
    "ElectraTokenizer",
    "DistilBertTokenizer",
    "PreTrainedTokenizer",
    "TokenizersBackend",
)
# Default and largest supported value of max_input_chars_per_word.
_DEFAULT_WORD_LENGTH = 100
_LARGEST_WORD_LENGTH = 1000

# Fields that affect ids, each with the values that this project supports.
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
# Settings of tokenizer_config.json, and their names in tokenizer.json.
_IN_NORMALIZER = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
    "clean_text": "clean_text",
}


def is_tokenizer(folder: str) -> bool:
    """Return whether a folder contains tokenizer files of transformers."""
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
    """Read the tokenizer settings of a folder.

    Args:
      folder: a folder of transformers or of this project.
      vocab_file: path of the vocabulary. None: the folder's vocab.txt, or the
        vocabulary in tokenizer.json. Without a vocabulary, no added tokens are
        read.

    Raises:
      UserError: a field has a value that this project does not support, or
        two files contradict each other.
    """
    tokenizer_files = TokenizerFiles(folder)
    if MARK in tokenizer_files.config:
        return _read_native(tokenizer_files, vocab_file)
    _check_config(tokenizer_files)
    if tokenizer_files.whole:
        _check_whole(tokenizer_files)
    stated = _merge_normalizers(tokenizer_files)
    lower_case = stated.get("do_lower_case")
    strip_accents = stated.get("strip_accents")
    if _describes_words(tokenizer_files, stated):
        # The files describe only how a tagger splits words; text is split as in
        # the original.
        return TokenizerSettings(
            do_lower_case=lower_case, strip_accents=strip_accents
        )
    model = json_part(tokenizer_files.whole, "model")
    word_length = _word_length(tokenizer_files.folder, TOKENIZER, model)
    vocab = _read_vocabulary(tokenizer_files, vocab_file)
    has_settings = bool(tokenizer_files.config or tokenizer_files.whole)
    if has_settings and lower_case is None:
        lower_case = True
    return TokenizerSettings(
        LIBRARY,
        lower_case,
        strip_accents,
        stated.get("clean_text") is not False,
        stated.get("tokenize_chinese_chars") is not False,
        word_length,
        added_tokens(tokenizer_files, vocab) if vocab else (),
        _never_split(tokenizer_files, vocab) if vocab else (),
    )


def vocabulary_text(path: str) -> str:
    """Return the vocabulary of a tokenizer.json, one token per line.

    Added tokens are included only if the field `model.vocab` contains them.
    """
    content = read_json(path)
    _check_values(path, content, _TOKENIZER_VALUES)
    vocab = _model_vocab(path, content)
    return "".join(f"{token}\n" for token in vocab)


# The following functions check the fields of the tokenizer files.


def _check_values(
    path: str,
    content: Mapping[str, Any],
    table: Mapping[str, tuple[Any, ...]],
) -> None:
    """Raise a UserError for fields with values that a table does not list."""
    for field, values in table.items():
        name, _, inner = field.partition(".")
        value = content.get(name)
        if inner:
            value = json_part(content, name).get(inner)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if is_number or value not in values:
            expected = [show(v) for v in values if v is not None]
            if value == "Sequence":
                value = f"Sequence of {', '.join(_types(content[name]))}"
            refuse_field(path, field, value, " or ".join(expected))


def _types(sequence: Mapping[str, Any]) -> list[str]:
    """Return the types of the parts of a Sequence in tokenizer.json."""
    parts = sequence.get("normalizers") or sequence.get("pretokenizers") or ()
    return [str(p.get("type") if isinstance(p, dict) else p) for p in parts]


def _check_config(tokenizer_files: TokenizerFiles) -> None:
    path = os.path.join(tokenizer_files.folder, TOKENIZER_CONFIG)
    _check_values(path, tokenizer_files.config, _CONFIG_VALUES)
    class_name = tokenizer_files.config.get("tokenizer_class")
    if class_name and str(class_name).removesuffix("Fast") not in _CLASSES:
        expected = f"one of {', '.join(_CLASSES)}"
        refuse_field(path, "tokenizer_class", class_name, expected)
    for name, content in (
        (TOKENIZER_CONFIG, tokenizer_files.config),
        (SPECIAL_TOKENS_MAP, tokenizer_files.special),
    ):
        for field, expected in SPECIAL_NAMES.items():
            if content.get(field) is None:
                continue
            token = read_token(name, field, content[field])
            if token.content != expected:
                tokenizer_files.refuse(
                    name, field, token.content, repr(expected)
                )


def _check_whole(tokenizer_files: TokenizerFiles) -> None:
    """Check a tokenizer.json, except its vocabulary and added tokens."""
    path = os.path.join(tokenizer_files.folder, TOKENIZER)
    content = tokenizer_files.whole
    _check_values(path, content, _TOKENIZER_VALUES)
    if content.get("post_processor") is None:
        return
    if not _adds_electra_tokens(json_part(content, "post_processor")):
        shown = json.dumps(content["post_processor"], ensure_ascii=False)
        expected = "[CLS] A [SEP] and [CLS] A [SEP] B [SEP], segments 0 and 1"
        refuse_field(path, "post_processor", shown[:80], expected)


# Inputs that a post-processor must produce for one text and for a pair: each
# token or sequence (A, B) with its segment.
TEMPLATES = {
    "single": [("[CLS]", 0), ("A", 0), ("[SEP]", 0)],
    "pair": [("[CLS]", 0), ("A", 0), ("[SEP]", 0), ("B", 1), ("[SEP]", 1)],
}


def _adds_electra_tokens(processor: Mapping[str, Any]) -> bool:
    """Return whether a post-processor produces ELECTRA's inputs."""
    kind = processor.get("type")
    if kind == "BertProcessing":
        tokens = []
        for name in ("cls", "sep"):
            value = processor.get(name)
            if isinstance(value, list) and value:
                value = value[0]
            tokens.append(value)
        return tokens == ["[CLS]", "[SEP]"]
    if kind == "TemplateProcessing":
        return all(
            _template(processor.get(name)) == parts
            for name, parts in TEMPLATES.items()
        )
    return False


def _template(parts: Any) -> list[tuple[Any, Any]] | None:
    try:
        return [
            (piece["id"], piece["type_id"])
            for part in parts
            for piece in part.values()
        ]
    except (AttributeError, KeyError, TypeError):
        return None


def _merge_normalizers(
    tokenizer_files: TokenizerFiles,
) -> dict[str, bool | None]:
    """Return the normalization settings; reject files that differ in them."""
    config = tokenizer_files.config
    if not tokenizer_files.whole:
        if config.get("clean_text") is False:
            expected = (
                "true, because transformers ignores this field here. Set"
                f" clean_text in the normalizer of {TOKENIZER}"
            )
            tokenizer_files.refuse(
                TOKENIZER_CONFIG, "clean_text", False, expected
            )
        return {name: config.get(name) for name in _IN_NORMALIZER}
    stated: dict[str, bool | None] = {}
    for name, inner in _IN_NORMALIZER.items():
        value = tokenizer_files.normalizer.get(inner)
        if value is None and name != "strip_accents":
            value = True
        stated[name] = value
    for name, value in stated.items():
        effective, config_value = value, config.get(name)
        effective_config_value = config_value
        if name == "strip_accents":
            # In transformers, null means the value of do_lower_case.
            if value is None:
                effective = stated["do_lower_case"]
            if config_value is None and name in config:
                effective_config_value = stated["do_lower_case"]
        if effective_config_value not in (None, effective):
            raise UserError(
                f"{tokenizer_files.folder}: {name} is {show(config_value)} in"
                f" {TOKENIZER_CONFIG}, but normalizer.{_IN_NORMALIZER[name]} is"
                f" {show(value)} in {TOKENIZER}; expected equal values. Correct"
                " one of the files, or save the tokenizer again."
            )
    return stated


def _describes_words(
    tokenizer_files: TokenizerFiles, stated: Mapping[str, Any]
) -> bool:
    """Return whether the files describe only how a tagger splits words."""
    architectures = tokenizer_files.model.get("architectures") or [None]
    return (
        MARK in tokenizer_files.model
        and architectures[0] == "ElectraForTokenClassification"
        and stated.get("tokenize_chinese_chars") is False
    )


# The following functions read the vocabulary and other settings.


def _read_lines(path: str) -> list[str]:
    check_digest(path)
    lines = read_text(path).split("\n")
    return [line.strip() for line in (lines if lines[-1] else lines[:-1])]


def _model_vocab(path: str, content: Mapping[str, Any]) -> dict[str, int]:
    """Return the tokens and ids of a tokenizer.json's model, sorted by id."""
    vocab = json_part(content, "model").get("vocab")
    ids = sorted(vocab.values()) if isinstance(vocab, dict) and vocab else None
    if ids != list(range(len(ids or ()))):
        raise UserError(
            f"{path}: the ids in model.vocab are not consecutive; expected each"
            " number from 0 once. Save the tokenizer again."
        )
    return dict(sorted(vocab.items(), key=lambda item: item[1]))


def _read_vocabulary(
    tokenizer_files: TokenizerFiles, vocab_file: str | None
) -> dict[str, int] | None:
    """Return the vocabulary of a folder; reject two different vocabularies."""
    path = vocab_file or os.path.join(tokenizer_files.folder, VOCAB)
    tokenizer_path = os.path.join(tokenizer_files.folder, TOKENIZER)
    content = tokenizer_files.whole
    if not filesystem.exists(path):
        return _model_vocab(tokenizer_path, content) if content else None
    tokens = _read_lines(path)
    vocab: dict[str, int] = {}
    for number, token in enumerate(tokens):
        vocab.setdefault(token, number)
    if not content:
        return vocab
    model = _model_vocab(tokenizer_path, content)
    for number, token in enumerate(model):
        line = tokens[number] if number < len(tokens) else None
        if line != token.strip():
            raise UserError(
                f"{path}:{number + 1}: found {line!r}; expected {token!r}, the"
                f" token of id {number} in model.vocab of {tokenizer_path}."
                " Keep the file that the model was trained with, and delete the"
                " other file."
            )
    if len(tokens) > len(model):
        raise UserError(
            f"{path}:{len(model) + 1}: found {tokens[len(model)]!r}; expected"
            f" the end of the file, because model.vocab of {tokenizer_path}"
            " contains no further token. Keep the file that the model was"
            " trained with, and delete the other file."
        )
    return vocab


def _never_split(
    tokenizer_files: TokenizerFiles, vocab: Mapping[str, int]
) -> tuple[str, ...]:
    field = "never_split"
    entries = tokenizer_files.config.get(field) or []
    if not isinstance(entries, list) or not all(
        isinstance(entry, str) for entry in entries
    ):
        expected = "a list of tokens"
        tokenizer_files.refuse(TOKENIZER_CONFIG, field, entries, expected)
    for entry in entries:
        if entry not in vocab:
            expected = f"only tokens of {VOCAB}"
            tokenizer_files.refuse(TOKENIZER_CONFIG, field, entry, expected)
    return tuple(sorted(set(entries)))


def _read_native(
    tokenizer_files: TokenizerFiles, vocab_file: str | None
) -> TokenizerSettings:
    """Read the settings that this project wrote next to a vocabulary."""
    config, folder = tokenizer_files.config, tokenizer_files.folder
    path = os.path.join(folder, TOKENIZER_CONFIG)
    check_digest(path)
    _check_values(path, config, _CONFIG_VALUES)
    lower_case = config.get("do_lower_case")
    strip_accents = config.get("strip_accents")
    mark = config[MARK]
    characters = mark.get("characters") if isinstance(mark, dict) else None
    if characters == ORIGINAL:
        return TokenizerSettings(ORIGINAL, lower_case, strip_accents)
    if characters != LIBRARY:
        expected = f"characters {ORIGINAL!r} or {LIBRARY!r}"
        tokenizer_files.refuse(TOKENIZER_CONFIG, MARK, mark, expected)
    vocab = _read_vocabulary(tokenizer_files, vocab_file) or {}
    declared = declared_with_ids(tokenizer_files).get(TOKENIZER_CONFIG, [])
    return TokenizerSettings(
        LIBRARY,
        lower_case,
        strip_accents,
        config.get("clean_text") is not False,
        config.get("tokenize_chinese_chars") is not False,
        _word_length(folder, TOKENIZER_CONFIG, config),
        numbered_tokens(folder, declared, vocab),
        _never_split(tokenizer_files, vocab),
    )


def _word_length(folder: str, name: str, content: Mapping[str, Any]) -> int:
    """Return the maximum length of a word, in characters.

    Args:
      folder: folder of the file.
      name: name of the file, tokenizer.json or tokenizer_config.json.
      content: object with the field: that of the file, or `model` of
        tokenizer.json.
    """
    field = "max_input_chars_per_word"
    length = content.get(field, _DEFAULT_WORD_LENGTH)
    if type(length) is not int or not 1 <= length <= _LARGEST_WORD_LENGTH:
        label = f"model.{field}" if name == TOKENIZER else field
        expected = f"a number from 1 to {_LARGEST_WORD_LENGTH}"
        refuse_field(os.path.join(folder, name), label, length, expected)
    return length
