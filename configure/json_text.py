# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parsing of JSON objects that users write."""

import collections
import json
from collections.abc import Sequence
from typing import Any

from configure.errors import UserError

# Maximum depth of nested objects and lists. Hparams need three levels, and
# Python's parser fails at about a thousand levels.
_MAX_DEPTH = 100


def parse_json(text: str, source: str) -> dict[str, Any]:
    """Parse a text as a JSON object, or raise a UserError.

    Args:
      source: file or flag that contains the text, for messages.
    """

    def reject_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            counts = collections.Counter(name for name, _ in pairs)
            repeated = sorted(name for name, n in counts.items() if n > 1)
            raise UserError(
                f"{source}: more than one value of {', '.join(repeated)};"
                " keep one value of each"
            )
        return values

    try:
        value = json.loads(text, object_pairs_hook=reject_duplicates)
        if _depth(value) > _MAX_DEPTH:
            raise RecursionError
    except json.JSONDecodeError as error:
        context = text[max(0, error.pos - 30) : error.pos + 30]
        raise UserError(
            f"{source}: not valid JSON at line {error.lineno}, column"
            f" {error.colno} (character {error.pos}): {error.msg}, near"
            f" {context!r}. Pass a JSON object in quotes, or the path of a file"
            " whose name ends in .json. JSON requires double quotes around"
            " names and texts, and the literals true, false and null."
        ) from None
    except RecursionError:
        raise UserError(
            f"{source}: the JSON is nested more than {_MAX_DEPTH} levels deep;"
            " expected a JSON object of settings. Remove the nesting."
        ) from None
    except UserError:
        raise
    except ValueError as error:  # Python limits the number of digits.
        raise UserError(
            f"{source}: cannot be read as JSON: {error}. Shorten the number."
        ) from None
    if not isinstance(value, dict):
        raise UserError(
            f"{source}: expected a JSON object such as"
            f' {{"learning_rate": 1e-4}}, got {json.dumps(value)[:60]}.'
            " Pass a JSON object"
        )
    return value


def _depth(value: Any) -> int:
    """Return the nesting depth of objects and lists in a value."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return 1
    return 1 + max(map(_depth, value), default=0)
