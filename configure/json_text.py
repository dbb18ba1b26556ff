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


class DuplicateKeyError(ValueError):
    """Error for a JSON object that contains a key more than once.

    Attributes:
      pairs: keys and values of the object, in order.
    """

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        counts = collections.Counter(name for name, _ in pairs)
        repeated = sorted(name for name, n in counts.items() if n > 1)
        super().__init__(f"more than one value of {', '.join(repeated)}")
        self.pairs = pairs


def object_of_pairs(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of keys and values, as `object_pairs_hook` of `json`.

    Raises:
      DuplicateKeyError: a key occurs more than once. By default, `json` drops
        all values but the last.
    """
    values = dict(pairs)
    if len(values) < len(pairs):
        raise DuplicateKeyError(pairs)
    return values


def parse_json(text: str, source: str) -> dict[str, Any]:
    """Parse a text as a JSON object, or raise a UserError.

    Args:
      source: file or flag that contains the text, for messages.
    """
    try:
        value = json.loads(text, object_pairs_hook=object_of_pairs)
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
    except DuplicateKeyError as error:
        raise UserError(f"{source}: {error}; keep one value of each.") from None
    except ValueError as error:  # Python limits the number of digits.
        raise UserError(
            f"{source}: cannot be read as JSON: {error}. Shorten the number."
        ) from None
    if not isinstance(value, dict):
        raise UserError(
            f"{source}: expected a JSON object such as"
            f' {{"learning_rate": 1e-4}}, got {json.dumps(value)[:60]}.'
            " Pass a JSON object."
        )
    return value


def _depth(value: Any) -> int:
    """Return the nesting depth of objects and lists in a value."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return 1
    return 1 + max(map(_depth, value), default=0)
