# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Presets as data: one JSON file per published setting.

Each file has a `header` (description, source, hardware, expected, command) and
`hparams`, which replace defaults: explicit values still take precedence.
"""

import functools
import json
import pathlib
from typing import Any

from configure.suggestions import check_names

_DIRECTORY = pathlib.Path(__file__).resolve().parent


@functools.cache
def preset_names() -> tuple[str, ...]:
    """Return the names of all presets, sorted."""
    return tuple(sorted(path.stem for path in _DIRECTORY.glob("*.json")))


def load_preset(name: str) -> dict[str, Any]:
    """Return the header and hparams of a preset."""
    check_names([name], preset_names(), "preset")
    text = (_DIRECTORY / f"{name}.json").read_text(encoding="utf-8")
    return json.loads(text)
