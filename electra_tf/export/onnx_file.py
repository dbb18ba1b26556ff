# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""An ONNX file of a module: ids in, numbers out, as in the LiteRT files.

Needs the extra `onnx` (tf2onnx, onnx, onnxruntime), which nothing else does.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.export.lite import numeric_function
from electra_tf.export.signatures import Inputs, ServingModule
from electra_tf.modeling.layers import inference

FOLDER = "onnx"
OPSET = 17
_PACKAGES = ("tf2onnx", "onnxruntime")


def check_installed() -> None:
    """Raises a UserError where the extra is not installed."""
    for name in _PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise UserError(
                f"--onnx needs {name}, which cannot be imported ({error});"
                ' install the extra: pip install "electra_tf[onnx]", or from'
                " a checkout: pip install -e .[onnx]"
            ) from error


def write_onnx(module: ServingModule, folder: str) -> None:
    """Converts a module."""
    check_installed()
    import tf2onnx

    path = os.path.join(folder, FOLDER, "model.onnx")
    tf.io.gfile.makedirs(os.path.dirname(path))
    with inference():
        # tf2onnx wants to name the inputs itself.
        numeric = numeric_function(module).python_function
        function = tf.function(numeric, autograph=False)
        specs = [
            tf.TensorSpec([None, None], tf.int32, name)
            for name in Inputs._fields
        ]
        try:
            tf2onnx.convert.from_function(
                function, specs, opset=OPSET, output_path=path
            )
        except (ValueError, RuntimeError) as error:
            raise UserError(
                f"--onnx: a {module.settings.kind} model cannot be converted:"
                f" {error}. Export it without --onnx."
            ) from error


def runner(content: bytes) -> Callable[..., dict[str, np.ndarray]]:
    """Returns a function that runs an ONNX file."""
    check_installed()
    import onnxruntime

    session = onnxruntime.InferenceSession(
        content, providers=["CPUExecutionProvider"]
    )
    taken = {found.name for found in session.get_inputs()}
    names = [found.name for found in session.get_outputs()]

    def run(*inputs: tf.Tensor) -> dict[str, np.ndarray]:
        given = zip(Inputs._fields, inputs, strict=True)
        arrays = {n: np.asarray(v) for n, v in given if n in taken}
        return dict(zip(names, session.run(names, arrays), strict=True))

    return run
