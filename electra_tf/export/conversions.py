# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Conversion of a module to LiteRT (formerly TFLite) and ONNX files.

The files take int32 [B, L] `input_ids`, `input_mask` and `segment_ids`, of any
B and L, and return the numeric outputs of the SavedModel's `serving_default`.
Strings are not supported: label names are in `assets.extra/`, and the device
must tokenize texts. LiteRT files use only LiteRT's own operations. ONNX files
require the extra `onnx` (tf2onnx, onnxruntime). Files with 8-bit weights are
`lite/model_dynamic.tflite` and `onnx/model_int8.onnx`.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError, last_line, missing_extra
from electra_tf.export.quantization import quantize
from electra_tf.export.signatures import Inputs, Outputs, ServingModule
from electra_tf.files.atomic import write_atomically
from electra_tf.files.reading import read_bytes
from electra_tf.modeling.graph_modes import inference
from electra_tf.text.vocabulary import CLS, SEP

_ONNX_OPSET = 17
# The shapes [B, L] of the inputs on which the files are compared with the
# SavedModel.
_SHAPES = ((1, 8), (4, 32), (2, 64))


def check_onnx_installed() -> None:
    """Raise a UserError if the extra `onnx` is not installed."""
    for name in ("tf2onnx", "onnxruntime"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            user = f"--onnx needs {name}, which"
            raise missing_extra(user, "onnx", error) from error


def write_lite(
    module: ServingModule, folder: str, kinds: Sequence[str]
) -> None:
    """Write `lite/model_<kind>.tflite` for each kind, "float" or "dynamic"."""
    for kind in kinds:
        try:
            with inference():
                concrete = _numeric_function(module).get_concrete_function()
            converter = tf.lite.TFLiteConverter.from_concrete_functions(
                [concrete], module
            )
            if kind == "dynamic":
                converter.optimizations = [tf.lite.Optimize.DEFAULT]
            content = converter.convert()
        except Exception as error:  # Converters raise errors of any class.
            raise _not_converted(module, "tflite", error) from error
        path = os.path.join(folder, "lite", f"model_{kind}.tflite")
        write_atomically(path, content)


def write_onnx(
    module: ServingModule, folder: str, with_int8: bool = False
) -> None:
    """Write `onnx/model.onnx`, and on request `onnx/model_int8.onnx`."""
    check_onnx_installed()
    import tf2onnx

    specs = [
        tf.TensorSpec([None, None], tf.int32, name) for name in Inputs._fields
    ]
    # If a function has no signature, tf2onnx takes the inputs' names from
    # `specs`.
    numeric = _numeric_function(module).python_function
    try:
        with inference():
            model, _ = tf2onnx.convert.from_function(
                tf.function(numeric, autograph=False), specs, opset=_ONNX_OPSET
            )
    except Exception as error:  # Converters raise errors of any class.
        raise _not_converted(module, "onnx", error) from error
    contents = {"model": model.SerializeToString()}
    if with_int8:
        contents["model_int8"] = quantize(model)
    for name, content in contents.items():
        write_atomically(os.path.join(folder, "onnx", f"{name}.onnx"), content)


def _numeric_function(module: ServingModule) -> Any:
    """Return a `tf.function` from encoder inputs to the numeric outputs."""
    matrix = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[matrix] * 3, autograph=False)
    def serving_default(
        input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor
    ) -> Outputs:
        outputs = module.compute(Inputs(input_ids, input_mask, segment_ids))
        return {n: v for n, v in outputs.items() if v.dtype != tf.string}

    return serving_default


def _not_converted(
    module: ServingModule, flag: str, error: Exception
) -> UserError:
    return UserError(
        f"--{flag}: a {module.KIND} model cannot be converted:"
        f" {last_line(error)}. Remove --{flag}."
    )


# Sizes and weights of the files, and differences from the SavedModel.


def runner(path: str) -> Callable[[Inputs], Mapping[str, np.ndarray]]:
    """Return a function that runs a LiteRT or an ONNX file."""
    if not path.endswith(".onnx"):
        interpreter = _open_lite(path)
        signature = interpreter.get_signature_runner("serving_default")
        return lambda inputs: signature(**inputs._asdict())
    check_onnx_installed()
    import onnxruntime

    session = onnxruntime.InferenceSession(
        read_bytes(path), providers=["CPUExecutionProvider"]
    )
    input_names = [argument.name for argument in session.get_inputs()]
    names = [output.name for output in session.get_outputs()]

    def run(inputs: Inputs) -> Mapping[str, np.ndarray]:
        values = {name: getattr(inputs, name) for name in input_names}
        return dict(zip(names, session.run(names, values), strict=True))

    return run


