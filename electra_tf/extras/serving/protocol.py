# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Conversion of requests from JSON and of answers to JSON.

Source: TensorFlow Serving's RESTful API, "Predict API": `instances` (rows) or
`inputs` (columns), `signature_name`, strings as text or `{"b64": ...}`.
Differs: invalid JSON (NaN, duplicate keys) and unknown top-level keys are
refused; TensorFlow Serving accepts some of them. In answers, numbers that JSON
cannot represent (NaN, infinities) are null.
"""

import base64
import dataclasses
import itertools
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from configure.json_text import DuplicateKeyError, object_of_pairs
from electra_tf.extras.serving.served_model import ServedModel, Signature

_KEYS = {"signature_name", "instances", "inputs"}


class RequestError(Exception):
    """An error that is sent as the answer to a request, with an HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.status = message, status


@dataclasses.dataclass(frozen=True)
class PredictRequest:
    """A parsed request."""

    signature: Signature  # the function to call
    # The function's inputs; inputs with defaults may be missing.
    arrays: dict[str, np.ndarray]
    # common length of the arrays' first axes; 1 if they have no common axis
    rows: int
    # Requests with equal keys can be computed together; None: the request is
    # computed alone.
    key: tuple | None
    # whether the answer has rows under `predictions`; False: it has columns
    # under `outputs`
    row_format: bool


def make_request(
    signature: Signature, arrays: dict[str, np.ndarray], row_format: bool = True
) -> PredictRequest:
    """Return a request with the number of its rows.

    Args:
      signature: the function to call.
      arrays: the inputs of the function.
      row_format: see `PredictRequest`.

    Raises:
      RequestError: the inputs have different numbers of rows.
    """
    shapes = {name: signature.inputs[name].shape for name in arrays}
    lengths = {
        name: len(array)
        for name, array in arrays.items()
        if array.ndim and (shapes[name].rank is None or shapes[name][0] is None)
    }
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise RequestError(
            f"The inputs have different numbers of rows: {counts}. Send the"
            " same number of rows for each input."
        )
    if len(lengths) < len(arrays) or not lengths:
        return PredictRequest(signature, arrays, 1, None, row_format)
    row_shapes = ((name, arrays[name].shape[1:]) for name in sorted(arrays))
    key = (signature.name, *row_shapes)
    rows = next(iter(lengths.values()))
    return PredictRequest(signature, arrays, rows, key, row_format)


def parse_request(body: bytes, model: ServedModel) -> PredictRequest:
    """Parse the request in a body; raise a RequestError if it is invalid."""
    request = _parse_json(body)
    if not isinstance(request, dict):
        raise RequestError(
            "The body is not a JSON object. Send an object with instances or"
            " inputs."
        )
    if unknown := sorted(request.keys() - _KEYS):
        raise RequestError(
            f"Unknown key {_short(unknown[0])}; expected signature_name, and"
            " either instances or inputs. Remove the key."
        )
    # As in TensorFlow Serving, an empty name means the default signature.
    name = request.get("signature_name") or "serving_default"
    if not isinstance(name, str) or name not in model.signatures:
        raise RequestError(
            f"Unknown signature {_short(name)}; expected one of"
            f" {', '.join(model.signatures)}. Set signature_name to one of"
            " these."
        )
    try:
        return _read_inputs(request, model.signatures[name])
    except RequestError as error:
        is_named = bool(request.get("signature_name"))
        if "serve_text" in model.signatures and not is_named:
            error.message += (
                ' To send texts, add "signature_name": "serve_text" to the'
                " request."
            )
        raise


