# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The value of --hparams: a JSON object, or the path of a JSON file."""

from typing import Any

from configure.errors import UserError
from configure.json_text import parse_json

_MAX_CHARACTERS = 2**26


def read_hparams(text_or_path: str, flag: str = "--hparams") -> dict[str, Any]:
    """Return the object of `--hparams`, or of another flag that takes JSON.

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
            f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None
    except OSError as error:
        raise UserError(
            f"{path}: the file of {flag} cannot be read: {error.strerror}"
        ) from None
    if len(text) > _MAX_CHARACTERS:
        raise UserError(
            f"{path}: the file of {flag} has more than {_MAX_CHARACTERS:,}"
            " characters; expected an object of settings."
        )
    return parse_json(text, path)
