# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vocabulary files: one token per line, its id the number of lines before it.

`load_vocab` reads any file as the original does. `check_vocab` also refuses
the files that would only fail, or silently spoil a run, much later.
"""

import hashlib
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from configure.errors import UserError, listed
from electra_tf import files

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
)


def load_vocab(path: str) -> dict[str, int]:
    """Reads a vocabulary as the original does, whatever is in it.

    Source: model/tokenization.py `load_vocab`.
    """
    return {token: number for number, token in enumerate(_read_tokens(path))}


def check_vocab(path: str) -> dict[str, int]:
    """Reads a vocabulary and refuses one that cannot serve."""
    tokens = _read_tokens(path)
    if not any(tokens):
        raise UserError(
            f"Vocabulary file {path} is empty. Expected one token per line."
        )
    _refuse_blank_lines(path, tokens)
    _refuse_duplicates(path, tokens)
    refuse_missing_specials(path, tokens)
    if tokens[0] != PAD:
        raise UserError(
            f"Vocabulary file {path}, line {tokens.index(PAD) + 1}: [PAD] must"
            f" be the first line (id 0), because records are padded with 0;"
            f" line 1 is {tokens[0]!r}."
        )
    return {token: number for number, token in enumerate(tokens)}


def invert_vocab(vocab: Mapping[str, int]) -> dict[int, str]:
    """Turns a vocabulary round."""
    return {number: token for token, number in vocab.items()}


def vocab_hash(path: str) -> str:
    """The SHA-256 of the file's bytes, as `sha256sum` prints it."""
    return hashlib.sha256(_read(path, files.read_bytes)).hexdigest()


def _read_tokens(path: str) -> list[str]:
    text = _read(path, files.read_text)
    # Only "\n" ends a line: `str.splitlines` would break tokens apart at other
    # characters, and shift all ids after them.
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.strip() for line in lines]


def _read(path: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(os.fspath(path))
    except UserError as error:
        raise UserError(
            f"Vocabulary file {error}. Expected a file such as vocab.txt, one"
            " token per line, in UTF-8."
        ) from error


def _refuse_blank_lines(path: str, tokens: list[str]) -> None:
    blank = [line for line, token in enumerate(tokens, 1) if not token]
    if blank:
        raise UserError(
            f"Vocabulary file {path} has {len(blank)} blank line(s):"
            f" {listed(blank, 3)}. Every line counts as a token; delete"
            " blank lines, or put a token on them if ids after them must stay."
        )


def _refuse_duplicates(path: str, tokens: list[str]) -> None:
    first_lines: dict[str, int] = {}
    repeats = []
    for line, token in enumerate(tokens, 1):
        first = first_lines.setdefault(token, line)
        if first != line:
            repeats.append(f"line {line} repeats {token!r} of line {first}")
    if repeats:
        raise UserError(
            f"Vocabulary file {path} has {len(repeats)} duplicate token(s):"
            f" {listed(repeats, 3)}. Each token must have one id; remove or"
            " rename the repeats."
        )


def refuse_missing_specials(path: str, tokens: Collection[str]) -> None:
    """Raises unless all special tokens are there."""
    missing = [token for token in SPECIAL_TOKENS if token not in tokens]
    if missing:
        hint = ""
        if next(iter(tokens), "").startswith("\ufeff"):
            hint = " Line 1 starts with a byte order mark; remove it."
        raise UserError(
            f"Vocabulary file {path} ({len(tokens)} lines) lacks"
            f" {', '.join(missing)}. A WordPiece vocabulary must hold"
            f" {' '.join(SPECIAL_TOKENS)}, each on a line of its own.{hint}"
        )
