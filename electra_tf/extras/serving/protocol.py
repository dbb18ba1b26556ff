# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The JSON of requests -> arrays, or what is wrong; arrays -> JSON.

Source: TensorFlow Serving's RESTful API, "Predict API": `instances` (rows) or
`inputs` (columns), `signature_name`, strings as text or `{"b64": ...}`.
Differs: what is no JSON (NaN, duplicate keys, unknown top-level keys) is
refused; TensorFlow Serving takes some of it. In answers, numbers that JSON
does not have (NaN, infinities) are null.
"""

import base64
import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.extras.serving.served_model import ServedModel, Signature

_KEYS = {"signature_name", "instances", "inputs"}


class RequestError(Exception):
    """A request that gets an error for an answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.status = message, status


@dataclasses.dataclass(frozen=True)
class PredictRequest:
    """A request that was understood."""

    signature: Signature  # what to call
    # Its inputs; those with defaults may be missing.
    arrays: dict[str, np.ndarray]
    rows: int  # length of their first axis; 1 where there is no common one
    # Equal for requests that can be computed together; None for none.
    key: tuple | None
    # Whether to answer with `predictions`, else with `outputs`.
    row_format: bool


def make_request(
    signature: Signature, arrays: dict[str, np.ndarray], row_format: bool = True
) -> PredictRequest:
    """Completes a request; inputs must have the same number of rows."""
    shapes = {name: signature.inputs[name].shape for name in arrays}
    lengths = {
        name: len(array)
        for name, array in arrays.items()
        if array.ndim and (shapes[name].rank is None or shapes[name][0] is None)
    }
    if len(set(lengths.values())) > 1:
        words = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise RequestError(
            f"The inputs have different numbers of rows: {words}."
        )
    if len(lengths) < len(arrays) or not lengths:
        return PredictRequest(signature, arrays, 1, None, row_format)
    widths = ((name, arrays[name].shape[1:]) for name in sorted(arrays))
    key = (signature.name, *widths)
    rows = next(iter(lengths.values()))
    return PredictRequest(signature, arrays, rows, key, row_format)


def parse_request(body: bytes, model: ServedModel) -> PredictRequest:
    """Understands the body of a request, or raises a RequestError."""
    request = _parse_json(body)
    if not isinstance(request, dict):
        raise RequestError("The body must be a JSON object.")
    if unknown := sorted(request.keys() - _KEYS):
        raise RequestError(
            f"Unknown key {_short(unknown[0])}; expected signature_name and"
            " instances or inputs."
        )
    # An empty name is none, as in TensorFlow Serving.
    name = request.get("signature_name") or "serving_default"
    if not isinstance(name, str) or name not in model.signatures:
        raise RequestError(
            f"There is no signature {_short(name)}; there are:"
            f" {', '.join(model.signatures)}."
        )
    try:
        return _read_inputs(request, model.signatures[name])
    except RequestError as error:
        is_named = bool(request.get("signature_name"))
        if "serve_text" in model.signatures and not is_named:
            error.message += ' For texts give "signature_name": "serve_text".'
        raise


def _read_inputs(
    request: Mapping[str, Any], signature: Signature
) -> PredictRequest:
    if ("instances" in request) == ("inputs" in request):
        raise RequestError("Give either instances (rows) or inputs (columns).")
    row_format = "instances" in request
    given = request["instances" if row_format else "inputs"]
    columns = _columns(given, signature, row_format)
    takes = f"signature {signature.name} takes {', '.join(signature.inputs)}."
    if unknown := sorted(columns.keys() - signature.inputs.keys()):
        raise RequestError(f"Unknown input {_short(unknown[0])}; {takes}")
    arrays = {
        name: _array(name, value, signature.inputs[name])
        for name, value in columns.items()
    }
    for name in signature.inputs:
        if name not in arrays and name not in signature.defaults:
            raise RequestError(f"Input {name} is missing; {takes}")
    return make_request(signature, arrays, row_format)


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
        return json.loads(text, parse_constant=refuse, object_pairs_hook=once)
    except UnicodeDecodeError as error:
        raise RequestError(
            f"The body is not UTF-8: byte {error.start}: {error.reason}."
        ) from None
    except json.JSONDecodeError as error:
        raise RequestError(f"The body is not JSON: {error}.") from None
    except (RecursionError, ValueError) as error:
        # Too deep, or a number of too many digits.
        raise RequestError(f"The body cannot be read: {error}.") from None


