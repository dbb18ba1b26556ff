# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The JSON of a prediction request -> arrays, or what is wrong with it.

Source: TensorFlow Serving's RESTful API, "Predict API": `instances` (rows) or
`inputs` (columns), `signature_name`, strings as text or `{"b64": ...}`.
Differs: what is no JSON (NaN, duplicate keys, unknown top-level keys) is
refused; TensorFlow Serving takes some of it.
"""

import base64
import binascii
import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.serving.served_model import (
    DEFAULT_SIGNATURE,
    ServedModel,
    Signature,
    TensorInfo,
)

_KEYS = frozenset({"signature_name", "instances", "inputs"})


class RequestError(Exception):
    """A request that gets an error for an answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.status = message, status


@dataclasses.dataclass(frozen=True)
class PredictRequest:
    """A request that was understood.

    Attributes:
      signature: what to call.
      arrays: its inputs; those with defaults may be missing.
      rows: length of their first axis; None where there is no common one.
      row_format: whether to answer with `predictions`, else with `outputs`.
    """

    signature: Signature
    arrays: dict[str, np.ndarray]
    rows: int | None
    row_format: bool


def parse_request(body: bytes, model: ServedModel) -> PredictRequest:
    """Understands the body of a request.

    Raises:
      RequestError: saying what is wrong.
    """
    request = _parse_json(body)
    if not isinstance(request, dict):
        raise RequestError("The body must be a JSON object.")
    if unknown := sorted(request.keys() - _KEYS):
        raise RequestError(
            f"Unknown key {_short(unknown[0])}; expected signature_name and"
            " instances or inputs."
        )
    signature = _signature(request, model)
    if ("instances" in request) == ("inputs" in request):
        raise RequestError("Give either instances (rows) or inputs (columns).")
    row_format = "instances" in request
    if row_format:
        columns = _columns_of_rows(request["instances"], signature)
    else:
        columns = _columns(request["inputs"], signature)
    arrays = {
        name: _array(name, value, signature.inputs[name])
        for name, value in columns.items()
    }
    for name in signature.inputs:
        if name not in arrays and name not in signature.defaults:
            raise RequestError(
                f"Input {name} is missing; signature {signature.name} takes"
                f" {', '.join(signature.inputs)}."
            )
    return PredictRequest(
        signature, arrays, _common_rows(signature, arrays), row_format
    )


def _parse_json(body: bytes) -> Any:
    def refuse(word: str) -> None:
        raise RequestError(f"{word} is not JSON.")

    def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise RequestError("A key is given more than once.")
        return found

    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(
            f"The body is not UTF-8: byte {error.start}: {error.reason}."
        ) from None
    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise RequestError(f"The body is not JSON: {error}.") from None
    except (RecursionError, ValueError) as error:
        # Too deep, or a number of too many digits.
        raise RequestError(f"The body cannot be read: {error}.") from None


def _signature(request: Mapping[str, Any], model: ServedModel) -> Signature:
    name = request.get("signature_name", DEFAULT_SIGNATURE)
    name = name or DEFAULT_SIGNATURE  # As in TensorFlow Serving.
    if not isinstance(name, str) or name not in model.signatures:
        raise RequestError(
            f"There is no signature {_short(name)}; there are:"
            f" {', '.join(model.signatures)}."
        )
    return model.signatures[name]


def _columns_of_rows(rows: Any, signature: Signature) -> dict[str, Any]:
    if not isinstance(rows, list) or not rows:
        raise RequestError("instances must be a list of at least one row.")
    names = set(signature.inputs)
    are_named = [isinstance(row, dict) and not _is_base64(row) for row in rows]
    if not any(are_named):
        if len(names) != 1:
            raise RequestError(
                "Each row of instances must be an object with"
                f" {', '.join(signature.inputs)}."
            )
        return {next(iter(names)): rows}
    if not all(are_named):
        raise RequestError("The rows of instances are of different kinds.")
    keys = set(rows[0])
    for i, row in enumerate(rows):
        if set(row) != keys:
            raise RequestError(f"instances[{i}] has other keys than the first.")
    _check_names(keys, signature)
    return {key: [row[key] for row in rows] for key in sorted(keys)}


