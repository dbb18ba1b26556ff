# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""JSON objects in files."""

import math
from typing import Any

from configure.json_text import parse_json
from electra_tf.files.reading import read_text


def read_json(path: str) -> dict[str, Any]:
    """Return the JSON object in a file."""
    return parse_json(read_text(path), path)


def without_nan(value: Any) -> Any:
    """Return a JSON value with None for each number that is not finite.

    JSON has neither NaN nor infinity.
    """
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
