# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Added tokens of Hugging Face folders, and the files that declare them.

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
# The tokens that ELECTRA's inputs are made of, by the names of transformers.
SPECIAL_NAMES = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
_EXTRA_TOKENS = ("additional_special_tokens", "extra_special_tokens")


class TokenizerFiles:
    """The files of one folder; those that are missing are empty."""

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
        """Raise a UserError about one field of one file."""
        refuse_field(os.path.join(self.folder, name), field, value, expected)

    @property
    def normalizer(self) -> Mapping[str, Any]:
        return json_part(self.whole, "normalizer")


def refuse_field(path: str, field: str, value: Any, expected: str) -> NoReturn:
    """Raise a UserError about a field that cannot be followed."""
    raise UserError(
        f"{path}: {field} is {show(value)}; expected {expected}. Correct the"
        " tokenizer's files, or leave them out to read the weights alone."
    )


def show(value: Any) -> str:
    """Return a value as JSON writes it, strings in Python's quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def json_part(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object inside another; a sequence of one counts as that one."""
    part = content.get(name)
    for inner in ("normalizers", "pretokenizers", "processors"):
        if isinstance(part, dict) and part.get("type") == "Sequence":
            parts = part.get(inner)
            if isinstance(parts, list) and len(parts) == 1:
                part = parts[0]
    return part if isinstance(part, dict) else {}


class _Token(NamedTuple):
    """A token as a file declares it."""

    where: str  # file and field
    content: str
    flags: Mapping[str, Any]  # those stated
    id: int | None = None  # None: the next one


def read_token(name: str, field: str, value: Any) -> _Token:
    """Read a token that is a text or an object with its flags."""
    where = f"{name}: {field}"
    if isinstance(value, str):
        return _Token(where, value, {})
    if not isinstance(value, dict) or not isinstance(value.get("content"), str):
        raise UserError(
            f"{where} is {value!r}; expected a token, or an object with its"
            " content. Correct it."
        )
    return _Token(where, value["content"], value)


def _special_tokens(name: str, content: Mapping[str, Any]) -> list[_Token]:
    """Return the special tokens of one file, in the order of transformers."""
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
                " Correct it."
            )
        tokens += [read_token(name, field, value) for value in values]
    return tokens


def _numbered(where: str, number: Any, token: _Token) -> _Token:
    try:
        return token._replace(id=int(number))
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{where}: id {number!r} of {token.content!r} is no number."
            " Correct it."
        ) from error


def declared_with_ids(found: TokenizerFiles) -> dict[str, list[_Token]]:
    """Return the tokens of each file that states ids."""
    lists: dict[str, list[_Token]] = {}
    if found.whole:
        field = "added_tokens"
        lists[TOKENIZER] = [
            _numbered(TOKENIZER, t.flags.get("id"), t)
            for value in found.whole.get(field) or ()
            for t in (read_token(TOKENIZER, field, value),)
        ]
    if decoder := found.config.get("added_tokens_decoder"):
        field = "added_tokens_decoder"
        lists[TOKENIZER_CONFIG] = [
            _numbered(TOKENIZER_CONFIG, number, t)
            for number, value in decoder.items()
            for t in (read_token(TOKENIZER_CONFIG, field, value),)
        ]
    if found.added:
        lists[ADDED_TOKENS] = [
            _numbered(ADDED_TOKENS, number, _Token(ADDED_TOKENS, content, {}))
            for content, number in found.added.items()
        ]
    return lists


