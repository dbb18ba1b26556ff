# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arrays -> the JSON of an answer, as TensorFlow Serving writes it.

Source: TensorFlow Serving's RESTful API, "Predict API".
Differs: numbers that JSON does not have (NaN, infinities) are null.
"""

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from electra_tf.serving.requests import RequestError

# Strings of outputs so named are bytes: base64 in JSON.
_BYTES = "_bytes"


def predictions(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Answers row by row.

    Returns:
      `predictions`: a value a row where there is one output, else an object.

    Raises:
      RequestError: an output has no such axis.
    """
    lengths = {len(a) if a.ndim else -1 for a in outputs.values()}
    if len(lengths) != 1 or -1 in lengths:
        raise RequestError(
            "This signature's outputs have no rows in common; ask with inputs"
            " (columns) instead of instances."
        )
    plain = {name: to_plain(name, array) for name, array in outputs.items()}
    if len(plain) == 1:
        return {"predictions": next(iter(plain.values()))}
    rows = zip(*plain.values(), strict=True)
    return {"predictions": [dict(zip(plain, row, strict=True)) for row in rows]}


def columns(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Answers output by output.

    Returns:
      `outputs`: the value where there is one output, else an object.
    """
    plain = {name: to_plain(name, array) for name, array in outputs.items()}
    if len(plain) == 1:
        return {"outputs": next(iter(plain.values()))}
    return {"outputs": plain}


def to_plain(name: str, array: np.ndarray) -> Any:
    """Returns an array as lists that JSON can hold."""
    value = array.tolist()
    if array.dtype.kind in "OSU":
        return _map(_text if not name.endswith(_BYTES) else _encoded, value)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            value = _map(lambda x: x if math.isfinite(x) else None, value)
        elif array.dtype.itemsize < 8:
            # The shortest text that reads back as the same float32.
            value = _map(float, array.astype("U").astype("f8").tolist())
    return value


def _map(function: Any, value: Any) -> Any:
    if isinstance(value, list):
        return [_map(function, part) for part in value]
    return function(value)


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _encoded(value: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(value).decode()}
