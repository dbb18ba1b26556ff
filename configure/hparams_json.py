# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Value of --hparams: a JSON object, or the path of a JSON file."""

from typing import Any

from configure.errors import UserError
from configure.json_text import parse_json

_MAX_CHARACTERS = 2**26


def read_hparams(text_or_path: str, flag: str = "--hparams") -> dict[str, Any]:
    """Return the JSON object passed to `--hparams` or another flag.

    Source: google-research/electra, run_pretraining.py, main.
    """
    path = text_or_path.strip()
    if not path.endswith(".json"):
        return parse_json(text_or_path, flag)
    try:
        with open(path, encoding="utf-8-sig") as f:
            text = f.read(_MAX_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8."
        ) from None
    except OSError as error:
        raise UserError(
            f"{path}: the file passed to {flag} cannot be read:"
            f" {error.strerror}. Pass a readable JSON file."
        ) from None
    if len(text) > _MAX_CHARACTERS:
        raise UserError(
            f"{path}: the file passed to {flag} has more than"
            f" {_MAX_CHARACTERS:,} characters; expected a JSON object of"
            " settings. Pass another file."
        )
    return parse_json(text, path)
