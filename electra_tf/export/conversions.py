# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""LiteRT (formerly TFLite) and ONNX files of a module: ids in, numbers out.

Both take int32 [B, L] `input_ids`, `input_mask` and `segment_ids`, all three
given, B and L free, and give the numeric outputs of the SavedModel's
`serving_default`. Strings are left out: names are in `assets.extra/`, and
tokenizing is up to the device. LiteRT files use LiteRT's own operations only.
ONNX needs the extra `onnx` (tf2onnx, onnxruntime), which nothing else does.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.export.signatures import Inputs, Outputs, ServingModule
from electra_tf.modeling.layers import inference
from electra_tf.text.tokenization import CLS, SEP

KINDS = ("float", "dynamic")
LITE_FOLDER, ONNX_FOLDER = "lite", "onnx"
_ONNX_OPSET = 17
# Shapes that the files are compared on.
_SHAPES = ((1, 8), (4, 32), (2, 64))


def check_kinds(kinds: Iterable[str]) -> list[str]:
    """Returns the kinds of LiteRT files asked for."""
    kinds = list(dict.fromkeys(kinds))
    for kind in kinds:
        if kind not in KINDS:
            raise UserError(
                f"--tflite: expected some of {', '.join(KINDS)}, got {kind!r}."
            )
    return kinds


def write_lite(
    module: ServingModule, folder: str, kinds: Sequence[str]
) -> None:
    """Writes `lite/model_<kind>.tflite`."""
    if not kinds:
        return
    with inference():
        concrete = _numeric_function(module).get_concrete_function()
    tf.io.gfile.makedirs(os.path.join(folder, LITE_FOLDER))
    for kind in kinds:
        converter = tf.lite.TFLiteConverter.from_concrete_functions(
            [concrete], module
        )
        if kind == "dynamic":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        try:
            content = converter.convert()
        except Exception as error:  # Converters raise errors of any class.
            raise _not_converted(module, "tflite", error) from error
        path = os.path.join(folder, LITE_FOLDER, f"model_{kind}.tflite")
        with tf.io.gfile.GFile(path, "wb") as file:
            file.write(content)


