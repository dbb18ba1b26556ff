# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The casing of a vocabulary: `tokenizer_config.json` beside `vocab.txt`.

A vocabulary serves only text that is lower-cased, and stripped of accents, as
the text it was learned from. The file has Hugging Face's name and fields, so
that a folder of transformers states its casing, too.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

from configure.config import TOKENIZER_HPARAMS, Config
from configure.errors import UserError
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import read_json
from electra_tf.text.huggingface_tokens import TOKENIZER
from electra_tf.text.tokenization import is_bpe
from electra_tf.text.tokenizer_settings import MARK, ORIGINAL, read_settings

CASING_FILE = "tokenizer_config.json"
HPARAM_LABELS = {name: f"hparam {name}" for name in TOKENIZER_HPARAMS}


def casing_path(vocab_file: str) -> str:
    """Return the path of the file that states a vocabulary's casing."""
    return os.path.join(os.path.dirname(vocab_file), CASING_FILE)


def read_casing(vocab_file: str) -> dict[str, bool]:
    """Read `do_lower_case` and `strip_accents` beside a vocabulary.

    Both are returned, or neither if no file states them. As in transformers,
    `strip_accents` null means: as lower-casing. A tokenizer.json states them
    in its normalizer. Byte-level BPE states its normalization in the
    vocabulary itself.

    Raises:
      UserError: a field is no boolean, or accents are stripped without
        lower-casing, which the original's tokenizer does not do.
    """
    if not vocab_file or is_bpe(vocab_file):
        return {}
    path = casing_path(vocab_file)
    config = read_json(path) if filesystem.exists(path) else {}
    stated = {name: config.get(name) for name in TOKENIZER_HPARAMS}
    for name, value in stated.items():
        if value is not None and not isinstance(value, bool):
            raise UserError(
                f"{path}: {name} is {value!r}; expected true or false."
                " Correct the file."
            )
    if _whole_tokenizer(vocab_file):
        settings = read_settings(vocab_file)  # The files agree, or it raises.
        stated = {name: getattr(settings, name) for name in TOKENIZER_HPARAMS}
    if set(stated.values()) == {None}:
        return {}
    lower = stated["do_lower_case"] is not False
    strip = stated["strip_accents"]
    is_original = (config.get(MARK) or {}).get("characters") == ORIGINAL
    if strip and not lower and is_original:
        raise UserError(
            f"{path}: strip_accents is true, but do_lower_case is false;"
            " accents are stripped only from lower-cased text. Set"
            " strip_accents to false."
        )
    return _casing(lower, lower if strip is None else strip)


def _whole_tokenizer(vocab_file: str) -> str:
    """Return the path of the tokenizer.json beside a vocabulary, or ""."""
    path = os.path.join(os.path.dirname(vocab_file), TOKENIZER)
    return path if filesystem.exists(path) else ""


def _casing(lower: bool, strip: bool) -> dict[str, bool]:
    return dict(zip(TOKENIZER_HPARAMS, (lower, strip), strict=True))


def write_casing(
    vocab_file: str, do_lower_case: bool, strip_accents: bool
) -> str:
    """Write a vocabulary's casing beside it; return the file's path.

    Other fields of a file that is there already stay as they are.
    """
    path = casing_path(vocab_file)
    # Without the mark other settings would be transformers' defaults.
    config: dict[str, Any] = {MARK: {"version": 1, "characters": ORIGINAL}}
    if filesystem.exists(path):
        config = read_json(path)
    config |= _casing(do_lower_case, do_lower_case and strip_accents)
    write_atomically(path, json.dumps(config, indent=2) + "\n")
    return path


def resolve_casing(
    vocab_file: str,
    given: Mapping[str, bool | None],
    labels: Mapping[str, str] = HPARAM_LABELS,
) -> dict[str, bool]:
    """Return the casing to use with a vocabulary.

    Args:
      vocab_file: its path.
      given: the values that somebody stated; None or absent: not stated.
      labels: for each value the flag, hparam or file that states it.

    Raises:
      UserError: a given value contradicts the file beside the vocabulary.
    """
    stated = read_casing(vocab_file)
    path = _whole_tokenizer(vocab_file) or casing_path(vocab_file)
    for name, value in stated.items():
        other = given.get(name)
        if other is None or other == value:
            continue
        if name == "strip_accents" and not stated["do_lower_case"]:
            continue  # No effect: accents stay wherever case does.
        raise UserError(
            f"{labels[name]} is {_json(other)}, but"
            f" {path} states {name} {_json(value)}:"
            f" {vocab_file} was built from such text, and other text becomes"
            f" [UNK] or other tokens. Leave {labels[name]} out, or use a"
            " vocabulary built with it."
        )
    default = stated or dict.fromkeys(TOKENIZER_HPARAMS, True)
    chosen = {name: given.get(name) for name in TOKENIZER_HPARAMS}
    return {
        name: default[name] if value is None else value
        for name, value in chosen.items()
    }


def _json(value: bool) -> str:
    return "true" if value else "false"


def with_vocab_casing(config: Config) -> Config:
    """Return a config whose casing is that of its vocabulary.

    Raises:
      UserError: a stated hparam contradicts the file beside `vocab_file`.
    """
    given = {
        name: getattr(config, name)
        for name in TOKENIZER_HPARAMS
        if config.is_stated(name)
    }
    casing = resolve_casing(config.vocab_file, given)
    changed = {n: v for n, v in casing.items() if v != getattr(config, n)}
    return config.with_values("vocabulary", changed) if changed else config
