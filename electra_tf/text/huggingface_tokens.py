# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Added tokens of Hugging Face folders, and the files that declare tokens.

Source: transformers 5 `TokenizersBackend`; tokenizers 0.23 `AddedVocabulary`.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from configure.errors import UserError
from electra_tf.files import filesystem
from electra_tf.files.json_files import read_json
from electra_tf.text.tokenizer_settings import TOKENIZER_CONFIG, AddedToken

TOKENIZER = "tokenizer.json"
SPECIAL_TOKENS_MAP = "special_tokens_map.json"
ADDED_TOKENS = "added_tokens.json"
CONFIG = "config.json"
VOCAB = "vocab.txt"
# Special tokens of ELECTRA's inputs, by the names of transformers' fields.
SPECIAL_NAMES = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
_EXTRA_TOKENS = ("additional_special_tokens", "extra_special_tokens")


class TokenizerFiles:
    """Contents of a folder's tokenizer files; {} for a missing file."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.config = self._read(TOKENIZER_CONFIG)
        self.whole = self._read(TOKENIZER)
        self.special = self._read(SPECIAL_TOKENS_MAP)
        self.added = self._read(ADDED_TOKENS)
        self.model = self._read(CONFIG)

    def _read(self, name: str) -> dict[str, Any]:
        path = os.path.join(self.folder, name)
        return read_json(path) if filesystem.exists(path) else {}

    def refuse(self, name: str, field: str, value: Any, expected: str) -> None:
        """Raise a UserError about a field in a file of the folder."""
        refuse_field(os.path.join(self.folder, name), field, value, expected)

    @property
    def normalizer(self) -> Mapping[str, Any]:
        """The `normalizer` object of tokenizer.json."""
        return json_part(self.whole, "normalizer")


def refuse_field(path: str, field: str, value: Any, expected: str) -> NoReturn:
    """Raise a UserError about a field with an unsupported value."""
    raise UserError(
        f"{path}: {field} is {show(value)}; expected {expected}. Correct the"
        " tokenizer's files, or remove these files to read only the weights."
    )


def show(value: Any) -> str:
    """Format a boolean as in JSON, and other values as in Python."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def json_part(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object in a field of a JSON object; {} for other values.

    For a Sequence with a single part, return that part.
    """
    part = content.get(name)
    for inner in ("normalizers", "pretokenizers", "processors"):
        if isinstance(part, dict) and part.get("type") == "Sequence":
            parts = part.get(inner)
            if isinstance(parts, list) and len(parts) == 1:
                part = parts[0]
    return part if isinstance(part, dict) else {}


class _Token(NamedTuple):
    """A token that a file declares."""

    where: str  # file and field, for messages
    content: str
    flags: Mapping[str, Any]  # flags that the file contains
    id: int | None = None  # None: next free id


def read_token(name: str, field: str, value: Any) -> _Token:
    """Read a token from a string, or from an object with flags."""
    where = f"{name}: {field}"
    if isinstance(value, str):
        return _Token(where, value, {})
    if not isinstance(value, dict) or not isinstance(value.get("content"), str):
        raise UserError(
            f"{where} is {value!r}; expected a string, or an object whose field"
            " content is a string. Correct the file."
        )
    return _Token(where, value["content"], value)


def _special_tokens(name: str, content: Mapping[str, Any]) -> list[_Token]:
    """Return the special tokens of a file, in transformers' order."""
    tokens = [
        read_token(name, field, value)
        for field, value in content.items()
        if field.endswith("_token") and isinstance(value, str | dict)
    ]
    for field in _EXTRA_TOKENS:
        values = content.get(field) or ()
        if isinstance(values, dict):
            values = list(values.values())
        elif not isinstance(values, Sequence) or isinstance(values, str):
            raise UserError(
                f"{name}: {field} is {values!r}; expected a list of tokens."
                " Correct the file."
            )
        tokens += [read_token(name, field, value) for value in values]
    return tokens


def _numbered(where: str, number: Any, token: _Token) -> _Token:
    try:
        return token._replace(id=int(number))
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{where}: the id of {token.content!r} is {number!r}; expected a"
            " whole number. Correct the file."
        ) from error


def declared_with_ids(
    tokenizer_files: TokenizerFiles,
) -> dict[str, list[_Token]]:
    """Return the tokens that files declare with ids, by file name."""
    lists: dict[str, list[_Token]] = {}
    if tokenizer_files.whole:
        lists[TOKENIZER] = tokens = []
        for value in tokenizer_files.whole.get("added_tokens") or ():
            token = read_token(TOKENIZER, "added_tokens", value)
            tokens.append(_numbered(TOKENIZER, token.flags.get("id"), token))
    field = "added_tokens_decoder"
    if decoder := tokenizer_files.config.get(field):
        lists[TOKENIZER_CONFIG] = tokens = []
        for number, value in decoder.items():
            token = read_token(TOKENIZER_CONFIG, field, value)
            tokens.append(_numbered(TOKENIZER_CONFIG, number, token))
    if tokenizer_files.added:
        lists[ADDED_TOKENS] = [
            _numbered(ADDED_TOKENS, number, _Token(ADDED_TOKENS, content, {}))
            for content, number in tokenizer_files.added.items()
        ]
    return lists