def _columns(inputs: Any, signature: Signature) -> dict[str, Any]:
    if isinstance(inputs, dict) and not _is_base64(inputs):
        _check_names(set(inputs), signature)
        return dict(inputs)
    if len(signature.inputs) != 1:
        raise RequestError(
            f"inputs must be an object with {', '.join(signature.inputs)}."
        )
    return {next(iter(signature.inputs)): inputs}


def _check_names(names: set[str], signature: Signature) -> None:
    if unknown := sorted(names - set(signature.inputs)):
        raise RequestError(
            f"Unknown input {_short(unknown[0])}; signature {signature.name}"
            f" takes {', '.join(signature.inputs)}."
        )


def _array(name: str, value: Any, info: TensorInfo) -> np.ndarray:
    shape = _shape(name, value)
    wanted = info.shape
    if wanted is not None and (
        len(shape) != len(wanted)
        or any(w not in (None, s) for s, w in zip(shape, wanted, strict=True))
    ):
        words = [str(w) if w is not None else "any" for w in wanted]
        raise RequestError(
            f"{name} has the shape {list(shape)}; expected"
            f" [{', '.join(words)}]."
        )
    flat = [_element(name, part, info.dtype) for part in _flat(value)]
    try:
        if info.dtype == tf.string:
            array = np.empty(len(flat), object)
            array[:] = flat
        else:
            array = np.array(flat, info.dtype.as_numpy_dtype)
    except (OverflowError, ValueError) as error:
        raise RequestError(
            f"{name} holds a number that is no {info.dtype.name}: {error}."
        ) from None
    return array.reshape(shape)


def _shape(name: str, value: Any) -> tuple[int, ...]:
    """Lengths of nested lists, which must be the same at each level."""
    shape: list[int] = []
    level = [value]
    while any(isinstance(x, list) for x in level):
        lengths = {len(x) if isinstance(x, list) else -1 for x in level}
        if len(lengths) != 1:
            raise RequestError(
                f"{name} holds lists of different lengths, which make no"
                " tensor; pad them."
            )
        shape.append(lengths.pop())
        level = [part for parts in level for part in parts]
    return tuple(shape)


def _flat(value: Any) -> list[Any]:
    level = [value]
    while level and isinstance(level[0], list):
        level = [part for parts in level for part in parts]
    return level


def _element(name: str, value: Any, dtype: tf.DType) -> Any:
    if dtype == tf.string:
        if isinstance(value, str):
            # JSON can write half of a surrogate pair; there are no bytes for
            # it, so it is removed as other bytes are that are no text.
            return value.encode("utf-8", "ignore")
        if _is_base64(value):
            return _decode(name, value["b64"])
        raise _mistyped(name, value, 'a text or {"b64": ...}')
    if dtype == tf.bool:
        if isinstance(value, bool):
            return value
        raise _mistyped(name, value, "true or false")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mistyped(name, value, "a number")
    if dtype.is_integer:
        if isinstance(value, float) and not value.is_integer():
            raise _mistyped(name, value, "a whole number")
        if not dtype.min <= value <= dtype.max:
            raise _mistyped(name, value, f"a number that is an {dtype.name}")
        return int(value)
    if not math.isfinite(value):
        raise _mistyped(name, value, "a finite number")
    return value


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"b64"}


def _decode(name: str, text: Any) -> bytes:
    if not isinstance(text, str):
        raise _mistyped(name, text, "base64 in b64")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestError(f"{name}: b64 is not base64: {error}.") from None


def _common_rows(
    signature: Signature, arrays: Mapping[str, np.ndarray]
) -> int | None:
    """Length of the first axis of all inputs, where it is free."""
    lengths = {
        name: len(array)
        for name, array in arrays.items()
        if array.ndim and (signature.inputs[name].shape or (None,))[0] is None
    }
    if len(set(lengths.values())) > 1:
        words = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise RequestError(
            f"The inputs have different numbers of rows: {words}."
        )
    if len(lengths) < len(arrays) or not lengths:
        return None
    return next(iter(lengths.values()))


def _mistyped(name: str, value: Any, expected: str) -> RequestError:
    return RequestError(f"{name} holds {_short(value)}; expected {expected}.")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