def check_onnx_installed() -> None:
    """Raises a UserError where the extra is not installed."""
    for name in ("tf2onnx", "onnxruntime"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise UserError(
                f"--onnx needs {name}, which cannot be imported ({error});"
                ' install the extra: pip install "electra_tf[onnx]", or from'
                " a checkout: pip install .[onnx]"
            ) from error


def write_onnx(module: ServingModule, folder: str) -> None:
    """Writes `onnx/model.onnx`."""
    check_onnx_installed()
    import tf2onnx

    path = os.path.join(folder, ONNX_FOLDER, "model.onnx")
    tf.io.gfile.makedirs(os.path.dirname(path))
    # tf2onnx wants to name the inputs itself.
    numeric = _numeric_function(module).python_function
    specs = [
        tf.TensorSpec([None, None], tf.int32, name) for name in Inputs._fields
    ]
    try:
        with inference():
            tf2onnx.convert.from_function(
                tf.function(numeric, autograph=False),
                specs,
                opset=_ONNX_OPSET,
                output_path=path,
            )
    except (ValueError, RuntimeError) as error:
        raise _not_converted(module, "onnx", error) from error


def _numeric_function(module: ServingModule) -> Any:
    """A `tf.function` of the ids that gives the numeric outputs."""
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
    last = str(error).strip().splitlines()[-1]
    return UserError(
        f"--{flag}: a {module.KIND} model cannot be converted: {last}. Export"
        f" it without --{flag}."
    )


# What the files cost and change, compared with the SavedModel.


def runner(path: str) -> Callable[[Inputs], Mapping[str, np.ndarray]]:
    """Returns a function that runs a LiteRT or an ONNX file."""
    with tf.io.gfile.GFile(path, "rb") as file:
        content = file.read()
    if path.endswith(".onnx"):
        check_onnx_installed()
        import onnxruntime

        session = onnxruntime.InferenceSession(
            content, providers=["CPUExecutionProvider"]
        )
        taken = {found.name for found in session.get_inputs()}
        names = [found.name for found in session.get_outputs()]

        def run(given: dict[str, np.ndarray]) -> Mapping[str, np.ndarray]:
            given = {n: v for n, v in given.items() if n in taken}
            return dict(zip(names, session.run(names, given), strict=True))
    else:
        with warnings.catch_warnings():
            # It is to move to another package; this TensorFlow still has it.
            warnings.simplefilter("ignore")
            interpreter = tf.lite.Interpreter(model_content=content)
        signature = interpreter.get_signature_runner("serving_default")

        def run(given: dict[str, np.ndarray]) -> Mapping[str, np.ndarray]:
            return signature(**given)

    return lambda inputs: run(
        {name: np.asarray(value) for name, value in inputs._asdict().items()}
    )


def measure_conversions(
    folder: str, loaded: Any, tokens: Sequence[str], max_positions: int
) -> list[dict[str, Any]]:
    """Compares the files of a version with its SavedModel, on random ids.

    Returns:
      Of each: `file`, `size` in bytes, `largest_change` and `mean_change` of
      float outputs, and `same_choices`, the share of whole-number outputs
      that are the same, None where there are none.
    """
    paths = sorted(
        path
        for part in (LITE_FOLDER, ONNX_FOLDER)
        for path in tf.io.gfile.glob(os.path.join(folder, part, "*"))
    )
    if not paths:
        return []
    batches = sample_inputs(tokens, max_positions)
    serve = loaded.signatures["serving_default"]
    wanted = [serve(**batch._asdict()) for batch in batches]
    reports = []
    for path in paths:
        change = compare(wanted, [*map(runner(path), batches)])
        size = tf.io.gfile.stat(path).length
        names = ("largest_change", "mean_change", "same_choices")
        reports.append(
            {"file": os.path.relpath(path, folder), "size": size}
            | dict(zip(names, change, strict=True))
        )
    return reports


def describe_conversion(report: Mapping[str, Any]) -> str:
    """A line about what a file costs and changes."""
    text = (
        f"{report['file']}: {report['size']:,} bytes; outputs change by"
        f" {report['largest_change']:.2g} at most,"
        f" {report['mean_change']:.2g} on average"
    )
    if (same := report["same_choices"]) is not None:
        text += f"; {same:.1%} of the choices are the same"
    return text


def sample_inputs(tokens: Sequence[str], max_positions: int) -> list[Inputs]:
    """Returns random inputs of several shapes, with padding and segments."""
    random = np.random.default_rng(0)
    found = []
    for rows, length in _SHAPES:
        length = min(length, max_positions)
        ids = random.integers(1, len(tokens), [rows, length])
        ids[:, 0] = tokens.index(CLS)
        ids[:, length // 2] = ids[:, length - 1] = tokens.index(SEP)
        mask = np.ones_like(ids)
        mask[0, length - length // 4 :] = 0
        segments = np.zeros_like(ids)
        segments[:, length // 2 + 1 :] = 1
        arrays = (ids * mask, mask, segments * mask)
        found.append(Inputs(*(tf.constant(a, tf.int32) for a in arrays)))
    return found


def compare(
    wanted: Sequence[Mapping[str, tf.Tensor]],
    got: Sequence[Mapping[str, np.ndarray]],
) -> tuple[float, float, float | None]:
    """Largest and mean change of floats, and share of equal integers."""
    changes: list[np.ndarray] = []
    same: list[np.ndarray] = []
    for one, other in zip(wanted, got, strict=True):
        for name, theirs in other.items():
            value = np.asarray(one[name])
            if np.issubdtype(value.dtype, np.floating):
                changes.append(np.abs(value - theirs).ravel())
            else:
                same.append((value == theirs).ravel())
    change = np.concatenate(changes) if changes else np.zeros([1])
    share = float(np.concatenate(same).mean()) if same else None
    return float(change.max()), float(change.mean()), share