def added_tokens(
    tokenizer_files: TokenizerFiles, vocab: Mapping[str, int]
) -> tuple[AddedToken, ...]:
    """Return the tokens to search for in texts, ordered by id."""
    special = [
        *_special_tokens(TOKENIZER_CONFIG, tokenizer_files.config),
        *_special_tokens(SPECIAL_TOKENS_MAP, tokenizer_files.special),
    ]
    _refuse_different_extras(tokenizer_files)
    lists = declared_with_ids(tokenizer_files)
    first = next(iter(lists), None)
    declared = {t.content: t for t in sorted(lists.pop(first, ()), key=_id)}
    names = {token.content for token in special}
    if first == ADDED_TOKENS:
        declared = {
            content: token._replace(
                flags={"special": content in names, "lstrip": False}
            )
            for content, token in declared.items()
        }
    for name, tokens in lists.items():
        _refuse_contradictions(
            tokenizer_files.folder, first, declared, name, tokens
        )
    for token in special:
        if first == TOKENIZER and token.content not in declared:
            raise UserError(
                f"{tokenizer_files.folder}: {token.where} contains"
                f" {token.content!r}; expected this token in added_tokens of"
                f" {TOKENIZER}, too. Save the tokenizer again, or delete"
                f" {TOKENIZER}."
            )
        flags = {**token.flags, "special": True}
        declared.setdefault(token.content, token._replace(flags=flags))
    if not tokenizer_files.whole:
        for name, content in SPECIAL_NAMES.items():
            where = f"{TOKENIZER_CONFIG}: {name}"
            token = _Token(where, content, {"special": True})
            declared.setdefault(content, token)
    return numbered_tokens(tokenizer_files.folder, declared.values(), vocab)


def _id(token: _Token) -> int:
    return token.id


def _extra_tokens(name: str, content: Mapping[str, Any]) -> set[str]:
    """Return the additional special tokens of a file."""
    return {
        token.content
        for token in _special_tokens(name, content)
        if token.where.endswith(_EXTRA_TOKENS)
    }


def _refuse_different_extras(tokenizer_files: TokenizerFiles) -> None:
    """Raise a UserError if two files list different additional tokens."""
    in_config = _extra_tokens(TOKENIZER_CONFIG, tokenizer_files.config)
    in_map = _extra_tokens(SPECIAL_TOKENS_MAP, tokenizer_files.special)
    if in_config and in_map and in_config != in_map:
        raise UserError(
            f"{tokenizer_files.folder}: additional_special_tokens are"
            f" {', '.join(sorted(in_config))} in {TOKENIZER_CONFIG}, but"
            f" {', '.join(sorted(in_map))} in {SPECIAL_TOKENS_MAP}; expected"
            " equal lists. Correct one of the files, or save the tokenizer"
            " again."
        )


def _refuse_contradictions(
    folder: str,
    first: str,
    declared: Mapping[str, _Token],
    name: str,
    tokens: Iterable[_Token],
) -> None:
    """Raise a UserError if the tokens of two files contradict each other."""
    for token in tokens:
        content = token.content
        known = declared.get(content)
        if known is None:
            difference = f"{first} lacks the added token {content!r} of {name}"
        elif known.id != token.id:
            difference = (
                f"the id of the added token {content!r} is {token.id} in"
                f" {name}, but {known.id} in {first}"
            )
        elif name != ADDED_TOKENS and (flag := _differing_flag(known, token)):
            difference = (
                f"the flag {flag} of the added token {content!r} is"
                f" {show(token.flags.get(flag))} in {name}, but"
                f" {show(known.flags.get(flag))} in {first}"
            )
        else:
            continue
        raise UserError(
            f"{folder}: {difference}. Correct one of the files, or save the"
            " tokenizer again."
        )


def _differing_flag(first: _Token, second: _Token) -> str:
    """Return the first flag that affects matching and differs, or ""."""
    for flag in ("normalized", "single_word"):
        if bool(first.flags.get(flag)) != bool(second.flags.get(flag)):
            return flag
    return ""


def numbered_tokens(
    folder: str, declared: Iterable[_Token], vocab: Mapping[str, int]
) -> tuple[AddedToken, ...]:
    """Return each token with its id in the vocabulary, or the next free id."""
    tokens, next_id = [], len(vocab)
    for token in declared:
        path = os.path.join(folder, token.where)
        content, flags = token.content, token.flags
        if not content or content != content.strip():
            raise UserError(
                f"{path}: the added token is {content!r}; expected a text that"
                " neither begins nor ends with white space. Delete the token."
            )
        if flags.get("single_word"):
            raise UserError(
                f"{path}: single_word of {content!r} is true; expected false."
                " Save the tokenizer without single_word."
            )
        is_in_vocab = content in vocab
        token_id = vocab.get(content, next_id)
        if token.id not in (None, token_id):
            reason = "because ids must be consecutive"
            if is_in_vocab:
                reason = f"as in {VOCAB}"
            raise UserError(
                f"{path}: {content!r} has id {token.id}; expected {token_id},"
                f" {reason}. Save the tokenizer again."
            )
        if not is_in_vocab:
            next_id += 1
        special = bool(flags.get("special", False))
        tokens.append(
            AddedToken(
                content,
                token_id,
                special,
                bool(flags.get("normalized", not special)),
                bool(flags.get("lstrip", False)),
                bool(flags.get("rstrip", False)),
            )
        )
    return tuple(sorted(tokens, key=lambda token: token.id))
