# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""LiteRT (formerly TFLite) files of a module: ids in, numbers out.

One signature, `serving_default`: int32 [B, L] `input_ids`, `input_mask` and
`segment_ids`, all three given, B and L free; the numeric outputs of the
SavedModel's `serving_default`. Strings are left out: names are in
`assets.extra/`, and tokenizing is up to the device. Only LiteRT's own
operations are used.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.export.signatures import Inputs, Outputs, ServingModule
from electra_tf.modeling.layers import inference

KINDS = ("float", "dynamic")
FOLDER = "lite"


def check_kinds(kinds: Iterable[str]) -> list[str]:
    """Returns the kinds asked for."""
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
    """Converts a module."""
    if not kinds:
        return
    with inference():
        concrete = numeric_function(module).get_concrete_function()
    tf.io.gfile.makedirs(os.path.join(folder, FOLDER))
    for kind in kinds:
        path = os.path.join(folder, FOLDER, f"model_{kind}.tflite")
        with tf.io.gfile.GFile(path, "wb") as file:
            file.write(_convert(module, concrete, kind))


def numeric_function(module: ServingModule) -> Callable[..., Outputs]:
    """Returns a `tf.function` of the ids that gives the numeric outputs."""
    matrix = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[matrix] * 3, autograph=False)
    def serving_default(
        input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor
    ) -> Outputs:
        outputs = module.compute(Inputs(input_ids, input_mask, segment_ids))
        return {
            name: value
            for name, value in outputs.items()
            if value.dtype != tf.string
        }

    return serving_default


def runner(content: bytes) -> Callable[..., dict[str, np.ndarray]]:
    """Returns a function that runs a LiteRT file's signature."""
    with warnings.catch_warnings():
        # It is to move to another package; this TensorFlow still has it.
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(model_content=content)
    runner = interpreter.get_signature_runner("serving_default")

    def run(*inputs: tf.Tensor) -> dict[str, np.ndarray]:
        given = zip(Inputs._fields, inputs, strict=True)
        return runner(**{name: np.asarray(value) for name, value in given})

    return run


def _convert(module: ServingModule, concrete: object, kind: str) -> bytes:
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [concrete], module
    )
    if kind == "dynamic":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    try:
        return converter.convert()
    except Exception as error:
        last = str(error).strip().splitlines()[-1]
        raise UserError(
            f"--tflite: a {module.settings.kind} model cannot be converted:"
            f" {last}. Export it without --tflite."
        ) from error
