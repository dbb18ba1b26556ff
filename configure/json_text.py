# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""JSON that people write, from the command line or a file."""

import collections
import json
from collections.abc import Sequence
from typing import Any

from configure.errors import UserError

# Of JSON that people write; hparams have three levels.
_MAX_DEPTH = 100
_MAX_CHARACTERS = 2**26


def read_hparams(text_or_path: str, flag: str = "--hparams") -> dict[str, Any]:
    """Reads the value of `--hparams`, or of another flag that takes JSON.

    Source: google-research/electra, run_pretraining.py, main.
    """
    path = text_or_path.strip()
    if not path.endswith(".json"):
        return parse_json(text_or_path, flag)
    try:
        with open(path, encoding="utf-8-sig") as f:
            text = f.read(_MAX_CHARACTERS + 1)
    except UnicodeDecodeError as e:
        raise UserError(
            f"{path}: not UTF-8 text (byte {e.start}); save it as UTF-8"
        ) from None
    except OSError as e:
        raise UserError(
            f"{path}: the file of {flag} cannot be read: {e.strerror}"
        ) from None
    if len(text) > _MAX_CHARACTERS:
        raise UserError(
            f"{path}: the file of {flag} has more than {_MAX_CHARACTERS:,}"
            " characters; expected an object of settings."
        )
    return parse_json(text, path)


def parse_json(text: str, where: str) -> dict[str, Any]:
    """Parses one JSON object, with errors a person can act on."""

    def reject_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = collections.Counter(name for name, _ in pairs)
            twice = sorted(name for name, count in counts.items() if count > 1)
            raise UserError(f"{where}: {', '.join(twice)} given more than once")
        return found

    def depth(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value
        is_nested = isinstance(value, dict | list)
        return 1 + max(map(depth, inner if is_nested else ()), default=0)

    try:
        value = json.loads(text, object_pairs_hook=reject_duplicates)
        if depth(value) > _MAX_DEPTH:
            raise RecursionError
    except json.JSONDecodeError as e:
        near = text[max(0, e.pos - 30) : e.pos + 30]
        raise UserError(
            f"{where}: not valid JSON at line {e.lineno}, column {e.colno}"
            f" (character {e.pos}): {e.msg}, near {near!r}. Give a JSON object"
            " in quotes, or the path of a file whose name ends in .json. JSON"
            " has double quotes around names and text, and writes true, false"
            " and null."
        ) from None
    except RecursionError:
        raise UserError(
            f"{where}: JSON nested more than {_MAX_DEPTH} levels deep; expected"
            " an object of settings."
        ) from None
    except UserError:
        raise
    except ValueError as e:  # A number of thousands of digits.
        raise UserError(f"{where}: cannot be read as JSON: {e}") from None
    if not isinstance(value, dict):
        raise UserError(
            f"{where}: expected a JSON object such as"
            f' {{"learning_rate": 1e-4}}, got {json.dumps(value)[:60]}'
        )
    return value