def _open_lite(path: str) -> tf.lite.Interpreter:
    with warnings.catch_warnings():
        # Without this filter, each file would cause a warning that TensorFlow
        # will remove the interpreter.
        warnings.simplefilter("ignore")
        return tf.lite.Interpreter(model_content=read_bytes(path))


def describe_weights(path: str) -> str:
    """Return the number of weight matrices of each data type in a file.

    Args:
      path: a LiteRT or an ONNX file.

    Returns:
      A text such as "26 int8, 1 float32 (Slice)". If a file contains several
      types, the parentheses name the operations that read float32 matrices.
    """
    is_onnx = path.endswith(".onnx")
    dtypes = _onnx_weights(path) if is_onnx else _lite_weights(path)
    counts = collections.Counter(dtype for dtype, _ in dtypes)
    parts = []
    for dtype, count in sorted(counts.items(), key=lambda item: -item[1]):
        readers = {r for d, names in dtypes if d == dtype for r in names}
        is_left = dtype == "float32" and len(counts) > 1 and readers
        suffix = f" ({', '.join(sorted(readers))})" if is_left else ""
        parts.append(f"{count} {dtype}{suffix}")
    return ", ".join(parts)


def _onnx_weights(path: str) -> list[tuple[str, set[str]]]:
    """Return each matrix's data type, and the operations that read it."""
    import onnx

    graph = onnx.load_from_string(read_bytes(path)).graph
    readers = collections.defaultdict(set)
    for node in graph.node:
        for name in node.input:
            readers[name].add(node.op_type)
    return [
        (
            onnx.helper.tensor_dtype_to_np_dtype(weight.data_type).name,
            readers[weight.name],
        )
        for weight in graph.initializer
        if len(weight.dims) > 1
    ]


def _lite_weights(path: str) -> list[tuple[str, set[str]]]:
    """Return the data type of each matrix, with an empty set of operations."""
    interpreter = _open_lite(path)
    dtypes = []
    for tensor in interpreter.get_tensor_details():
        if len(tensor["shape"]) > 1:
            # Weights are constants. Only constants have values before the
            # tensors are allocated; other tensors raise a ValueError.
            with contextlib.suppress(ValueError):
                interpreter.get_tensor(tensor["index"])
                dtypes.append((tensor["dtype"].__name__, set()))
    return dtypes


def measure_conversions(
    folder: str, loaded: Any, tokens: Sequence[str], max_positions: int
) -> dict[str, dict[str, Any]]:
    """Return each converted file's size and differences from the SavedModel."""
    batches = sample_inputs(tokens, max_positions)
    serve = loaded.signatures["serving_default"]
    reports = {}
    for pattern in ("lite/*", "onnx/*"):
        for path in sorted(tf.io.gfile.glob(os.path.join(folder, pattern))):
            expected = [
                serve(
                    input_ids=tf.constant(batch.input_ids),
                    input_mask=tf.constant(batch.input_mask),
                    segment_ids=tf.constant(batch.segment_ids),
                )
                for batch in batches
            ]
            converted = list(map(runner(path), batches))
            reports[os.path.relpath(path, folder)] = {
                "bytes": tf.io.gfile.stat(path).length,
                **compare(expected, converted),
            }
    return reports


def sample_inputs(tokens: Sequence[str], max_positions: int) -> list[Inputs]:
    """Return random inputs of several shapes, with padding and segments."""
    random = np.random.default_rng(0)
    batches = []
    for rows, length in _SHAPES:
        length = min(length, max_positions)
        ids = random.integers(1, len(tokens), [rows, length], np.int32)
        ids[:, 0] = tokens.index(CLS)
        ids[:, length // 2] = ids[:, length - 1] = tokens.index(SEP)
        mask = np.ones_like(ids)
        mask[0, length - length // 4 :] = 0
        segments = np.zeros_like(ids)
        segments[:, length // 2 + 1 :] = 1
        batches.append(Inputs(ids * mask, mask, segments * mask))
    return batches


def compare(
    expected: Sequence[Mapping[str, tf.Tensor]],
    converted: Sequence[Mapping[str, np.ndarray]],
) -> dict[str, float]:
    """Compare the outputs of a converted file with the SavedModel's outputs.

    The result contains the largest and the mean change of float outputs, and
    the share of equal values in integer outputs.
    """
    changes, same = [np.zeros([1])], [np.ones([1], bool)]
    for expected_batch, converted_batch in zip(
        expected, converted, strict=True
    ):
        for name, output in converted_batch.items():
            value = np.asarray(expected_batch[name])
            if np.issubdtype(value.dtype, np.floating):
                changes.append(np.abs(value - output).ravel())
            else:
                same.append((value == output).ravel())
    change = np.concatenate(changes[1:] or changes)
    return {
        "largest_change": float(change.max()),
        "mean_change": float(change.mean()),
        "same_choices": float(np.concatenate(same[1:] or same).mean()),
    }
