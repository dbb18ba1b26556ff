# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Quantization of ONNX models to 8-bit weights with onnxruntime.

This module requires the extra `onnx`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from configure.errors import UserError, last_line
from electra_tf.files.reading import read_bytes

# Operations whose weights are quantized. The table of tokens, which `Gather`
# reads, is the largest weight of a small model.
_OPERATIONS = ("MatMul", "Gather")


def quantize(model: Any) -> bytes:
    """Return an ONNX model with 8-bit weights.

    Weights are int8, or uint8 if `Gather` reads them. The inputs of matrix
    products are quantized at run time, with one range for a whole batch.

    Args:
      model: an `onnx.ModelProto` of float32, which is not changed.

    Raises:
      UserError: the quantizer supports none of the operations.
    """
    operations = list(_OPERATIONS)
    while operations:
        try:
            return _quantize_operations(model, operations)
        except Exception as error:  # The quantizer raises errors of any class.
            operation, reason = operations.pop(), last_line(error)
            print(
                f"WARNING: --int8: onnxruntime cannot quantize {operation}"
                f" ({reason}). The weights of {operation} stay float32."
            )
    raise UserError(
        "--int8: onnxruntime can quantize no operation of this model. Remove"
        " --int8."
    )


def _quantize_operations(model: Any, operations: Sequence[str]) -> bytes:
    from onnxruntime import quantization

    copy = type(model)()
    copy.CopyFrom(model)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        with _without_advice():
            quantization.quantize_dynamic(
                copy,
                path,
                op_types_to_quantize=list(operations),
                per_channel=True,
                # Processors without VNNI add pairs of products in 16 bits, and
                # such a sum can overflow if weights use all 8 bits.
                reduce_range=True,
                weight_type=quantization.QuantType.QInt8,
            )
        return read_bytes(path)


@contextlib.contextmanager
def _without_advice() -> Iterator[None]:
    """Hide the quantizer's advice to optimize the graph first.

    tf2onnx has already optimized the graph. The quantizer logs the advice to
    the root logger.
    """

    def is_no_advice(record: logging.LogRecord) -> bool:
        return "pre-processing before quantization" not in record.getMessage()

    root = logging.getLogger()
    root.addFilter(is_no_advice)
    try:
        yield
    finally:
        root.removeFilter(is_no_advice)