def _columns(given: Any, signature: Signature, by_rows: bool) -> dict[str, Any]:
    """Values by input; a single input goes without its name."""
    if by_rows and (not isinstance(given, list) or not given):
        raise RequestError("instances must be a list of at least one row.")
    parts = given if by_rows else [given]
    are_named = [isinstance(x, dict) and not _is_base64(x) for x in parts]
    if not any(are_named):
        if len(signature.inputs) == 1:
            return {next(iter(signature.inputs)): given}
        what = "Each row of instances" if by_rows else "inputs"
        names = ", ".join(signature.inputs)
        raise RequestError(f"{what} must be an object with {names}.")
    if not by_rows:
        return given
    if not all(are_named):
        raise RequestError("The rows of instances are of different kinds.")
    for i, row in enumerate(given):
        if row.keys() != given[0].keys():
            raise RequestError(f"instances[{i}] has other keys than the first.")
    return {key: [row[key] for row in given] for key in given[0]}


def _array(name: str, value: Any, spec: tf.TensorSpec) -> np.ndarray:
    """An array of nested lists, which must be equally long at each level."""
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
    if not spec.shape.is_compatible_with(shape):
        wanted = str(spec.shape.as_list()).replace("None", "any")
        raise RequestError(f"{name} has the shape {shape}; expected {wanted}.")
    array = np.empty(len(level), spec.dtype.as_numpy_dtype)
    array[:] = [_element(name, part, spec.dtype) for part in level]
    return array.reshape(shape)


def _element(name: str, value: Any, dtype: tf.DType) -> Any:
    """A value of a type, or a RequestError that says what was expected."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if dtype == tf.string:
        if isinstance(value, str):
            # JSON can write half of a surrogate pair; there are no bytes for
            # it, so it is removed as other bytes are that are no text.
            return value.encode("utf-8", "ignore")
        expected = 'a text or {"b64": ...}'
        if _is_base64(value):
            try:
                return base64.b64decode(value["b64"], validate=True)
            except (TypeError, ValueError) as error:
                raise RequestError(
                    f"{name}: b64 is not base64: {error}."
                ) from None
    elif dtype == tf.bool:
        if isinstance(value, bool):
            return value
        expected = "true or false"
    elif not is_number:
        expected = "a number"
    elif not dtype.is_integer:
        # Python compares integers beyond every float, too.
        if float(dtype.min) <= value <= float(dtype.max):
            return value
        expected = "a finite number"
    elif isinstance(value, float) and not value.is_integer():
        expected = "a whole number"
    elif dtype.min <= value <= dtype.max:
        return int(value)
    else:
        expected = f"a number that is an {dtype.name}"
    raise RequestError(f"{name} holds {_short(value)}; expected {expected}.")


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"b64"}


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def answer(
    outputs: Mapping[str, np.ndarray], row_format: bool
) -> dict[str, Any]:
    """The JSON of an answer; a single output goes without its name."""
    lengths = {len(a) if a.ndim else -1 for a in outputs.values()}
    if row_format and (len(lengths) != 1 or -1 in lengths):
        raise RequestError(
            "This signature's outputs have no rows in common; ask with inputs"
            " (columns) instead of instances."
        )
    plain = {name: _plain(name, array) for name, array in outputs.items()}
    key = "predictions" if row_format else "outputs"
    if len(plain) == 1:
        return {key: next(iter(plain.values()))}
    if not row_format:
        return {key: plain}
    rows = zip(*plain.values(), strict=True)
    return {key: [dict(zip(plain, row, strict=True)) for row in rows]}


def _plain(name: str, array: np.ndarray) -> Any:
    """An array as lists that JSON can hold; strings of *_bytes in base64."""
    value = array.tolist()
    if array.dtype == object and name.endswith("_bytes"):
        return _map(lambda x: {"b64": base64.b64encode(x).decode()}, value)
    if array.dtype == object:
        return _map(lambda x: x.decode("utf-8", "replace"), value)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            return _map(lambda x: x if math.isfinite(x) else None, value)
        if array.dtype.itemsize < 8:
            # The shortest text that reads back as the same float32.
            return _map(float, array.astype("U").astype("f8").tolist())
    return value


def _map(function: Any, value: Any) -> Any:
    if isinstance(value, list):
        return [_map(function, part) for part in value]
    return function(value)