def added_tokens(
    found: TokenizerFiles, vocab: Mapping[str, int]
) -> tuple[AddedToken, ...]:
    """Return the tokens that are looked for in the text, ordered by id."""
    special = [
        *_special_tokens(TOKENIZER_CONFIG, found.config),
        *_special_tokens(SPECIAL_TOKENS_MAP, found.special),
    ]
    _refuse_other_extras(found)
    lists = declared_with_ids(found)
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
        _refuse_contradictions(found, first, declared, name, tokens)
    for token in special:
        if first == TOKENIZER and token.content not in declared:
            raise UserError(
                f"{found.folder}: {token.where} has {token.content!r}, which"
                f" added_tokens of {TOKENIZER} lacks. Save the tokenizer again,"
                f" or delete {TOKENIZER}."
            )
        flags = {**token.flags, "special": True}
        declared.setdefault(token.content, token._replace(flags=flags))
    if not found.whole:
        for name, content in SPECIAL_NAMES.items():
            where = f"{TOKENIZER_CONFIG}: {name}"
            token = _Token(where, content, {"special": True})
            declared.setdefault(content, token)
    return numbered_tokens(found, declared.values(), vocab)


def _id(token: _Token) -> int:
    return token.id


def _refuse_other_extras(found: TokenizerFiles) -> None:
    """Refuse two files that list different additional special tokens."""
    one, two = (
        {
            token.content
            for token in _special_tokens(name, content)
            if token.where.endswith(_EXTRA_TOKENS)
        }
        for name, content in (
            (TOKENIZER_CONFIG, found.config),
            (SPECIAL_TOKENS_MAP, found.special),
        )
    )
    if one and two and one != two:
        raise UserError(
            f"{found.folder}: additional_special_tokens are"
            f" {', '.join(sorted(one))} in {TOKENIZER_CONFIG}, but"
            f" {', '.join(sorted(two))} in {SPECIAL_TOKENS_MAP}. Correct one"
            " of them, or save the tokenizer again."
        )


def _refuse_contradictions(
    found: TokenizerFiles,
    first: str,
    declared: Mapping[str, _Token],
    name: str,
    tokens: Iterable[_Token],
) -> None:
    """Refuse tokens of a second file that the first one has otherwise."""
    for token in tokens:
        known = declared.get(token.content)
        if known is None:
            differing = f"which {first} lacks"
        elif known.id != token.id:
            differing = f"with id {token.id}; in {first} its id is {known.id}"
        elif name != ADDED_TOKENS and (flag := _differing_flag(known, token)):
            differing = (
                f"whose {flag} is {show(token.flags.get(flag))}; in {first} it"
                f" is {show(known.flags.get(flag))}"
            )
        else:
            continue
        raise UserError(
            f"{found.folder}: {name} has the added token {token.content!r},"
            f" {differing}. Correct one of them, or save the tokenizer again."
        )


def _differing_flag(one: _Token, two: _Token) -> str:
    """Return a flag that decides where two tokens match and differs."""
    for flag in ("normalized", "single_word"):
        if bool(one.flags.get(flag)) != bool(two.flags.get(flag)):
            return flag
    return ""


def numbered_tokens(
    found: TokenizerFiles, declared: Iterable[_Token], vocab: Mapping[str, int]
) -> tuple[AddedToken, ...]:
    """Give tokens their ids: those of the vocabulary, else the next ones."""
    tokens, following = [], len(vocab)
    for token in declared:
        path = os.path.join(found.folder, token.where)
        content, flags = token.content, token.flags
        if not content or content != content.strip():
            raise UserError(
                f"{path}: {content!r} is empty, or begins or ends with white"
                " space; such a token is not supported. Delete it."
            )
        if flags.get("single_word"):
            raise UserError(
                f"{path}: single_word of {content!r} is true; expected false."
                " Save the tokenizer without it."
            )
        number = vocab.get(content, following)
        if token.id not in (None, number):
            known = content in vocab
            reason = f"as in {VOCAB}" if known else "since ids have no gaps"
            raise UserError(
                f"{path}: {content!r} has id {token.id}; expected {number},"
                f" {reason}. Save the tokenizer again."
            )
        following += content not in vocab
        special = bool(flags.get("special", False))
        tokens.append(
            AddedToken(
                content,
                number,
                special,
                bool(flags.get("normalized", not special)),
                bool(flags.get("lstrip", False)),
                bool(flags.get("rstrip", False)),
            )
        )
    return tuple(sorted(tokens, key=lambda token: token.id))
