# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Casing of a vocabulary: `tokenizer_config.json` next to `vocab.txt`.

A vocabulary fits only text with the casing and accents of the text from which
the vocabulary was learned. The file has Hugging Face's name and fields, so that
transformers folders are read in the same way.
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
from electra_tf.text.settings_files import read_settings
from electra_tf.text.tokenizer_settings import MARK, ORIGINAL
from electra_tf.text.vocabulary import is_bpe

CASING_FILE = "tokenizer_config.json"
HPARAM_LABELS = {name: f"hparam {name}" for name in TOKENIZER_HPARAMS}


def casing_path(vocab_file: str) -> str:
    """Return the path of the file that contains a vocabulary's casing."""
    return os.path.join(os.path.dirname(vocab_file), CASING_FILE)


def read_casing(vocab_file: str) -> dict[str, bool]:
    """Read a vocabulary's casing from the files next to the vocabulary.

    The casing consists of `do_lower_case` and `strip_accents`. As in
    transformers, a `strip_accents` of null means the value of `do_lower_case`.
    In a tokenizer.json, the normalizer contains both values.
    The file of a byte-level BPE vocabulary defines the normalization itself.

    Returns:
      do_lower_case and strip_accents; {} if no file contains the values.

    Raises:
      UserError: a field is not a boolean, or accents are stripped without
        lower-casing, which the original's tokenizer does not support.
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
    if _library_file(vocab_file):
        # `read_settings` raises a UserError if the files disagree.
        settings = read_settings(vocab_file)
        stated = {name: getattr(settings, name) for name in TOKENIZER_HPARAMS}
    if set(stated.values()) == {None}:
        return {}
    lower = stated["do_lower_case"] is not False
    strip = stated["strip_accents"]
    is_original = (config.get(MARK) or {}).get("characters") == ORIGINAL
    if strip and not lower and is_original:
        raise UserError(
            f"{path}: strip_accents is true, but do_lower_case is false."
            " Accents are stripped only from lower-cased text. Set"
            " strip_accents to false."
        )
    return _casing(lower, lower if strip is None else strip)


def _library_file(vocab_file: str) -> str:
    """Return the path of the tokenizer.json next to a vocabulary, or ""."""
    path = os.path.join(os.path.dirname(vocab_file), TOKENIZER)
    return path if filesystem.exists(path) else ""


def _casing(lower: bool, strip: bool) -> dict[str, bool]:
    return dict(zip(TOKENIZER_HPARAMS, (lower, strip), strict=True))


def write_casing(
    vocab_file: str, do_lower_case: bool, strip_accents: bool
) -> str:
    """Write a vocabulary's casing to its casing file; return the file's path.

    The file is next to the vocabulary. An existing file keeps its other fields.
    """
    path = casing_path(vocab_file)
    # In a file without this mark, missing settings have the defaults of
    # transformers.
    config: dict[str, Any] = {MARK: {"version": 1, "characters": ORIGINAL}}
    if filesystem.exists(path):
        config = read_json(path)
    config |= _casing(do_lower_case, do_lower_case and strip_accents)
    write_atomically(path, json.dumps(config, indent=2) + "\n")
    return path


def resolve_casing(
    vocab_file: str,
    requested: Mapping[str, bool | None],
    labels: Mapping[str, str] = HPARAM_LABELS,
) -> dict[str, bool]:
    """Return the casing to use with a vocabulary.

    Args:
      vocab_file: path of the vocabulary.
      requested: values from flags, hparams or a model; None or absent: not
        specified.
      labels: for each value, the flag, hparam or file that contains it.

    Raises:
      UserError: a requested value contradicts the file next to the vocabulary.
    """
    stated = read_casing(vocab_file)
    path = _library_file(vocab_file) or casing_path(vocab_file)
    for name, value in stated.items():
        requested_value = requested.get(name)
        if requested_value is None or requested_value == value:
            continue
        if name == "strip_accents" and not stated["do_lower_case"]:
            continue  # Cased text always keeps its accents.
        raise UserError(
            f"{labels[name]} is {_json(requested_value)}, but {name} is"
            f" {_json(value)} in {path}, which describes the text from which"
            f" {vocab_file} was learned. Text with a different casing becomes"
            f" [UNK] or different tokens. Remove {labels[name]}, or use a"
            " different vocabulary."
        )
    defaults = stated or dict.fromkeys(TOKENIZER_HPARAMS, True)
    casing = {}
    for name in TOKENIZER_HPARAMS:
        requested_value = requested.get(name)
        if requested_value is None:
            requested_value = defaults[name]
        casing[name] = requested_value
    return casing


def _json(value: bool) -> str:
    return "true" if value else "false"


def with_vocab_casing(config: Config) -> Config:
    """Return a config with the casing of the config's vocabulary.

    Raises:
      UserError: an explicit hparam contradicts the file next to `vocab_file`.
    """
    requested = {
        name: getattr(config, name)
        for name in TOKENIZER_HPARAMS
        if config.is_explicit(name)
    }
    casing = resolve_casing(config.vocab_file, requested)
    changed = {
        name: value
        for name, value in casing.items()
        if value != getattr(config, name)
    }
    return config.with_values("vocabulary", changed) if changed else config