def _read_inputs(
    request: Mapping[str, Any], signature: Signature
) -> PredictRequest:
    """Return a request with the arrays of its inputs."""
    if ("instances" in request) == ("inputs" in request):
        count = "neither" if "inputs" not in request else "both"
        raise RequestError(
            f"The request has {count} of the keys instances and inputs;"
            " expected one of them. Send either instances (rows) or inputs"
            " (columns)."
        )
    row_format = "instances" in request
    values = request["instances" if row_format else "inputs"]
    columns = _columns(values, signature, row_format)
    inputs = ", ".join(signature.inputs)
    expectation = f"the signature {signature.name} expects {inputs}."
    if unknown := sorted(columns.keys() - signature.inputs.keys()):
        raise RequestError(
            f"Unknown input {_short(unknown[0])}; {expectation} Remove the"
            " unknown input."
        )
    arrays = {
        name: _array(name, value, signature.inputs[name])
        for name, value in columns.items()
    }
    for name in signature.inputs:
        if name not in arrays and name not in signature.defaults:
            raise RequestError(
                f"The input {name} is missing; {expectation} Add the missing"
                " input."
            )
    return make_request(signature, arrays, row_format)


def _parse_json(body: bytes) -> Any:
    """Parse the JSON of a body; raise a RequestError if it is not valid."""

    def refuse_constant(name: str) -> None:
        raise RequestError(
            f"The body contains {name}, which is not JSON. Send a finite"
            " number."
        )

    try:
        return json.loads(
            body.decode("utf-8"),
            parse_constant=refuse_constant,
            object_pairs_hook=object_of_pairs,
        )
    except UnicodeDecodeError as error:
        raise RequestError(
            f"The body is not UTF-8: byte {error.start}: {error.reason}."
            " Encode the body in UTF-8."
        ) from None
    except json.JSONDecodeError as error:
        raise RequestError(
            f"The body is not JSON: {error}. Send valid JSON."
        ) from None
    except DuplicateKeyError as error:
        raise RequestError(
            f"An object contains a key more than once: {error}. Send each key"
            " once."
        ) from None
    except (RecursionError, ValueError) as error:
        # Python raises these errors for JSON that is nested too deep and for
        # integers with too many digits.
        raise RequestError(
            f"The JSON of the body cannot be parsed: {error}. Send lists of"
            " less depth, or numbers with fewer digits."
        ) from None


def _columns(
    values: Any, signature: Signature, by_rows: bool
) -> dict[str, Any]:
    """Return the values of each input, by the name of the input.

    Args:
      values: rows or columns; the name of a single input may be omitted.
      signature: the function to call.
      by_rows: whether the values are rows.
    """
    if by_rows and (not isinstance(values, list) or not values):
        raise RequestError(
            "instances is empty or not a list; expected a list of rows. Send"
            " one row per example."
        )
    parts = values if by_rows else [values]
    are_named = [isinstance(x, dict) and not _is_base64(x) for x in parts]
    if not any(are_named):
        if len(signature.inputs) == 1:
            return {next(iter(signature.inputs)): values}
        subject = "Each row of instances" if by_rows else "The value of inputs"
        names = ", ".join(signature.inputs)
        raise RequestError(
            f"{subject} must be an object, because the signature"
            f" {signature.name} has several inputs. Send objects with the keys"
            f" {names}."
        )
    if not by_rows:
        return values
    if not all(are_named):
        raise RequestError(
            "Only some rows of instances are objects. Send either all rows as"
            " objects, or all rows as plain values."
        )
    names = values[0].keys()
    for i, row in enumerate(values):
        if row.keys() != names:
            raise RequestError(
                f"instances[{i}] and the first row have different keys."
                " Send the same keys in all rows."
            )
    columns = {}
    for name in names:
        columns[name] = [row[name] for row in values]
    return columns


def _array(name: str, value: Any, spec: tf.TensorSpec) -> np.ndarray:
    """Convert nested lists to an array of an input's type and shape."""
    shape: list[int] = []
    level = [value]
    while any(isinstance(x, list) for x in level):
        lengths = {len(x) if isinstance(x, list) else -1 for x in level}
        if len(lengths) != 1:
            raise RequestError(
                f"{name} contains lists of different lengths; expected equal"
                " lengths, as in a tensor. Pad the lists."
            )
        shape.append(lengths.pop())
        level = list(itertools.chain.from_iterable(level))
    if not spec.shape.is_compatible_with(shape):
        expected = str(spec.shape.as_list()).replace("None", "any")
        raise RequestError(
            f"{name} has the shape {shape}; expected {expected}. Send a value"
            " of the expected shape."
        )
    array = np.empty(len(level), spec.dtype.as_numpy_dtype)
    array[:] = [_element(name, part, spec.dtype) for part in level]
    return array.reshape(shape)


