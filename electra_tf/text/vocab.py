# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vocabulary files: one token per line, its id the number of lines before it.

`load_vocab` reads any file as the original does. `check_vocab` also refuses
the files that would only fail, or silently spoil a run, much later.
"""

import hashlib
import os
from collections.abc import Mapping

from configure.errors import UserError, listed

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
)

# A message names this many of the offending lines, and counts the others.


def load_vocab(path: str) -> dict[str, int]:
    """Reads a vocabulary as the original does, whatever is in it.

    Source:
      model/tokenization.py `load_vocab`.
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
    _refuse_missing_specials(path, tokens)
    return {token: number for number, token in enumerate(tokens)}


def invert_vocab(vocab: Mapping[str, int]) -> dict[int, str]:
    """Turns a vocabulary round."""
    return {number: token for token, number in vocab.items()}


def vocab_hash(path: str) -> str:
    """Tells vocabularies apart.

    Returns:
      The SHA-256 of the file's bytes, 64 hexadecimal digits, as `sha256sum`
      prints it.
    """
    return hashlib.sha256(_read_bytes(path)).hexdigest()


def _read_tokens(path: str) -> list[str]:
    content = _read_bytes(path)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"Vocabulary file {path}, line {line}: byte {error.start} of the"
            " file is not UTF-8. Expected a text file in UTF-8; is this one a"
            " vocabulary?"
        ) from None
    # Only "\n" ends a line: `str.splitlines` would break tokens apart at other
    # characters, and shift all ids after them.
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.strip() for line in lines]


def _read_bytes(path: str) -> bytes:
    path = os.fspath(path)
    if "://" in path:
        return _read_remote(path)
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        reason = "does not exist"
    except IsADirectoryError:
        reason = "is a directory; name the file in it, such as vocab.txt"
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    raise UserError(f"Vocabulary file {path!r} {reason}.")


def _read_remote(path: str) -> bytes:
    # Imported here because it takes seconds, and local files do not need it.
    import tensorflow as tf

    try:
        with tf.io.gfile.GFile(path, "rb") as file:
            return file.read()
    except tf.errors.OpError as error:
        raise UserError(
            f"Vocabulary file {path!r} cannot be read: {error.message}"
        ) from None


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


def _refuse_missing_specials(path: str, tokens: list[str]) -> None:
    missing = [token for token in SPECIAL_TOKENS if token not in tokens]
    if missing:
        hint = ""
        if tokens[0].startswith("\ufeff"):
            hint = " Line 1 starts with a byte order mark; remove it."
        raise UserError(
            f"Vocabulary file {path} ({len(tokens)} lines) lacks"
            f" {', '.join(missing)}. A WordPiece vocabulary must hold"
            f" {' '.join(SPECIAL_TOKENS)}, each on a line of its own.{hint}"
        )
    if tokens[0] != PAD:
        raise UserError(
            f"Vocabulary file {path}, line {tokens.index(PAD) + 1}: [PAD] must"
            f" be the first line (id 0), because records are padded with 0;"
            f" line 1 is {tokens[0]!r}."
        )
