# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vocabulary files: reading, checking and comparison.

A `vocab.txt` contains one token per line. The id of a token is the number of
lines before it. A `tokenizer.json` of byte-level BPE contains tokens with their
ids.

Source: google-research/electra, model/tokenization.py, for `load_vocab`.
"""

import hashlib
import itertools
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from configure.errors import UserError
from configure.formatting import join_names
from electra_tf.files.digests import check_digest, file_sha256
from electra_tf.files.json_files import read_json
from electra_tf.files.reading import read_text
from electra_tf.text.settings_files import read_settings
from electra_tf.text.tokenizer_settings import digest_of

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS


def load_wordpieces(path: str) -> dict[str, int]:
    """Return the wordpieces of a vocab.txt with their ids."""
    require_wordpiece(path, "the text input of exports and inspections")
    return {token: number for number, token in enumerate(_read_tokens(path))}


def load_vocab(path: str) -> dict[str, int]:
    """Read a vocabulary without checks, as the original does.

    Added tokens, which the files next to the vocabulary list, come last.
    """
    return read_settings(path).with_tokens(load_wordpieces(path))


def check_vocab(path: str, vocab_size: int | None = None) -> dict[str, int]:
    """Read and check a vocabulary.

    Args:
      path: a vocab.txt, or a tokenizer.json of byte-level BPE.
      vocab_size: number of rows in the model's token table; None: not checked.

    Raises:
      UserError: the file is corrupt, or contains more tokens than the model.
    """
    if is_bpe(path):
        vocab = read_bpe_vocab(path)
    else:
        vocab = check_tokens(path, _read_tokens(path))
        vocab = read_settings(path).with_tokens(vocab)
    if vocab_size is not None and len(vocab) > vocab_size:
        raise UserError(
            f"{path} contains {len(vocab)} tokens, but the model has"
            f" {vocab_size}. Pass --vocab_file with the vocabulary of the"
            f" model, or for a new model --vocab_size={len(vocab)}."
        )
    return vocab


def check_vocab_size(
    path: str, count: int, rows: int, implied_origin: str | None
) -> None:
    """Raise a UserError for unused token rows that no user requested.

    Args:
      path: path of the vocabulary.
      count: number of tokens in the vocabulary.
      rows: number of rows of the model's token table.
      implied_origin: origin of `rows`; None: the user chose `rows`.
    """
    if count < rows and implied_origin is not None:
        raise UserError(
            f"{path} contains {count} tokens, but vocab_size is"
            f" {rows} ({implied_origin}). Pass the model's --vocab_file, or"
            f" --vocab_size={count}; pass --vocab_size={rows} if the model has"
            " unused rows."
        )


def check_tokens(path: str, tokens: list[str]) -> dict[str, int]:
    """Return tokens with their ids; reject invalid or repeated tokens."""
    if not any(tokens):
        raise UserError(
            f"Vocabulary file {path} is empty; expected one token per line."
            " Copy the file again."
        )
    if blank := [n for n, token in enumerate(tokens, 1) if not token]:
        raise UserError(
            f"Vocabulary file {path} has {len(blank)} blank line(s):"
            f" {join_names(blank, 3)}. Every line counts as a token. Delete the"
            " blank lines, or write a token on each blank line to keep later"
            " ids."
        )
    if damaged := [n for n, token in enumerate(tokens, 1) if "\0" in token]:
        raise UserError(
            f"Vocabulary file {path} has zero bytes on {len(damaged)} line(s):"
            f" {join_names(damaged, 3)}; expected text. Copy the file again."
        )
    vocab: dict[str, int] = {}
    repeats = []
    for number, token in enumerate(tokens):
        if (first := vocab.setdefault(token, number)) != number:
            repeats.append(
                f"line {number + 1} repeats {token!r} of line {first + 1}"
            )
    if repeats:
        raise UserError(
            f"Vocabulary file {path} has {len(repeats)} duplicate token(s):"
            f" {join_names(repeats, 3)}. Expected one id for each token. Remove"
            " or rename the duplicates."
        )
    refuse_missing_specials(path, tokens)
    if tokens[0] != PAD:
        raise UserError(
            f"Vocabulary file {path}, line {tokens.index(PAD) + 1}: [PAD] must"
            " be the first line (id 0), because records are padded with 0; line"
            f" 1 is {tokens[0]!r}. Move [PAD] to line 1, or use a different"
            " vocabulary."
        )
    return vocab


def is_bpe(vocab_file: str | os.PathLike) -> bool:
    """Return whether a file name is that of a byte-level BPE vocabulary."""
    return os.fspath(vocab_file).endswith(".json")


def vocab_hash(path: str) -> str:
    """Return a hash of a vocabulary and its `distinctive` settings.

    Without such settings next to the file, the hash is the SHA-256 that
    `sha256sum` prints. The settings of plain transformers folders are not
    included, so that a plain copy has the same hash.
    """
    digest = _read(path, file_sha256)
    if settings := digest_of(read_settings(path).distinctive):
        return hashlib.sha256(f"{digest} {settings}".encode()).hexdigest()
    return digest


def refuse_other_vocab(path: str, known: str, owner: str) -> None:
    """Raise a UserError if a vocabulary differs from that of the model.

    Args:
      path: path of the vocabulary to check.
      known: path of the model's vocabulary.
      owner: name of the model in messages.
    """
    if is_bpe(path) or is_bpe(known):
        if vocab_hash(path) != vocab_hash(known):
            raise UserError(
                f"{path} differs from {known}, the vocabulary of {owner}. Pass"
                f" --vocab_file={known}."
            )
        return
    pairs = itertools.zip_longest(_read_tokens(path), _read_tokens(known))
    for number, (token, expected) in enumerate(pairs, 1):
        if token != expected:
            raise UserError(
                f"{path}:{number}: found {token!r}; expected {expected!r}, as"
                f" in {known}, the vocabulary of {owner}. Pass"
                f" --vocab_file={known}. If you replaced unused tokens on"
                f" purpose, replace {known}, too."
            )
    settings = read_settings(path).distinctive
    expected_settings = read_settings(known).distinctive
    for name in sorted({*settings, *expected_settings}):
        if settings.get(name) != expected_settings.get(name):
            raise UserError(
                f"{path}: the tokenizer's setting {name} differs from that of"
                f" {known}, the vocabulary of {owner}. Pass"
                f" --vocab_file={known}, or also copy the files next to it."
            )


def require_wordpiece(vocab_file: str, use: str) -> None:
    """Raise a UserError if a vocabulary is byte-level BPE."""
    if is_bpe(vocab_file):
        raise UserError(
            f"{vocab_file} is byte-level BPE, which only pre-training and tasks"
            f" on sentences support; {use} needs a WordPiece vocabulary. Pass"
            " --vocab_file with a vocab.txt."
        )


def _read_tokens(path: str) -> list[str]:
    # Only "\n" ends a line: `str.splitlines` would split tokens at other
    # characters and shift all later ids.
    lines = _read(path, read_text).split("\n")
    if not lines[-1]:
        lines.pop()
    return list(map(_token_of_line, lines))


def _token_of_line(line: str) -> str:
    """Return the token of a line.

    A line that contains only U+2028, as in Chinese vocabularies, is a token
    that no text contains; `str.strip` would make this token blank.
    """
    token = line.strip()
    if not token and "\u2028" in line:
        return "\u2028"
    return token


def _read(path: str, read: Callable[[str], Any]) -> Any:
    check_digest(os.fspath(path))
    try:
        return read(os.fspath(path))
    except UserError as error:
        problem = str(error).removesuffix(".")
        raise UserError(
            f"Vocabulary file {problem}. Pass a file such as vocab.txt with one"
            " token per line in UTF-8."
        ) from error


def refuse_missing_specials(path: str, tokens: Collection[str]) -> None:
    """Raise a UserError if a vocabulary lacks a special token."""
    if missing := [token for token in SPECIAL_TOKENS if token not in tokens]:
        hint = ""
        if next(iter(tokens), "").startswith("\ufeff"):
            hint = " Line 1 starts with a byte order mark; remove the mark."
        raise UserError(
            f"Vocabulary file {path} ({len(tokens)} lines) is missing"
            f" {', '.join(missing)}; expected {' '.join(SPECIAL_TOKENS)}, each"
            f" on a separate line. Add the missing tokens.{hint}"
        )


# Names of the special tokens in RoBERTa's vocabularies.
_ROBERTA_NAMES = {
    PAD: "<pad>",
    UNK: "<unk>",
    CLS: "<s>",
    SEP: "</s>",
    MASK: "<mask>",
}


def read_bpe_vocab(path: str) -> dict[str, int]:
    """Read the tokens and ids of a byte-level BPE file.

    Special tokens get their WordPiece names, regardless of their names in the
    file.
    """
    check_digest(path)
    content = read_json(path)
    check_tokenizer_types(content, path)
    model = content.get("model") or {}
    pre_tokenizer = content.get("pre_tokenizer") or {}
    parts = [pre_tokenizer, *(pre_tokenizer.get("pretokenizers") or ())]
    model_type = model.get("type")
    types = [part.get("type") for part in parts]
    if model_type != "BPE" or "ByteLevel" not in types:
        raise UserError(
            f"{path}: model.type is {model_type!r} and pre_tokenizer.type is"
            f" {join_names(types)}; expected 'BPE' and ByteLevel. For a"
            " WordPiece vocabulary, pass --vocab_file with the vocab.txt."
        )
    if dropout := model.get("dropout"):
        raise UserError(
            f"{path}: model.dropout is {dropout!r}, which makes the ids of a"
            " text random; expected null, because BPE-dropout is meant for"
            " training only. Set model.dropout to null."
        )
    return bpe_vocab(content, path, _ROBERTA_NAMES)


_REMEDY = "Copy the file again, or train the tokenizer again."


def check_tokenizer_types(content: Mapping[str, Any], path: str) -> None:
    """Raise a UserError if a part of a tokenizer.json has a wrong type.

    Only the parts that contain the vocabulary are checked.
    """

    def check(field: str, value: Any, kind: type, expected: str) -> Any:
        # A value of None means that the part is missing from the file; other
        # checks report missing parts.
        if value is None or (
            isinstance(value, kind) and not isinstance(value, bool)
        ):
            return value or kind()
        raise UserError(
            f"{path}: {field} is {str(value)[:60]!r}; expected {expected}."
            f" {_REMEDY}"
        )

    model = check("model", content.get("model"), dict, "an object")
    vocab = check("model.vocab", model.get("vocab"), dict, "an object")
    for token, number in vocab.items():
        check(f"the id of {token!r}", number or 0, int, "an integer")
        if number is None:
            raise UserError(f"{path}: token {token!r} has no id. {_REMEDY}")
    pre_tokenizer = content.get("pre_tokenizer")
    pre_tokenizer = check("pre_tokenizer", pre_tokenizer, dict, "an object")
    field, parts = "pretokenizers", pre_tokenizer.get("pretokenizers")
    for part in check(field, parts, list, "a list"):
        check(f"a part of {field}", part, dict, "an object")
    field = "added_tokens"
    for token in check(field, content.get(field), list, "a list"):
        check(f"one of {field}", token, dict, "an object")
        for name, kind in (("content", str), ("id", int)):
            value = token.get(name) if token else None
            if value is None:
                raise UserError(
                    f"{path}: {field}: {str(token)[:60]!r} has no {name}."
                    f" {_REMEDY}"
                )
            check(f"{field}: {name}", value, kind, f"{kind.__name__}")


def bpe_vocab(
    content: Mapping[str, Any], path: str, alternatives: Mapping[str, str]
) -> dict[str, int]:
    """Return the tokens of a tokenizer.json, ordered by their ids.

    Args:
      content: JSON object of the file.
      path: path of the file, for messages.
      alternatives: required tokens, each with an alternative name.
    """
    vocab = dict((content.get("model") or {}).get("vocab") or {})
    added = content.get("added_tokens") or ()
    vocab |= {token["content"]: token["id"] for token in added}
    for name, alternative in alternatives.items():
        if name not in vocab and alternative in vocab:
            vocab[name] = vocab.pop(alternative)
    if missing := [name for name in alternatives if name not in vocab]:
        names = [f"{name} (or {alternatives[name]})" for name in missing]
        raise UserError(
            f"{path} ({len(vocab)} tokens) is missing {', '.join(names)}. Train"
            " the tokenizer with these special tokens."
        )
    tokens = sorted(vocab, key=vocab.__getitem__)
    if [vocab[token] for token in tokens] != list(range(len(tokens))):
        raise UserError(
            f"{path}: the vocabulary's ids are not consecutive; expected each"
            " number from 0 once. Train the tokenizer again."
        )
    return {token: number for number, token in enumerate(tokens)}