def _element(name: str, value: Any, dtype: tf.DType) -> Any:
    """Convert a JSON value to a type, or raise a RequestError."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if dtype == tf.string:
        if isinstance(value, str):
            # JSON can contain half of a surrogate pair, which UTF-8 cannot
            # represent. The half is removed, like invalid bytes elsewhere.
            return value.encode("utf-8", "ignore")
        expected = 'a text or {"b64": ...}'
        if _is_base64(value):
            try:
                return base64.b64decode(value["b64"], validate=True)
            except (TypeError, ValueError) as error:
                raise RequestError(
                    f"{name}: b64 is not base64: {error}. Encode the bytes"
                    " in base64."
                ) from None
    elif dtype == tf.bool:
        if isinstance(value, bool):
            return value
        expected = "true or false"
    elif not is_number:
        expected = "a number"
    elif not dtype.is_integer:
        # Huge integers need no special case, because Python compares integers
        # correctly even beyond the largest float.
        if float(dtype.min) <= value <= float(dtype.max):
            return value
        expected = "a finite number"
    elif isinstance(value, float) and not value.is_integer():
        expected = "a whole number"
    elif dtype.min <= value <= dtype.max:
        return int(value)
    else:
        expected = f"a number from {dtype.min} to {dtype.max} ({dtype.name})"
    raise RequestError(
        f"{name} contains {_short(value)}; expected {expected}. Correct the"
        " value."
    )


def _is_base64(value: Any) -> bool:
    """Return whether a value is an object with the single key b64."""
    return isinstance(value, dict) and set(value) == {"b64"}


def _short(value: Any) -> str:
    """Return the beginning of a value's JSON, for messages."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def format_answer(
    outputs: Mapping[str, np.ndarray], row_format: bool
) -> dict[str, Any]:
    """Format an answer for JSON; omit the name of a single output.

    Args:
      outputs: the outputs by name.
      row_format: see `PredictRequest`.

    Raises:
      RequestError: rows were sent, but the outputs have no rows in common.
    """
    lengths = {len(a) if a.ndim else -1 for a in outputs.values()}
    if row_format and (len(lengths) != 1 or -1 in lengths):
        raise RequestError(
            "The outputs of this signature cannot be split into rows. Send"
            " inputs (columns) instead of instances (rows)."
        )
    plain = {name: _plain(name, array) for name, array in outputs.items()}
    key = "predictions" if row_format else "outputs"
    if len(plain) == 1:
        return {key: next(iter(plain.values()))}
    if not row_format:
        return {key: plain}
    columns = zip(*plain.values(), strict=True)
    rows = [dict(zip(plain, row, strict=True)) for row in columns]
    return {key: rows}


def _plain(name: str, array: np.ndarray) -> Any:
    """Return an array as lists for JSON; encode *_bytes outputs in base64."""
    value = array.tolist()
    if array.dtype == object and name.endswith("_bytes"):
        return _map(lambda x: {"b64": base64.b64encode(x).decode()}, value)
    if array.dtype == object:
        return _map(lambda x: x.decode("utf-8", "replace"), value)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            return _map(lambda x: x if math.isfinite(x) else None, value)
        if array.dtype.itemsize < 8:
            # Each float32 is written as the shortest decimal number that is
            # converted to the same float32.
            return _map(float, array.astype("U").astype("f8").tolist())
    return value


def _map(function: Callable[[Any], Any], value: Any) -> Any:
    """Return nested lists with a function applied to their elements."""
    if isinstance(value, list):
        return [_map(function, part) for part in value]
    return function(value)
