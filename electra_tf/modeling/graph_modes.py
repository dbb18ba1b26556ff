# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How graphs are traced: for inference, and with operations fused by XLA."""

import contextlib
import contextvars
import functools
from collections.abc import Iterator

import tensorflow as tf

_INFERENCE = contextvars.ContextVar("inference", default=False)


@contextlib.contextmanager
def inference() -> Iterator[None]:
    """Trace graphs in this block for their outputs, not for training.

    The layers leave out their own gradients. These wrap operations in functions
    that keep TensorFlow from computing a product, its bias and the GELU after
    it in one kernel, and LiteRT and ONNX from recognizing them. Values are the
    same up to rounding.
    """
    token = _INFERENCE.set(True)
    try:
        yield
    finally:
        _INFERENCE.reset(token)


def is_inference() -> bool:
    """Return whether the caller runs inside `inference`."""
    return _INFERENCE.get()


def fuses(*tensors: tf.Tensor) -> bool:
    """Return whether XLA makes one loop of elementwise operations on tensors.

    TensorFlow runs one operation after the other, each through memory, but on
    all threads; XLA's loops run on one thread. So fusing pays where an
    operation has one thread anyway. XLA compiles again for every shape, so the
    shapes must be known.
    """
    threads = tf.config.threading.get_intra_op_parallelism_threads()
    if is_inference() or tf.executing_eagerly() or threads != 1:
        return False
    if tf.config.get_visible_devices("GPU"):
        return False
    return all(tensor.shape.is_fully_defined() for tensor in tensors)


# Functions decorated with it are shared by all layers, so that XLA compiles
# them once for each shape.
compiled = functools.partial(
    tf.function, autograph=False, jit_compile=True, reduce_retracing=False
)
